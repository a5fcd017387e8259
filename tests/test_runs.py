"""Recipes, runs that are started, stopped and resumed, and models that come with the package."""

from dataclasses import replace

import numpy as np
import pytest

from tigra.architecture import build_network
from tigra.datasets import DATASETS, dataset_options, load_dataset
from tigra.errors import ArchitectureError, ModelFileError, UsageError
from tigra.model_file import load_model
from tigra.packaged import packaged_models
from tigra.recipes import RECIPE_NAMES, RECIPES, find_recipe
from tigra.runs import (
    METHOD_NAMES,
    fit_run,
    measured_parts,
    recipe_for,
    resume_run,
    run_report,
    save_fitted,
    save_run,
    start_run,
    training_facts,
)
from tigra.settings import FitOptions
from tigra.splits import Split
from tigra.tables import TABLES
from tigra.training import accuracy, split_hash

TINY = "SC[2, 1]-DP[50]-S[2]-FC[4]"


@pytest.fixture(scope="module")
def splits():
    return load_dataset("mnist-012")


def test_every_data_set_has_both_recipes():
    assert set(RECIPES) == {*DATASETS, "folder"}
    for recipes in RECIPES.values():
        assert set(recipes) == set(RECIPE_NAMES)


@pytest.mark.parametrize("dataset", RECIPES)
def test_the_papers_recipe_is_what_the_paper_prints(dataset):
    recipe = find_recipe(dataset, "paper")
    network = recipe["network"]
    assert network["architecture"] == (
        "SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]"
        if dataset == "mnist-012"
        else "SC[10, 4]-DP[600]-SC[20, 4]-DP[300]-S[12]-FC[500]-FC[300]-FC[100]"
    )
    assert (network["init"], network["mixing"], network["standardise"]) == ("paper", "vector", False)
    assert (network["neighbours"], network["diagonal_weight"], network["smoothing"]) == (8, 1.0, 0.0)


def test_an_unknown_recipe_is_refused():
    with pytest.raises(UsageError, match="best, paper, got 'worst'"):
        find_recipe("mnist-012", "worst")


def test_a_run_starts_with_the_recipe_and_the_changes(splits):
    recipe = find_recipe("mnist-012", "paper")
    training = start_run(splits, recipe, seed=3, architecture=TINY, margin=1, epochs=2, batch_size=7)
    assert training.network.options | {"architecture": TINY, "margin": 1, "seed": 3} == training.network.options
    assert training.options == FitOptions(**recipe["fit"] | {"epochs": 2, "batch_size": 7}, seed=3)
    assert training.network.class_names == ["0", "1", "2"]
    expected = build_network(**recipe["network"] | {"architecture": TINY, "margin": 1}, image_shape=(28, 28),
                             n_classes=3, seed=3)  # fmt: skip
    assert (training.network.parameters == expected.parameters).all()


def test_without_pairs_goes_what_a_recipe_has_for_them_alone(splits):
    recipe = find_recipe("mnist-rot")
    assert (recipe["network"]["active"], recipe["network"]["diffusion"]) == ("all", 1)

    def chosen(**changes):
        options = start_run(splits, recipe, architecture=TINY, **changes).network.options
        return options["mixing"], options["active"], options["diffusion"]

    assert chosen() == ("products", "all", 1)
    assert chosen(mixing="pairs") == ("pairs", "all", 1)
    assert chosen(mixing="full") == ("full", "map", 0)
    assert chosen(mixing="vector", active="union") == ("vector", "union", 0)
    with pytest.raises(UsageError, match="diffusion is for mixing pairs"):
        chosen(mixing="vector", diffusion=2)  # what is given is not changed


def test_least_steps_ask_for_more_epochs_unless_epochs_are_given(splits):
    recipe = {
        "network": {"architecture": TINY, "margin": 0},
        "fit": {"epochs": 2, "batch_size": 100},
        "least_steps": 12,
    }
    assert start_run(splits, recipe).options.epochs == 3  # of 5 steps
    assert start_run(splits, recipe, epochs=1).options.epochs == 1
    assert start_run(splits, recipe, batch_size=250).options.epochs == 6


