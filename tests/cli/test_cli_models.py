"""Commands on models: those that come with tigra, recipes by name, the report of invariance, runs that are stopped."""

import json
import shutil
from dataclasses import asdict

import numpy as np
import pytest
from PIL import Image
from tigra_cli.shared.signals import StopSignals

import tigra
from tests.cli.running import run
from tigra.experiments.invariance import measure_invariance
from tigra.experiments.recipes import find_recipe
from tigra.model_file import load_model, packaged_models

pytestmark = pytest.mark.slow


@pytest.fixture
def digit(tmp_path, monkeypatch):
    """An empty folder to work in, but for a picture of a digit; (its path, its label)."""
    monkeypatch.chdir(tmp_path)
    images, labels = tigra.load_dataset("mnist-012").test_upright
    Image.fromarray((255 * images[0]).astype(np.uint8)).save(tmp_path / "digit.png")
    return "digit.png", str(labels[0])


def test_the_name_of_a_packaged_model_will_do_wherever_a_model_is_asked_for(digit):
    path, label = digit
    assert json.loads(run("predict", "mnist-012", path, "--json").stdout)["predictions"][0]["label"] == label
    assert run("info", "mnist-012").stdout.startswith(find_recipe("mnist-012").network.architecture)
    assert json.loads(run("evaluate", "mnist-012", "--runs", "1", "--json").stdout)["accuracy"]["mean"] > 0.9
    assert "192 features of 1 picture" in run("features", "mnist-012", path, "--out", "table.csv").stdout
    assert tigra.load("mnist-012").learned.tobytes() == tigra.load_model("mnist-012").network.learned.tobytes()
    wrong = run("predict", "mnist-013", path, expect=2).stderr
    assert f"'mnist-013' does not exist; models that come with tigra: {', '.join(packaged_models())}." in wrong


def test_packaged_models_are_small_and_their_origin_is_told():
    paths = packaged_models().values()
    assert sum(path.stat().st_size for path in paths) <= 10**6
    told = (next(iter(paths)).parent / "README.md").read_text(encoding="utf-8")
    assert all(f"`{path.name}`" in told for path in paths)


def test_a_file_goes_before_a_packaged_model_and_a_folder_does_not(digit, tmp_path):
    (tmp_path / "mnist-012").mkdir()
    run("info", "mnist-012")
    (tmp_path / "mnist-012").rmdir()
    (tmp_path / "mnist-012").write_text("no model")
    assert "is damaged or not a tigra model file" in run("info", "mnist-012", expect=1).stderr
    shutil.copy(packaged_models()["mnist-012"], tmp_path / "mnist-012")
    run("info", "mnist-012")


@pytest.mark.parametrize(
    "words",
    [
        ("export", "digits.npz", "--out"),
        ("features", "digits.npz", "digit.png", "--out"),
        ("predict", "digits.npz", "digit.png", "--csv"),
        ("evaluate", "digits.npz", "--report"),
    ],
)
def test_no_command_writes_its_output_over_the_model(words, digit, tmp_path):
    shutil.copy(packaged_models()["mnist-012"], "digits.npz")
    (tmp_path / "link.npz").symlink_to("digits.npz")
    for out in ("digits.npz", "link.npz"):
        assert f"{out}: it is the model, which would be lost; choose another file" in run(*words, out, expect=1).stderr
    assert (tmp_path / "digits.npz").read_bytes() == packaged_models()["mnist-012"].read_bytes()


def test_the_invariance_report_is_that_of_the_library():
    network, splits = tigra.load(packaged_models()["mnist-012"]), tigra.load_dataset("mnist-012")
    content = json.loads(run("evaluate", "mnist-012", "--invariance", "--json", "--seed", "3").stdout)
    assert content["invariance"] == measure_invariance(network, *splits.test_upright, seed=3)
    assert (content["interpolation"], content["n_images"]) == ("cubic", 100)
    assert content["protocol"].startswith("upright test images of mnist-012, cubic interpolation")
    for name in ("quarter turns", "half turns"):
        assert content["invariance"][name]["label_changed"] == 0
        assert content["invariance"][name]["probability_moved_most"] < 1e-5  # sums in float32, in another order
    lines = run("evaluate", "mnist-012", "--invariance", "--interpolation", "linear").stdout.splitlines()
    linear = measure_invariance(network, *splits.test_upright, interpolation="linear")["random angles"]
    (random,) = (line.split("  ") for line in lines if line.startswith("random angles"))
    assert [cell.strip() for cell in random[1:] if cell] == [
        f"{100 * linear[name]:.1f} %"
        for name in ("label_changed", "probability_moved", "probability_moved_most", "accuracy")
    ]
    assert "linear interpolation, shifts of up to 2 pixels" in lines[-1]
    mirrored = f"{100 * content['invariance']['mirror images']['probability_moved']:.1f} %"
    place = lines.index("")  # mirror images stand apart
    assert lines[place + 1].split("  ")[0] == "mirror images" and mirrored in lines[place + 1]
    assert lines[-2].endswith(f"mirroring by {mirrored}.")
    refused = run("evaluate", "mnist-012", "--invariance", "--runs", "2", expect=2)
    assert "leave out --runs" in refused.stderr and refused.stdout == ""


@pytest.mark.parametrize("recipe", ["best", "paper"])
def test_train_starts_from_the_recipe_that_is_named(recipe, tmp_path):
    named = [] if recipe == "best" else ["--recipe", recipe]  # the best is the default
    run("train", "mnist-012", *named, "--epochs", "1", "--out", tmp_path / "model.npz")
    model, expected = load_model(tmp_path / "model.npz"), find_recipe("mnist-012", recipe)
    assert all(model.network.options[name] == value for name, value in asdict(expected.network).items())
    assert model.training["options"] == asdict(expected.fit) | {"epochs": 1, "seed": 0}


def test_a_table_that_is_stopped_goes_on_with_the_same_command(tmp_path, monkeypatch):
    words = ["reproduce", "mnist-012", "--quick", "--row", "best", "--threads", "1", "--out"]
    run(*words, tmp_path / "whole")
    asked = []
    monkeypatch.setattr(StopSignals, "asked", lambda self: asked.append(None) or len(asked) > 5)
    stopped = run(*words, tmp_path / "parts", expect=130)
    assert stopped.stdout == "" and f"the runs so far are in {tmp_path / 'parts'}" in stopped.stderr
    monkeypatch.undo()
    assert load_model(tmp_path / "parts" / "best-seed-0-quick.npz").resume[1]["step"] == 4
    run(*words, tmp_path / "parts")
    whole, parts = (json.loads((tmp_path / n / "best-seed-0-quick.json").read_text()) for n in ("whole", "parts"))
    assert whole["accuracy"] == parts["accuracy"] and whole["epochs"] == parts["epochs"] == 2
