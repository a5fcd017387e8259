"""The recipes of the networks to compare with are arguments that exist, for every data set."""

import pytest

import tigra
from tigra.methods import METHODS, START_VALUES

SIDES = {"mnist-012": (28, 3), "mnist-rot": (26, 9), "mnist-trans": (34, 9), "eth-80": (50, 8)}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dataset", SIDES)
def test_recipes_build_networks_and_say_how_to_train(method, dataset):
    recipe, (side, n_classes) = METHODS[method][dataset], SIDES[dataset]
    assert set(recipe) == {"network", "fit"}
    tigra.FitOptions(**recipe["fit"])
    for init in START_VALUES:
        network = tigra.build_network(
            **recipe["network"] | {"init": init}, image_shape=(side, side), n_classes=n_classes
        )
        assert network.n_parameters == tigra.count_parameters(
            recipe["network"]["architecture"], (side, side), n_classes
        )


def test_there_is_a_recipe_for_every_data_set():
    for recipes in METHODS.values():
        assert set(recipes) == set(tigra.DATASETS)
