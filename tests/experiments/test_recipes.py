"""What the recipes promise: the paper's own layers, left and right, grids that coarsening covers, few parameters."""

from dataclasses import asdict

import numpy as np
import pytest

from tigra.experiments.recipes import RECIPES, find_recipe
from tigra.models.build import build_network, count_parameters

SIDES = {"mnist-012": 28, "mnist-rot": 26, "mnist-trans": 34, "eth-80": 50}


@pytest.mark.parametrize("dataset", RECIPES)
def test_the_repaired_recipe_is_the_papers_but_for_scales_of_statistics_and_start_values(dataset):
    paper, repaired = (asdict(find_recipe(dataset, name).network) for name in ("paper", "repaired"))
    changed = {name: value for name, value in repaired.items() if value != paper[name]}
    assert changed == {"standardise": True, "dense_init": "default", "deviation_floor": 0.03}


@pytest.mark.parametrize("dataset", SIDES)
def test_blocks_of_oriented_recipes_cover_the_grid_evenly(dataset):
    for name in {"best", "pooled"} & set(RECIPES[dataset]):
        network = find_recipe(dataset, name).network
        unit = 2 ** network.architecture.count("GC[2]")
        assert unit == (8 if dataset == "eth-80" else 4), "of which shifts are exact, says the README"
        assert (SIDES[dataset] + 2 * network.margin) % unit == 0


def test_the_network_of_mnist_rot_has_at_most_100_000_parameters():
    for name in ("best", "pooled"):
        assert count_parameters(find_recipe("mnist-rot", name).network.architecture, (32, 32), 9) <= 100_000


@pytest.mark.parametrize("name, tells", [("best", True), ("pooled", True), ("achiral", False), ("repaired", False)])
def test_start_values_of_the_recipe_tell_mirror_images_apart_or_not_and_never_quarter_turns(name, tells, mnist_012):
    digits, options = mnist_012.test_upright.images[:6], find_recipe("mnist-012", name).network
    network = build_network(image_shape=(28, 28), n_classes=3, dtype="float64", **options)
    if network.needs_calibration:
        network.calibrate(digits)
    features = network.features(digits)
    for quarters in (1, 2, 3):
        turned = network.features(np.ascontiguousarray(np.rot90(digits, quarters, axes=(1, 2))))
        assert np.abs(turned - features).max() < 1e-12 * np.abs(features).max()
    change = np.abs(network.features(np.ascontiguousarray(digits[:, :, ::-1])) - features).max()
    assert change > 1e-6 * np.abs(features).max() if tells else change < 1e-12 * np.abs(features).max()
