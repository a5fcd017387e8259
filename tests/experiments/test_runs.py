"""Recipes, runs that are started, stopped and resumed, and models that come with the package."""

from dataclasses import replace

import numpy as np
import pytest
from tigra_cli.shared.options import RecipeName

from tigra.datasets.loading import DATASETS, dataset_options, load_dataset
from tigra.datasets.splits import Split, split_hash
from tigra.errors import ArchitectureError, ModelFileError, UsageError
from tigra.experiments.methods import METHODS
from tigra.experiments.recipe import Recipe
from tigra.experiments.recipes import RECIPES, DeepScatRecipe, find_recipe
from tigra.experiments.resuming import resume
from tigra.experiments.runs import (
    Stopped,
    Watch,
    measured_parts,
    perform,
    run_report,
)
from tigra.experiments.tables import TABLES
from tigra.model_file import load_model, packaged_models
from tigra.models.build import build_network
from tigra.models.classifier import accuracy
from tigra.options import FitOptions, NetworkOptions

TINY = "SC[2, 1]-DP[50]-S[2]-FC[4]"


@pytest.fixture(scope="module")
def splits():
    return load_dataset("mnist-012")


def started(splits, recipe, seed=0, threads=1, **changes):
    return METHODS["tigranet"].start(splits, recipe.with_changes(changes), seed, threads)


def stopped_at(run, epoch, step):
    """Work until a step of an epoch (from 0), then stop."""
    training = run.training
    with pytest.raises(Stopped):
        perform(run, watch=Watch(should_stop=lambda: (len(training.history), training.step) == (epoch, step)))


def test_every_data_set_has_all_recipes():
    assert set(RECIPES) == {*DATASETS, "folder"}
    for name, recipes in RECIPES.items():
        assert set(RecipeName.names) - set(recipes) == ({"pooled"} if name in ("eth-80", "folder") else set())


@pytest.mark.parametrize("dataset", RECIPES)
def test_the_papers_recipe_is_what_the_paper_prints(dataset):
    network = find_recipe(dataset, "paper").network
    assert network.architecture == (
        "SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]"
        if dataset == "mnist-012"
        else "SC[10, 4]-DP[600]-SC[20, 4]-DP[300]-S[12]-FC[500]-FC[300]-FC[100]"
    )
    assert (network.dense_init, network.mixing, network.standardise) == ("paper", "vector", False)
    assert (network.neighbours, network.diagonal_weight, network.smoothing) == (8, 1.0, 0.0)


def test_an_unknown_recipe_is_refused():
    with pytest.raises(UsageError, match="achiral, best, paper, pooled, repaired, got 'worst'"):
        find_recipe("mnist-012", "worst")


def test_a_run_starts_with_the_recipe_and_the_changes(splits):
    recipe = find_recipe("mnist-012", "paper")
    run = started(splits, recipe, seed=3, architecture=TINY, margin=1, epochs=2, batch_size=7)
    network = run.training.network
    assert (network.options.architecture, network.options.margin, network.options.seed) == (TINY, 1, 3)
    assert run.training.options == replace(recipe.fit, epochs=2, batch_size=7, seed=3)
    assert network.class_names == ["0", "1", "2"]
    options = dict(recipe.network) | {"architecture": TINY, "margin": 1}
    expected = build_network(**options, image_shape=(28, 28), n_classes=3, seed=3)
    assert (network.parameters == expected.parameters).all()


def test_without_pairs_goes_what_a_recipe_has_for_them_alone():
    recipe = find_recipe("mnist-rot", "achiral")

    def chosen(**changes):
        options = recipe.with_changes(changes).network
        return options.mixing, options.active_set, options.diffusion

    assert chosen() == ("products", "all", 1)
    assert chosen(mixing="pairs") == ("pairs", "all", 1)
    assert chosen(mixing="full") == ("full", "map", 0)
    assert chosen(mixing="vector", active_set="union") == ("vector", "union", 0)
    with pytest.raises(UsageError, match="diffusion has no effect with mixing='vector', only with pairs"):
        chosen(mixing="vector", diffusion=2)  # what is given is not changed