def test_pooling_is_limited_for_the_users_own_pictures_only(splits):
    recipe = {"network": {"architecture": "SC[1, 1]-DP[700]-S[1]", "margin": 0}, "fit": {"epochs": 1, "batch_size": 50}}
    assert start_run(splits, recipe).network.options["architecture"] == "SC[1, 1]-DP[700]-S[1]"
    assert start_run(splits, recipe, limit_pooling=True).network.options["architecture"] == "SC[1, 1]-DP[392]-S[1]"


def test_a_stopped_run_goes_on_to_the_same_bits(splits, tmp_path):
    recipe, path = find_recipe("mnist-012"), tmp_path / "run.npz"
    changes = {"architecture": TINY, "epochs": 2}
    whole = start_run(splits, recipe, **changes)
    list(whole.run())
    stopped = start_run(splits, recipe, **changes)
    stopped.should_stop = lambda: stopped.step == 4
    list(stopped.run())
    save_run(stopped, splits, path, note="half")
    model = load_model(path)
    assert model.training["note"] == "half" and model.training["split_hash"] == split_hash(splits)
    resumed = resume_run(model, splits, path)
    list(resumed.run())
    assert resumed.network.parameters.tobytes() == whole.network.parameters.tobytes()
    save_run(resumed, splits, path)
    with pytest.raises(ModelFileError, match="holds a finished run"):
        resume_run(load_model(path), splits, path)


def test_a_stopped_run_with_all_that_goes_beyond_the_paper_goes_on_to_the_same_bits(splits, tmp_path):
    recipe, path = find_recipe("eth-80"), tmp_path / "run.npz"
    few = replace(splits, train=Split(*(part[:70] for part in splits.train)))
    changes = {"architecture": "SC[3, 1]-DP[90]-S[2]-FC[4]", "mixing": "gradients", "epochs": 2, "batch_size": 20}
    changes |= {"jitter": 0.5}
    assert (recipe["network"]["ground"], recipe["network"]["active"]) == ("border", "all") and recipe["network"]["log"]
    whole = start_run(few, recipe, threads=3, **changes)
    list(whole.run())
    stopped = start_run(few, recipe, **changes)
    stopped.should_stop = lambda: len(stopped.history) == 1 and stopped.step == 2
    list(stopped.run())
    save_run(stopped, few, path)
    resumed = resume_run(load_model(path), few, path)
    list(resumed.run())
    save_run(resumed, few, path)
    save_run(whole, few, tmp_path / "whole.npz")
    assert path.read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_the_report_measures_what_it_says(splits):
    training = start_run(splits, find_recipe("mnist-012"), architecture=TINY, epochs=1)
    list(training.run())
    seen = []
    facts = training_facts(training, 1.5)
    report = run_report(training.network, splits, on_progress=lambda *call: seen.append(call), **facts)
    assert report["accuracy"] == {
        name: accuracy(training.network, part) for name, part in measured_parts(splits).items()
    }
    assert report["images"] == {"train": 500, "valid": 100, "test_upright": 100, "test_transformed": 100}
    assert (report["seconds"], report["epochs"], report["seed"]) == (1.5, 1, 0)
    assert ("train", 500, 500) in seen


@pytest.mark.parametrize("method", METHOD_NAMES)
def test_every_method_has_recipes_for_every_data_set_and_folders(method):
    for dataset in (*DATASETS, "some/folder"):
        best, paper = (recipe_for(dataset, name, method) for name in RECIPE_NAMES)
        assert best != paper
        if method not in ("tigranet", "deepscat"):
            assert (best["network"]["init"], paper["network"]["init"]) == ("he", "paper")
            build_network(**best["network"], image_shape=(28, 28), n_classes=3)
            FitOptions(**best["fit"])
    with pytest.raises(UsageError, match="got 'worst'"):
        recipe_for("mnist-012", "worst", method)
    with pytest.raises(UsageError, match="A method is one of tigranet, convnet"):
        recipe_for("mnist-012", "best", "magic")


