"""The command line: what it prints, its JSON, and one sentence for everything that goes wrong."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image
from tigra_cli.main import COMMANDS, main

import tigra
from tests.cli.running import run, run_and_stop
from tigra.gradcheck.cases import LAYER_CASES
from tigra.model_file import load_model
from tigra.seeding import generator

QUICK = ["--epochs", "2", "--architecture", "SC[2, 2]-DP[90]-S[3]-FC[8]", "--batch-size", "25"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a quickly trained model and some pictures."""
    folder = tmp_path_factory.mktemp("cli")
    run("train", "mnist-012", *QUICK, "--out", folder / "model.npz")
    digits = tigra.load_dataset("mnist-012").test_upright.images
    for number in range(3):
        Image.fromarray((255 * digits[number]).astype(np.uint8)).save(folder / f"digit{number}.png")
    (folder / "note.png").write_text("not a picture")
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


# --- what it prints -----------------------------------------------------------------------------------


def test_train_reports_and_saves(here):
    result = run("train", "mnist-012", *QUICK, "--out", "other.npz", "--seed", "3")
    lines = result.stdout.splitlines()
    assert lines[0] == "mnist-012: SC[2, 2]-DP[90]-S[3]-FC[8], 170 parameters, seed 3"
    assert lines[1] == "train and valid upright, test rotated by [0, 360) degrees, cubic interpolation"
    assert lines[2].split() == ["images", "n", "accuracy", "95", "%", "interval"]
    assert [line.split("  ")[0] for line in lines[3:7]] == ["train", "valid", "test, upright", "test, transformed"]
    assert lines[7].startswith("best epoch ") and lines[7].endswith("saved as other.npz")
    assert all(line.startswith("Note: ") and " is taken for " in line for line in result.stderr.splitlines())
    assert "\r" not in result.output and "\x1b" not in result.output


@pytest.mark.slow
def test_larger_batches_raise_the_learning_rate_of_batch_normalisation_unless_it_is_given(here):
    def rate(architecture, *words):
        result = run("train", "mnist-012", "--architecture", architecture, "--epochs", "1", "--out", "b.npz", *words)
        notes = [line for line in result.stderr.splitlines() if "learning rate" in line]
        return load_model("b.npz").training["options"]["learning_rate"], notes

    oriented = "OC[1, 1]-GC[2]-S[0]-FC[4]"
    found, (note,) = rate(oriented, "--batch-size", "96")
    assert found == 0.01 and "0.01, not 0.005, because batches have 96 images, not 48" in note and "epochs" not in note
    found, (note,) = rate(oriented, "--batch-size", "480")
    assert found == 0.02 and note.endswith("such large batches also need more --epochs.")
    assert rate(oriented, "--batch-size", "96", "--learning-rate", "0.005") == (0.005, [])
    assert rate(oriented, "--batch-size", "24") == rate(oriented) == (0.005, [])
    assert rate("S[3]-FC[8]", "--batch-size", "96", "--recipe", "achiral")[1] == []


@pytest.mark.slow
def test_train_json_has_the_documented_keys(here):
    result = run("train", "mnist-012", *QUICK, "--out", "other.npz", "--json")
    content = json.loads(result.stdout)
    keys = {"model", "architecture", "parameters", "seed", "epochs", "best_epoch", "seconds", "protocol", "accuracy"}
    assert set(content) == keys | {"dataset", "images", "notes", "test", "remarks"} and content["notes"] == []
    assert content["images"] == {"train": 500, "valid": 100, "test_upright": 100, "test_transformed": 100}
    assert content["dataset"] == "mnist-012"
    assert content["model"] == "other.npz" and content["parameters"] == 170 and content["epochs"] == 2
    assert set(content["accuracy"]) == {"train", "valid", "test_upright", "test_transformed"}
    assert all(0 <= value <= 1 for value in content["accuracy"].values())
    splits, network = tigra.load_dataset("mnist-012"), tigra.load("other.npz")
    assert content["accuracy"]["test_transformed"] == tigra.accuracy(network, splits.test)
    assert content["accuracy"]["valid"] == tigra.accuracy(network, splits.valid)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["C[2]-P[2]-FC[4]", "C[2]-ST[6]-FC[4]", "HRC[1, 2]-HCN[2]-HRC[2, 2]"])