def test_least_steps_ask_for_more_epochs_unless_epochs_are_given(splits):
    recipe = Recipe(network=NetworkOptions(architecture=TINY), fit=FitOptions(epochs=2, batch_size=100), least_steps=12)
    assert started(splits, recipe).training.options.epochs == 3  # of 5 steps
    assert started(splits, recipe, epochs=1).training.options.epochs == 1
    assert started(splits, recipe, batch_size=250).training.options.epochs == 6


def test_pooling_is_limited_where_the_recipe_does_not_know_the_size(splits):
    recipe = Recipe(network=NetworkOptions(architecture="SC[1, 1]-DP[700]-S[1]"), fit=FitOptions(epochs=1))
    limited = replace(recipe, limits_pooling=True)
    assert started(splits, recipe).facts["architecture"] == "SC[1, 1]-DP[700]-S[1]"
    assert started(splits, limited).facts["architecture"] == "SC[1, 1]-DP[392]-S[1]"
    given = {"architecture": "SC[1, 1]-DP[600]-S[1]"}  # taken as it is
    assert started(splits, limited, **given).facts["architecture"] == given["architecture"]
    assert all(recipe.limits_pooling == (name == "folder") for name in RECIPES for recipe in RECIPES[name].values())


def test_the_recipe_for_folders_adapts_to_the_size_and_number_of_the_images():
    recipe, named = find_recipe("pictures"), [find_recipe(name) for name in DATASETS]
    assert all(one.for_images((28, 28), 100) == one for one in named), "these keep their bits"
    for side, margin, n_blocks in ((28, 2, 2), (40, 2, 2), (50, 3, 3), (64, 4, 3), (100, 2, 3), (200, 4, 4)):
        network = recipe.for_images((side, side, 3), 100).network
        assert (network.margin, network.architecture.count("GC[2]")) == (margin, n_blocks)
        assert (side + 2 * margin) % 2**n_blocks == 0
    assert [recipe.for_images((50, 50), n).fit.batch_size for n in (10, 1600, 3000, 10**6)] == [16, 16, 30, 48]
    assert [recipe.for_images((50, 50), n).least_steps for n in (99, 100)] == [800, 400]
    assert recipe.with_changes({"epochs": 3}).for_images((50, 50), 50).least_steps == 0  # as given
    with_window = [recipe.for_images((side, side), 100, "window").network for side in (32, 64)]
    assert [network.smoothing for network in with_window] == [0.5, 0.5] and with_window[0].margin == 2
    fine = [recipe.for_images((32, 32), 100, one).network.architecture for one in ("window-mean", "border", "black")]
    assert [text.startswith("OC[8, 2]-OC[16, 2]-GC[2]") for text in fine] == [True, True, False]
    assert [recipe.for_images((side, side), 100, "border").network.smoothing for side in (40, 41)] == [1.0, 0.5]
    assert recipe.with_changes({"smoothing": 1.5}).for_images((64, 64), 100, "window").network.smoothing == 1.5
    assert recipe.with_changes({"background": "window"}).for_images((32, 32), 100).network.smoothing == 0.5
    given = {"margin": 5, "batch_size": 48, "architecture": "OC[2, 1]-GC[2]-S[2]"}
    changed = recipe.with_changes(given)
    assert changed.for_images((28, 28), 100).network == changed.network and changed.fit.batch_size == 48
    assert changed.for_images((28, 28), 100).fit == changed.fit and not Recipe.from_json(changed.to_json()).evens_grid
    assert Recipe.from_json(recipe.to_json()) == recipe


