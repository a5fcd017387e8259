"""Methods have recipes for every data set, and start runs; a user's own is one more."""

import pytest

import tigra
from tigra.errors import UsageError
from tigra.experiments.methods import (
    METHODS,
    Method,
    NetworkMethod,
    find_method,
    register_method,
)
from tigra.experiments.recipe import Recipe
from tigra.experiments.recipes import RECIPE_NAMES, RECIPES
from tigra.models.build import Plan
from tigra.options import BuildOptions

SIDES = {"mnist-012": (28, 3), "mnist-rot": (26, 9), "mnist-trans": (34, 9), "eth-80": (50, 8), "folder": (50, 3)}
NETWORKS = [name for name, method in METHODS.items() if isinstance(method, NetworkMethod)]


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("dataset", SIDES)
def test_recipes_build_networks(name, dataset):
    side, n_classes = SIDES[dataset]
    for recipe_name in METHODS[name].recipe_names:
        recipe = METHODS[name].recipe(dataset, recipe_name)
        if recipe.network.background == "auto":  # found in the training images
            recipe = recipe.with_changes({"background": "border"})
        plan = Plan.of(BuildOptions(**recipe.network, image_shape=(side, side), n_classes=n_classes))
        assert plan.network().n_parameters == plan.n_parameters


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_recipes_go_to_json_and_back(method):
    for dataset in SIDES:
        for name in method.recipe_names:
            recipe = method.recipe(dataset, name)
            assert recipe is None or method.read_recipe(recipe.to_json()) == recipe


def test_the_recipes_of_the_networks_to_compare_with_differ_in_their_start_values():
    for name in ("convnet", "stn"):
        best, paper = (METHODS[name].recipe("some/folder", recipe) for recipe in RECIPE_NAMES)
        assert (best.network.dense_init, paper.network.dense_init) == ("he", "paper")
    with pytest.raises(UsageError, match="recipe must be one of best, got 'paper'"):
        METHODS["harmnet"].recipe("eth-80", "paper")


def test_unknown_methods_and_recipes_are_refused():
    with pytest.raises(UsageError, match="method must be one of tigranet, convnet"):
        find_method("magic")
    for name in ("tigranet", "convnet", "deepscat"):
        with pytest.raises(UsageError, match="got 'worst'"):
            METHODS[name].recipe("mnist-012", "worst")


def test_a_method_needs_a_name_of_its_own(monkeypatch):
    monkeypatch.setattr("tigra.experiments.methods.METHODS", dict(METHODS))

    class Mine(Method):
        name = "tigranet"

    with pytest.raises(UsageError, match="a name of its own, got 'tigranet'"):
        register_method(Mine())
    Mine.name = "mine"
    assert register_method(Mine()) is find_method("mine")


def test_an_old_recipe_is_read_and_equal_to_one_that_is_spelt_out():
    """Version 0.1 had other names, and recipes that left out what was a default."""
    recipe = RECIPES["eth-80"]["achiral"]
    old = recipe.to_json()
    for new, before in (("background", "ground"), ("active_set", "active"), ("deviation_floor", "floor")):
        old["network"][before] = old["network"].pop(new)
    del old["network"]["outside"], old["fit"]["jitter"]
    assert Recipe.from_json(old) == recipe
    old["network"]["floor"] = 0.5
    assert Recipe.from_json(old) != recipe
    with pytest.warns(DeprecationWarning, match="objects now"):
        assert tigra.RECIPES["eth-80"]["achiral"]["fit"]["epochs"] == 20