def test_networks_to_compare_with_go_through_every_command(here, architecture):
    quick = ["--epochs", 1, "--architecture", architecture, "--margin", 0]
    quick += ["--dense-init", "he"] if "FC" in architecture else []
    assert run("train", "mnist-012", *quick, "--out", "other.npz").stdout.startswith(f"mnist-012: {architecture}, ")
    assert "over 2 runs on 100 test images" in run("evaluate", "other.npz", "--runs", 2).stdout
    assert run("predict", "other.npz", "digit0.png").stdout.startswith("digit0.png: ")
    assert architecture in run("info", "other.npz").stdout


def test_model_file_has_the_name_of_the_data_set_by_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("train", "mnist-012", *QUICK)
    assert os.listdir(tmp_path) == ["mnist-012.npz"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_file_for_any_threads(here):
    for threads in (1, 3):
        run("train", "mnist-012", *QUICK, "--seed", "5", "--threads", threads, "--out", f"threads{threads}.npz")
    assert Path("threads1.npz").read_bytes() == Path("threads3.npz").read_bytes()


@pytest.mark.slow
def test_settings_reach_the_network(here):
    settings = {
        "--smoothing": "0.5", "--margin": "1", "--diagonal-weight": "0.5", "--boundary": "free",
        "--active-set": "union", "--mixing": "products", "--dense-init": "paper", "--deviation-floor": "0.02",
        "--log-offset": "0.04", "--background": "border", "--diffusion": "2",
    }  # fmt: skip
    run("train", "mnist-012", *QUICK, "--out", "other.npz", *(word for pair in settings.items() for word in pair))
    options = tigra.load("other.npz").options
    for name, value in settings.items():
        assert str(options[name[2:].replace("-", "_")]) == value
    run("train", "mnist-012", *QUICK, "--out", "other.npz", "--neighbours", "4", "--no-standardise")
    options = tigra.load("other.npz").options
    assert options.neighbours == 4 and options.standardise is False


@pytest.mark.slow
def test_older_names_of_options_are_still_taken(here):
    older = ["--active", "union", "--init", "paper", "--floor", "0.02", "--log", "0.04", "--ground", "border"]
    run("train", "mnist-012", *QUICK, "--out", "other.npz", *older)
    options = tigra.load("other.npz").options
    found = options.active_set, options.dense_init, options.deviation_floor, options.log_offset, options.background
    assert found == ("union", "paper", 0.02, 0.04, "border")
    shown = run("train", "--help").stdout.replace(",", " ").split()
    assert "--active-set" in shown and not set(older) & set(shown) & {
        "--active",
        "--init",
        "--floor",
        "--log",
        "--ground",
    }


@pytest.mark.slow
def test_settings_reach_the_training(here):
    settings = {
        "--learning-rate": "0.02", "--schedule": "constant", "--weight-decay": "0.3", "--label-smoothing": "0.2",
        "--jitter": "0.4", "--patience": "7",
    }  # fmt: skip
    run("train", "mnist-012", *QUICK, "--out", "other.npz", *(word for pair in settings.items() for word in pair))
    options = load_model("other.npz").training["options"]
    assert (options["epochs"], options["batch_size"]) == (2, 25)
    for name, value in settings.items():
        assert str(options[name[2:].replace("-", "_")]) == value


@pytest.mark.parametrize(
    "words, message",
    [
        ("--jitter 11", "11.0 is not in the range"),
        ("--jitter nan", "jitter must be a number of pixels from 0 to 10, got nan"),
        ("--log-offset 2", "2.0 is not in the range"),
        ("--log-offset nan", "log_offset must be a number from 0 to 1, got nan"),
        ("--deviation-floor -1", "-1.0 is not in the range"),
        ("--deviation-floor nan", "deviation_floor must be a number from 0 to 1, got nan"),
        ("--recipe paper --log-offset 0.1", "log_offset has no effect on statistics that are not standardised"),
        (
            "--recipe paper --deviation-floor 0.1",
            "deviation_floor has no effect on statistics that are not standardised",
        ),
        ("--background white", "'white' is not one of"),
        ("--mixing none", "'none' is not one of"),
        ("--mixing gradients --architecture SC[2,0]-S[1]", "needs at least 1"),
        ("--recipe achiral --active-set all", "goes with mixing"),
        (
            "--recipe achiral --diffusion 1",
            "diffusion has no effect with mixing='vector', only with pairs, gradients, products",
        ),
        ("--mixing pairs --diffusion -1", "-1 is not in the range"),
        ("--method stn --log-offset 0.1", "--log-offset has no effect here: it needs S layers, and C[3]-ST[6]"),
        ("--architecture C[3]-P[2]-FC[10] --mixing products", "--mixing has no effect here: it needs SC layers"),
        ("--method convnet --architecture SC[3,3]-S[4]-FC[10]", "has the layers C, P, FC, got S;"),
        ("--method harmnet --architecture C[3]-P[2]-FC[10]", "has the layers HRC, HCN, HBN, MP, got C;"),
        ("--method harmnet --recipe paper", "Method harmnet has no recipe paper, only best"),
        ("--method harmnet --dense-init he", "--dense-init has no effect here: it needs FC layers"),
        ("--architecture HRC[1,4]-HCN[4] --dense-init he", "--dense-init has no effect here: it needs FC layers"),
        ("--method harmnet --weight-decay 0.5", "--weight-decay has no effect here: it needs FC layers"),
        ("--architecture S[5]-FC[10] --mixing products", "--mixing has no effect here: it needs SC layers"),
        ("--architecture S[5]-FC[10] --active-set union", "--active-set has no effect here: it needs SC and DP layers"),
        ("--architecture S[5]-FC[10] --diffusion 1", "--diffusion has no effect here: it needs SC or OC layers"),
        (
            "--architecture SC[3,3]-S[5]-FC[10] --active-set union",
            "--active-set has no effect here: it needs DP layers",
        ),
        ("--neighbours 4 --diagonal-weight 0.5", "--diagonal-weight has no effect with 4 neighbours; leave it out"),
        ("--architecture HRC[1,2]-FC[4] --dense-init he", "FC[4]"),
        (
            "--method stn --architecture C[3]-P[2]-FC[10] --outside zeros",
            "--outside has no effect here: it needs ST layers",
        ),
        ("--architecture W[2,5]-PCA[20]", "use --method deepscat"),
        ("--method convnet --architecture W[2,5]-PCA[20]", "use --method deepscat"),
        ("--method deepscat --jitter 0.5", "--jitter has no effect on DeepScat"),
        ("--method deepscat --background border", "--background has no effect on DeepScat"),
    ],
)
def test_settings_that_make_no_sense_are_refused(here, words, message):
    refused = run("train", "mnist-012", *words.split(), "--out", "none.npz", expect=2)
    assert message in refused.stderr and not Path("none.npz").exists()


def test_evaluate_gives_mean_and_deviation_over_fresh_rotations(here):
    content = json.loads(run("evaluate", "model.npz", "--runs", "3", "--json").stdout)
    assert {"model", "dataset", "runs", "seed", "n_images", "protocol", "notes", "accuracy"} <= set(content)
    assert content["model"] == "model.npz" and content["dataset"] == "mnist-012" and content["runs"] == 3
    values = content["accuracy"]["values"]
    splits, network = tigra.load_dataset("mnist-012"), tigra.load("model.npz")
    fresh = [splits.fresh_test(generator(0, f"evaluate {run}")) for run in range(3)]
    assert values == [tigra.accuracy(network, test) for test in fresh]
    assert all(np.abs(test.images - splits.test.images).max() > 0.1 for test in fresh), "other angles than in training"
    assert content["accuracy"]["mean"] == pytest.approx(np.mean(values))
    assert content["accuracy"]["std"] == pytest.approx(np.std(values, ddof=1))
    text = run("evaluate", "model.npz", "mnist-012", "--runs", "3").stdout
    assert text.startswith(f"{100 * np.mean(values):.1f} % +- ") and "cubic interpolation" in text
    assert json.loads(run("evaluate", "model.npz", "--runs", "1", "--json").stdout)["accuracy"]["std"] == 0
    other = json.loads(run("evaluate", "model.npz", "--runs", "2", "--seed", "1", "--json").stdout)
    expected = [tigra.accuracy(network, splits.fresh_test(generator(1, f"evaluate {run}"))) for run in range(2)]
    assert other["accuracy"]["values"] == expected


def test_predict_names_classes_and_probabilities(here):
    content = json.loads(run("predict", "model.npz", "digit0.png", "digit1.png", "--json").stdout)
    assert set(content) == {"model", "views", "predictions"}
    network, images = tigra.load("model.npz"), [tigra.read_image(f"digit{i}.png", (28, 28)) for i in (0, 1)]
    for entry, label, row in zip(
        content["predictions"], network.predict(images), network.predict_proba(images), strict=True
    ):
        assert set(entry) == {"image", "label", "probabilities", "distance", "doubt"} and entry["label"] == str(label)
        assert list(entry["probabilities"].values()) == pytest.approx(list(row), abs=1e-5)
    first = content["predictions"][0]
    line = run("predict", "model.npz", "digit0.png").stdout
    assert line.startswith(f"digit0.png: {first['label']}  (0: ") and line.count("%") == 3


def test_predict_goes_on_past_an_unreadable_picture(here):
    result = run("predict", "model.npz", "digit0.png", "note.png", "digit1.png", expect=1)
    assert len(result.stdout.splitlines()) == 2
    assert result.stderr == "Error: note.png is not a picture that can be read; give a PNG or JPEG file, for example.\n"
    content = json.loads(run("predict", "model.npz", "note.png", "digit0.png", "--json", expect=1).stdout)
    assert "error" in content["predictions"][0] and "label" in content["predictions"][1]


def test_predict_takes_dark_on_light_with_invert(here):
    Image.fromarray(255 - np.asarray(Image.open("digit0.png"))).save("dark.png")
    upright, inverted = (
        json.loads(run("predict", "model.npz", *words, "--json").stdout)["predictions"][0]["probabilities"]
        for words in (["digit0.png"], ["dark.png", "--invert"])
    )
    assert list(upright.values()) == pytest.approx(list(inverted.values()), abs=1e-5)


def test_info_tells_what_is_in_the_file(here):
    content = json.loads(run("info", "model.npz", "--json").stdout)
    assert content["parameters"] == sum(layer["parameters"] for layer in content["layers"]) == 170
    assert content["finished"] and content["dataset"] == "mnist-012" and content["epochs"] == 2
    text = run("info", "model.npz").stdout
    for part in ("170 parameters", "classes: 0, 1, 2", "alpha 2x3", "trained on mnist-012, 2 epochs (finished)"):
        assert part in text
    tigra.save(tigra.load("model.npz"), "bare.npz")
    assert "trained on" not in run("info", "bare.npz").stdout


@pytest.mark.slow
def test_gradcheck_passes_and_prints_a_table(monkeypatch):
    result = run("gradcheck", "--layer", "Dense")
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["layer", "dE/d", "numbers", "error", "allowed"]
    assert [line.split()[1] for line in lines[1:4]] == ["input", "weight", "bias"]
    assert re.fullmatch(r"all 3 gradients right, \d+ s", lines[-1])
    few = dict(list(LAYER_CASES.items())[::9])  # tests/gradcheck checks all
    monkeypatch.setattr("tigra.gradcheck.checks.LAYER_CASES", few)
    content = json.loads(run("gradcheck", "--seed", "1", "--json").stdout)
    assert content["passed"] and {check["case"] for check in content["checks"]} >= {*few, "Loss", "Network"}
    assert set(content["checks"][0]) == {"case", "what", "size", "error", "tolerance", "where", "passed"}


def test_gradcheck_fails_with_status_1_when_a_gradient_is_off(monkeypatch):
    right = tigra.Dense.backward
    monkeypatch.setattr(tigra.Dense, "backward", lambda self, grad: 1.001 * right(self, grad))
    result = run("gradcheck", "--layer", "dense", expect=1)
    assert "WRONG" in result.stdout and re.search(
        r"see .*section 2\.\n3 gradients checked, 1 wrong, \d+ s\n$", result.stdout
    )
    assert not json.loads(run("gradcheck", "--layer", "Dense", "--json", expect=1).stdout)["passed"]


# --- stopping and going on ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("heeds_signals")
def test_signals_keep_a_file_that_resumes_to_the_same_weights(tmp_path):
    """Against a run that was never stopped."""
    settings = ["--epochs", "4", "--architecture", "SC[2, 2]-DP[90]-S[6]-FC[8]", "--batch-size", "50"]
    run("train", "mnist-012", *settings, "--out", tmp_path / "whole.npz")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        out = ["--out", tmp_path / "cut.npz"]
        cut = run_and_stop(number, 3, 8, "train", "mnist-012", *settings, *out)
        assert cut.stdout == "" and "Stopped in epoch 3; saved" in cut.stderr and "Traceback" not in cut.stderr
        model = load_model(tmp_path / "cut.npz")
        assert len(model.resume[1]["history"]) == 2 and model.resume[1]["step"] == 8
        content = json.loads(run("info", tmp_path / "cut.npz", "--json").stdout)
        assert not content["finished"]
        run("train", "--resume", tmp_path / "cut.npz", "--threads", "1")
        assert (tmp_path / "cut.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


@pytest.mark.slow
def test_ctrl_c_from_outside_ends_a_process_cleanly(tmp_path):
    script = (
        "from pathlib import Path\n"
        "from tigra.training.gradient import BatchGradient\n"
        "from tigra_cli.main import main\n"
        "right = BatchGradient.__call__\n"
        "BatchGradient.__call__ = lambda *arguments: (Path('begun').touch(), right(*arguments))[1]\n"
        "main()\n"
    )
    words = ["train", "mnist-012", *QUICK, "--epochs", "20000", "--out", "long.npz"]
    process = subprocess.Popen(
        [sys.executable, "-c", script, *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job would ignore it
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "begun").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130 and "Traceback" not in err and out == ""
    assert "Continue with: tigra train --resume" in err
    assert set(os.listdir(tmp_path)) == {"begun", "long.npz"} and load_model(tmp_path / "long.npz").resume is not None


@pytest.mark.slow
def test_a_run_is_saved_while_it_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("tigra.experiments.runs.perform.__defaults__", (None, None, 0, None))
    saved = []
    monkeypatch.setattr(
        "tigra.experiments.runs.save",
        lambda network, out, facts, resume: saved.append((facts["best_epoch"], resume is not None)),
    )
    run("train", "mnist-012", *QUICK, "--out", tmp_path / "model.npz")
    resumable = [resumable for _, resumable in saved]  # after each step and epoch; the last save adds the report
    assert len(resumable) > 20 and resumable == [True] * (len(saved) - 3) + [False] * 3


def test_a_finished_run_has_nothing_to_resume(here):
    result = run("train", "--resume", "model.npz", expect=1)
    assert "model.npz has a finished run with its report, which cannot be resumed" in result.stderr


def test_resume_takes_its_settings_from_the_file(here):
    for words in (["--epochs", "9"], ["--seed", "1"], ["--mixing", "full"], ["--interpolation", "linear"]):
        result = run("train", "--resume", "model.npz", *words, expect=2)
        assert f"leave out {words[0]}" in result.stderr


def test_resuming_from_a_file_that_does_not_say_how_is_refused(tmp_path, here, small_splits):
    network = tigra.load("model.npz")
    arrays = dict.fromkeys(("current", "best"), network.learned)
    arrays |= dict.fromkeys(("adam_mean", "adam_square"), network.parameters)
    for facts, numbers in (
        ({}, {}),
        ({"dataset": "mnist-012", "dataset_options": {"seed": 0}}, {"options": {"epochs": 3}}),
        ({"dataset": "mnist-012", "dataset_options": {"seed": 0}}, {"options": {"nonsense": 3}}),
        ({"dataset": "mnist-012", "dataset_options": {"seed": -1}}, {"options": {"epochs": 3}}),
    ):
        tigra.save(network, tmp_path / "odd.npz", facts, (arrays, numbers))
        result = run("train", "--resume", tmp_path / "odd.npz", expect=1)
        assert "has no usable record of its run" in result.stderr


# --- bad input: one sentence, the right status, nothing left behind ---------------------------------------


@pytest.mark.parametrize(
    "words, status, message",
    [
        (["train", "mnist-99"], 2, "There is no data set 'mnist-99'; choose one of mnist-012, mnist-rot"),
        (["train"], 2, "Give a DATASET"),
        (["train", "mnist-012", "--architecture", "SC[3"], 2, "position 5: expected ',' and SC's degree"),
        (["train", "mnist-012", "--architecture", "DP[785]-S[1]", "--margin", "0"], 2, "use at most 784"),
        (["train", "mnist-012", "--architecture", "SC[3, 3]"], 2, "add a statistics layer"),
        (["train", "mnist-012", "--epochs", "0"], 2, "0 is not in the range x>=1"),
        (["train", "mnist-012", "--epochs", "many"], 2, "'many' is not a valid integer range"),
        (["train", "mnist-012", "--learning-rate", "-0.1"], 2, "-0.1 is not in the range x>0"),
        (["train", "mnist-012", "--learning-rate", "nan"], 2, "learning_rate must be a number above 0"),
        (["train", "mnist-012", "--smoothing", "1e9"], 2, "smoothing must be at most"),
        (["train", "mnist-012", "--threads", "0"], 2, "0 is not in the range"),
        (["train", "mnist-012", "--seed", "-1"], 2, "-1 is not in the range"),
        (["train", "mnist-012", "--out", "."], 2, "is a directory"),
        (["train", "mnist-012", "--out", "nowhere/model.npz"], 1, "No such file or directory; choose another file"),
        (["train", "--resume", "nothing.npz"], 2, "does not exist"),
        (["train", "--resume", "note.png"], 1, "note.png is damaged or not a tigra model file"),
        (["evaluate", "note.png"], 1, "note.png is damaged or not a tigra model file"),
        (["evaluate", "nothing.npz"], 2, "does not exist"),
        (["evaluate", "."], 2, "is a directory"),
        (["evaluate", "model.npz", "cifar"], 2, "There is no data set 'cifar'"),
        (["evaluate", "model.npz", "--runs", "0"], 2, "0 is not in the range"),
        (["evaluate", "small.npz"], 2, "small.npz does not record its data set"),
        (["evaluate", "small.npz", "mnist-012"], 2, "expects images of 5x5, but mnist-012 has 28x28"),
        (["evaluate", "two.npz", "mnist-012"], 2, "has the classes 0, 1, but mnist-012 has 0, 1, 2"),
        (["figures", "note.png"], 1, "note.png is damaged or not a tigra model file"),
        (["figures", "small.npz"], 2, "small.npz does not record its data set"),
        (["figures", "small.npz", "--dataset", "mnist-012"], 2, "expects images of 5x5, but mnist-012 has 28x28"),
        (["figures", "two.npz", "--dataset", "mnist-012"], 2, "has the classes 0, 1, but mnist-012 has 0, 1, 2"),
        (["figures", "model.npz", "--dataset", "cifar"], 2, "There is no data set 'cifar'"),
        (["figures", "model.npz", "--image", "100"], 2, "The test image must be from 0 to 99, got 100"),
        (["figures", "model.npz", "--out", "note.png"], 2, "is a file"),
        (["predict", "model.npz"], 2, "Missing argument 'PATH...'"),
        (["predict", "model.npz", "nothing.png"], 1, "No such file"),
        (["predict", "model.npz", "/dev/null"], 1, "not a regular file"),
        (["predict", "model.npz", "nan.tiff"], 1, "nan.tiff has NaN or infinite pixels"),
        (["predict", "digit0.png", "digit0.png"], 1, "digit0.png is damaged or not a tigra model file"),
        (["info", "note.png"], 1, "not a tigra model file"),
        (["gradcheck", "--layer", "Convolution"], 2, "choose one of SpectralConv, PairedConv"),
        (["fly"], 2, "No such command 'fly'"),
        (["train", "mnist-012", "--speed", "9"], 2, "No such option"),
    ],
)
def test_bad_input_gets_one_sentence_and_leaves_nothing_behind(here, words, status, message):
    tigra.save(tigra.build_network("S[1]-FC[2]", (5, 5), 3), "small.npz")
    tigra.save(tigra.build_network("S[1]-FC[2]", (28, 28), 2), "two.npz")
    Image.fromarray(np.full((4, 4), np.nan, np.float32)).save("nan.tiff")
    before = set(os.listdir(here))
    result = run(*words, expect=status)
    assert message in result.stderr and result.stdout == ""
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("Error: ") and "Traceback" not in result.output
    assert set(os.listdir(here)) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    result = run("train", "mnist-012", *QUICK, "--out", tmp_path / "model.npz", expect=1)
    assert "Permission denied; choose another file with --out" in result.stderr


def test_running_out_of_memory_gets_a_sentence(monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr("tigra_cli.train.load_dataset", fail)
    assert "Not enough memory" in run("train", "mnist-012", expect=1).stderr


def test_mistakes_in_tigra_itself_are_not_hidden(monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr("tigra_cli.train.load_dataset", fail)
    assert isinstance(CliRunner().invoke(main, ["train", "mnist-012"]).exception, ZeroDivisionError)


# --- help ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_json(name):
    text = run(name, "--help").stdout
    command = main.get_command(None, name)
    assert "Example:" in text and f"tigra {name}" in text and "--json" in text
    assert command.help.splitlines()[0] == COMMANDS[name], "the list of commands repeats the first line of the help"
    for parameter in command.params:
        assert not isinstance(parameter, click.Option) or parameter.help, f"{parameter.name} has no help"


def test_the_list_of_commands_is_shown_without_loading_them():
    code = "import sys; from tigra_cli.main import main; main(['--help'], standalone_mode=False); "
    code += "print(sorted({'numpy', 'scipy', 'numba', 'tigra'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]" and all(name in result.stdout for name in COMMANDS)


def test_version_is_the_packages():
    assert run("--version").stdout == f"tigra {tigra.__version__}\n"


@pytest.mark.slow
def test_methods_to_compare_with_are_trained_or_fitted_by_their_recipes(tmp_path, monkeypatch):
    monkeypatch.setenv("TIGRA_CACHE", str(tmp_path / "cache"))
    out = ["--out", tmp_path / "model.npz"]
    report = json.loads(run("train", "mnist-012", "--method", "convnet", "--epochs", "1", *out, "--json").stdout)
    assert report["architecture"] == "C[3]-P[2]-C[6]-P[2]-FC[50]-FC[30]-FC[10]"
    paper = run("train", "mnist-012", "--method", "convnet", "--recipe", "paper", "--epochs", "1", *out).stdout
    assert "9621 parameters" in paper and load_model(tmp_path / "model.npz").network.options["dense_init"] == "paper"
    fitted = run("train", "mnist-012", "--method", "deepscat", "--recipe", "paper", "--architecture",
                 "W[1, 2]-PCA[2]", *out).stdout  # fmt: skip
    assert "W[1, 2]-PCA[2]" in fitted and "fitted as printed" in fitted and "best epoch" not in fitted
    info = run("info", tmp_path / "model.npz").stdout
    assert "W[1, 2]-PCA[2]" in info and "fitted on mnist-012" in info
    first = run("evaluate", tmp_path / "model.npz", "--runs", "1").stdout
    with monkeypatch.context() as patch:
        patch.setattr(
            "tigra.baselines.deepscat.scattering.Scattering.features", None
        )  # all that is needed is found in the cache
        assert run("evaluate", tmp_path / "model.npz", "--runs", "1").stdout == first
    refused = run("train", "mnist-012", "--method", "deepscat", "--epochs", "3", expect=2)
    assert "--epochs has no effect on DeepScat" in refused.stderr
    refused = run("train", "mnist-012", "--method", "stn", "--mixing", "full", expect=2)
    assert "--mixing has no effect here: it needs SC layers" in refused.stderr
    refused = run("train", "mnist-012", "--outside", "border", expect=2)
    assert "--outside has no effect here: it needs ST layers" in refused.stderr
    run("train", "mnist-012", "--method", "stn", "--outside", "border", "--epochs", "1", *out)
    assert load_model(tmp_path / "model.npz").network.options["outside"] == "border"
    assert "trained on mnist-012, 1 epoch (" in run("info", tmp_path / "model.npz").stdout
    run("train", "mnist-012", "--method", "stn", "--architecture", "C[2]-ST[6]-P[4]-FC[3]", "--epochs", "2", *out)
    assert "trained on mnist-012, 2 epochs (" in run("info", tmp_path / "model.npz").stdout
    refused = run("train", "mnist-012", "--method", "deepscat", "--architecture", "W[1, 2]", expect=2)
    assert "DeepScat is W[order, octaves]-PCA[dimension]" in refused.stderr
    assert "need a TIGraNet" in run("figures", tmp_path / "model.npz", "--out", tmp_path / "f", expect=2).stderr


@pytest.mark.slow
def test_ctrl_c_ends_the_report_on_a_fitted_classifier(tmp_path, monkeypatch):
    """While it is measured, which takes long, Ctrl-C is not only noted: it interrupts; the model is there already."""
    monkeypatch.setenv("TIGRA_CACHE", str(tmp_path / "cache"))

    def interrupted(*_, **__):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("tigra_cli.train.run_report", interrupted)
    out = tmp_path / "model.npz"
    result = run("train", "mnist-012", "--method", "deepscat", "--recipe", "paper", "--architecture", "W[0, 1]-PCA[1]",
                 "--out", out, expect=2)  # fmt: skip
    assert "use an order of at least 1, as W[0, 1] has one feature" in result.stderr
    result = run("train", "mnist-012", "--method", "deepscat", "--recipe", "paper", "--architecture", "W[1, 1]-PCA[1]",
                 "--out", out, expect=130)  # fmt: skip
    assert f"Fitted and saved as {out}, but without a report; get it with: tigra train --resume {out}" in result.stderr
    monkeypatch.undo()
    assert f"fitted, 0 s on 1 thread, saved as {out}" in run("train", "--resume", out, "--threads", "1").stdout
    assert load_model(out).network.is_fitted