def test_a_stopped_run_goes_on_to_the_same_bits(splits, tmp_path):
    recipe, path = find_recipe("mnist-012"), tmp_path / "run.npz"
    changes = {"architecture": TINY, "epochs": 2}
    whole = started(splits, recipe, **changes)
    perform(whole)
    stopped = started(splits, recipe, **changes)
    stopped_at(stopped, 0, 4)
    stopped.save(path, note="half")
    model = load_model(path)
    assert model.training["note"] == "half" and model.training["split_hash"] == split_hash(splits)
    resumed = resume(model, splits, path)
    perform(resumed, path)
    assert resumed.model.parameters.tobytes() == whole.model.parameters.tobytes()
    finished = resume(load_model(path), splits, path)  # without its report
    assert perform(finished, path) < 1 and finished.facts == whole.facts and finished.summary == whole.summary
    finished.save(path, {"accuracy": {"valid": 0.5}})
    whole.save(tmp_path / "whole.npz", {"accuracy": {"valid": 0.5}})
    assert path.read_bytes() == (tmp_path / "whole.npz").read_bytes()
    with pytest.raises(ModelFileError, match="has a finished run with its report"):
        resume(load_model(path), splits, path)


def test_a_stopped_run_with_all_that_goes_beyond_the_paper_goes_on_to_the_same_bits(splits, tmp_path):
    recipe, path = find_recipe("eth-80", "achiral"), tmp_path / "run.npz"
    few = replace(splits, train=Split(*(part[:70] for part in splits.train)))
    changes = {"architecture": "SC[3, 1]-DP[90]-S[2]-FC[4]", "mixing": "gradients", "epochs": 2, "batch_size": 20}
    changes |= {"jitter": 0.5}
    network = recipe.network
    assert (network.background, network.active_set) == ("border", "all") and network.log_offset
    whole = started(few, recipe, threads=3, **changes)
    perform(whole, tmp_path / "whole.npz")
    stopped = started(few, recipe, **changes)
    stopped_at(stopped, 1, 2)
    stopped.save(path)
    perform(resume(load_model(path), few, path), path)
    assert path.read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_the_loop_saves_now_and_then_and_at_the_end(splits, tmp_path):
    run, saved = started(splits, find_recipe("mnist-012"), architecture=TINY, epochs=2, batch_size=200), []
    run.save = lambda path, **more: saved.append((path, len(run.training.history), run.training.step, more))
    assert perform(run, "model.npz", save_every=0, facts=lambda seconds: {"spent": seconds > 0}) > 0
    places = [(0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3), (2, 0), (2, 0)]  # 3 is before the validation
    assert saved == [("model.npz", *place, {"spent": True}) for place in places]


def test_the_live_line_shows_the_highest_accuracy_so_far(splits, monkeypatch):
    run, lines = started(splits, find_recipe("mnist-012"), architecture=TINY, epochs=3, batch_size=500), []
    accuracies = iter([0.844, 0.802, 0.792])  # the loss falls, so that each epoch is the best so far
    monkeypatch.setattr(run.training, "_validate", lambda workers: (next(accuracies), 0.0, next(shown)))
    shown = iter([0.844, 0.802, 0.792])
    perform(run, watch=Watch(lambda what, done, total: lines.append(what)))
    assert [line.partition("valid")[2] for line in lines] == [
        *("", " 84.4 % (highest 84.4 %)", " 80.2 % (highest 84.4 %)")
    ]


@pytest.mark.slow
def test_the_report_measures_what_it_says(splits):
    run = started(splits, find_recipe("mnist-012"), architecture=TINY, epochs=1)
    perform(run)
    seen = []
    report = run_report(run.model, splits, on_progress=lambda *call: seen.append(call), **run.facts, seconds=1.5)
    assert report["accuracy"] == {name: accuracy(run.model, part) for name, part in measured_parts(splits).items()}
    assert report["images"] == {"train": 500, "valid": 100, "test_upright": 100, "test_transformed": 100}
    assert (report["seconds"], report["epochs"], report["seed"]) == (1.5, 1, 0)
    assert ("measuring the accuracy on train", 500, 500) in seen