def test_a_fitted_classifier_is_saved_with_its_facts(splits, tmp_path, monkeypatch):
    monkeypatch.setenv("TIGRA_CACHE", str(tmp_path / "cache"))
    few = replace(
        splits, train=Split(*(part[:40] for part in splits.train)), valid=Split(*(p[:9] for p in splits.valid))
    )
    model = fit_run(few, {"architecture": "W[1, 2]-PCA[2]", "log": False, "standardise": False})
    report = {"accuracy": {"valid": accuracy(model, few.valid)}}
    save_fitted(model, few, tmp_path / "fitted.npz", report, note="here")
    loaded = load_model(tmp_path / "fitted.npz")
    assert loaded.training["accuracy"] == report["accuracy"] and loaded.training["note"] == "here"
    assert loaded.network.class_names == ["0", "1", "2"]
    assert (loaded.network.predict(splits.test.images[:9]) == model.predict(splits.test.images[:9])).all()


def test_an_architecture_that_is_given_is_fitted_as_it_is(splits, tmp_path, monkeypatch):
    """In a folder, too, where the recipe's own is suited to the pictures; only logarithm and scale are chosen."""
    monkeypatch.setenv("TIGRA_CACHE", str(tmp_path / "cache"))
    few = replace(
        splits, train=Split(*(part[:40] for part in splits.train)), valid=Split(*(p[:9] for p in splits.valid))
    )
    recipe = recipe_for("some/folder", "best", "deepscat")
    for name in ("mnist-012", "some/folder"):
        model = fit_run(replace(few, name=name), recipe, architecture="W[1, 2]-PCA[1]")
        assert model.options["architecture"] == "W[1, 2]-PCA[1]"
        for text, message in (
            ("W[1, 2]", "DeepScat is W"),
            ("FC[3]-FC[4]-FC[5]", "DeepScat is W"),
            ("W[1, 9]-PCA[1]", "octaves"),
        ):
            with pytest.raises(ArchitectureError, match=message):
                fit_run(replace(few, name=name), recipe, architecture=text)
    assert "candidates" in recipe and set(recipe["candidates"]) > {"log"}  # the recipe itself stays


def test_rows_of_tables_name_data_sets_options_and_recipes_that_exist():
    for table in TABLES.values():
        keys = [row.key for row in table.rows]
        assert len(set(keys)) == len(keys)
        for row in table.rows:
            known = dataset_options(row.dataset)
            for options in (row.data, table.quick_data, *table.tests[row.dataset].values()):
                assert set(options) <= set(known)
            assert row.method == "nearest" or recipe_for(row.dataset, row.recipe, row.method)


def test_both_start_values_of_convnet_and_stn_stand_in_every_table():
    """The choice decides the comparison, so neither is left out, on the curve over training rotations either."""
    for table in TABLES.values():
        rows = [row for row in table.rows if row.method in ("convnet", "stn")]
        kinds = {(row.dataset, row.method, str(row.data)) for row in rows}
        assert len(rows) == 2 * len(kinds) >= 4
        assert {(row.dataset, row.method, str(row.data)) for row in rows if row.recipe == "paper"} == kinds


def test_the_packaged_model_is_the_best_recipe_and_good():
    path = packaged_models()["mnist-012"]
    assert path.stat().st_size < 200_000
    model, splits = load_model(path), load_dataset("mnist-012")
    recipe = find_recipe("mnist-012")["network"]
    assert {name: model.network.options[name] for name in recipe} == recipe
    assert model.resume is None and model.training["split_hash"] == split_hash(splits)
    assert accuracy(model.network, splits.test) >= 0.93
    assert np.isclose(accuracy(model.network, splits.valid), model.training["accuracy"]["valid"], atol=0.02)