def test_the_nearest_neighbour_is_a_method_like_the_others(splits, tmp_path):
    few = replace(splits, train=Split(*(part[:60] for part in splits.train)))
    run = METHODS["nearest"].start(few, METHODS["nearest"].recipe("mnist-012"))
    perform(run, tmp_path / "none.npz")
    assert not (tmp_path / "none.npz").exists() and run.facts == {}
    assert accuracy(run.model, few.train) == 1.0 and accuracy(run.model, splits.valid) > 0.8


def test_a_fitted_classifier_is_saved_with_its_facts(splits, tmp_path, monkeypatch):
    monkeypatch.setenv("TIGRA_CACHE", str(tmp_path / "cache"))
    few = replace(
        splits, train=Split(*(part[:40] for part in splits.train)), valid=Split(*(p[:9] for p in splits.valid))
    )
    run = METHODS["deepscat"].start(few, DeepScatRecipe(architecture="W[1, 2]-PCA[2]"))
    perform(run)
    model = run.model
    report = {"accuracy": {"valid": accuracy(model, few.valid)}}
    run.save(tmp_path / "fitted.npz", report, note="here")
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
    method = METHODS["deepscat"]
    recipe = method.recipe("some/folder")
    for name in ("mnist-012", "some/folder"):
        run = method.start(replace(few, name=name), recipe.with_changes({"architecture": "W[1, 2]-PCA[1]"}))
        perform(run)
        assert run.model.options.architecture == "W[1, 2]-PCA[1]"
        for text, message in (
            ("W[1, 2]", "DeepScat is W"),
            ("FC[3]-FC[4]-FC[5]", "DeepScat is W"),
            ("W[1, 9]-PCA[1]", "octaves"),
        ):
            with pytest.raises(ArchitectureError, match=message):
                method.start(replace(few, name=name), recipe.with_changes({"architecture": text}))
    assert set(recipe.candidates) > {"log"}  # the recipe itself stays
    run = method.start(replace(few, name="some/folder"), replace(recipe, candidates={}))
    assert run.recipe.architecture == "W[2, 4]-PCA[7]"  # as many octaves and dimensions as there is room for


def test_rows_of_tables_name_data_sets_options_and_recipes_that_exist():
    for table in TABLES.values():
        keys = [row.key for row in table.rows]
        assert len(set(keys)) == len(keys)
        for row in table.rows:
            known = dataset_options(row.dataset)
            for options in (row.data, table.quick_data, *table.tests[row.dataset].values()):
                assert set(options) <= set(known)
            assert row.method == "nearest" or METHODS[row.method].recipe(row.dataset, row.recipe)


def test_both_start_values_of_convnet_and_stn_stand_in_every_table_of_the_paper():
    """The choice decides the comparison, so neither is left out, on the curve over training rotations either."""
    for table in (TABLES[name] for name in TABLES if name != "digits"):
        rows = [row for row in table.rows if row.method in ("convnet", "stn")]
        kinds = {(row.dataset, row.method, str(row.data)) for row in rows}
        assert len(rows) == 2 * len(kinds) >= 4
        assert {(row.dataset, row.method, str(row.data)) for row in rows if row.recipe == "paper"} == kinds


def test_the_packaged_model_is_the_best_recipe_and_good():
    path = packaged_models()["mnist-012"]
    assert path.stat().st_size < 200_000
    model, splits = load_model(path), load_dataset("mnist-012")
    recipe = find_recipe("mnist-012").network
    assert {name: model.network.options[name] for name in recipe} == dict(recipe)
    assert model.resume is None and model.training["split_hash"] == split_hash(splits)
    assert accuracy(model.network, splits.test) >= 0.93
    assert np.isclose(accuracy(model.network, splits.valid), model.training["accuracy"]["valid"], atol=0.02)
