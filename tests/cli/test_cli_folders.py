"""Own pictures from the command line: train, evaluate, predict, resume."""

import hashlib
import json
import os
import shutil
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tigra
from tests.cli.running import run, run_and_stop
from tigra.experiments.runs import Stopped
from tigra.images import store
from tigra.model_file import load_model
from tigra.seeding import generator

pytestmark = pytest.mark.slow

QUICK = ["--recipe", "achiral", "--epochs", "3", "--architecture", "SC[2, 2]-DP[60]-S[3]-FC[8]", "--batch-size", "10"]


def blob(rng, is_ring):
    """A picture of a spot or of a ring, somewhere, light on dark."""
    row, column = np.mgrid[:16, :16] - rng.uniform(6, 10, (2, 1, 1))
    distance = np.hypot(row, column)
    light = np.abs(distance - 4) < 1 if is_ring else distance < 2.5
    return Image.fromarray((np.clip(light + rng.normal(0, 0.05, (16, 16)), 0, 1) * 255).astype(np.uint8))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with shapes/ring and shapes/spot, and a model trained on them."""
    place = tmp_path_factory.mktemp("own")
    rng = np.random.default_rng(0)
    for name in ("ring", "spot"):
        (place / "shapes" / name).mkdir(parents=True)
        for number in range(40):
            blob(rng, name == "ring").save(place / "shapes" / name / f"{number}.png")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(place)
        run("train", "shapes", *QUICK, "--test-rotations", "--epochs", "30")
    return place


@pytest.fixture
def here(place, monkeypatch):
    monkeypatch.chdir(place)
    return place


def test_training_on_a_folder_is_one_command(here):
    result = run("train", "shapes", *QUICK, "--test-rotations", "--out", "again.npz", "--epochs", "30")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("shapes: SC[2, 2]-DP[60]-S[3]-FC[8], ") and "few test images" in result.stderr
    drawn = "valid and test drawn (15% of each class)"
    turned = "test rotated by [0, 360) degrees, cubic interpolation"
    assert lines[1] == f"16x16 grey, {drawn}, train and valid upright, {turned}"
    assert [line.split("  ")[0] for line in lines[3:7]] == ["train", "valid", "test, upright", "test, transformed"]
    model = load_model("again.npz")
    assert model.training["accuracy"]["test_transformed"] > 0.9, "rings and spots are easy to tell apart"
    assert (here / "again.npz").read_bytes() == (here / "shapes.npz").read_bytes()


def test_without_test_rotations_there_is_one_line_for_the_test(here):
    result = run("train", "shapes", *QUICK, "--out", "plain.npz")
    assert [line.split("  ")[0] for line in result.stdout.splitlines()[3:6]] == ["train", "valid", "test"]
    content = json.loads(run("train", "shapes", *QUICK, "--out", "plain.npz", "--json").stdout)
    assert set(content["accuracy"]) == {"train", "valid", "test_upright"}
    assert "leave out --runs" in run("evaluate", "plain.npz", "--runs", "5", expect=2).stderr
    text = run("evaluate", "plain.npz").stdout
    assert "+-" not in text and "on 12 test images of shapes" in text


def test_predict_names_the_classes(here):
    rng = np.random.default_rng(9)
    blob(rng, True).rotate(30).save("ring.png")
    blob(rng, False).resize((100, 100)).save("spot.png")
    predictions = json.loads(run("predict", "shapes.npz", "ring.png", "spot.png", "--json").stdout)["predictions"]
    assert [entry["label"] for entry in predictions] == ["ring", "spot"]
    assert run("predict", "shapes.npz", "ring.png").stdout.startswith("ring.png: ring  (ring: ")


def test_a_picture_of_the_folder_is_predicted_as_it_was_tested(here):
    """Training reads pictures through the cache, predict does not: the same numbers must come out."""
    splits = tigra.load_dataset("shapes", **load_model("shapes.npz").training["dataset_options"])
    network = tigra.load("shapes.npz")
    image = tigra.read_image("shapes/ring/0.png", (16, 16))
    (found,) = [
        split.images[place : place + 1]
        for split in (splits.train, splits.valid, splits.test_upright)
        for place, stored in enumerate(split.images[:])
        if stored.tobytes() == image.tobytes()
    ]
    np.testing.assert_array_equal(network.scores(image[None]), network.scores(found))


def test_few_pictures_are_shown_more_often(here, monkeypatch):
    seen = []

    def stopped(run, *_):
        seen.append(run.training.options.epochs)
        raise Stopped

    monkeypatch.setattr("tigra_cli.train.perform", stopped)
    run("train", "shapes", "--out", "few.npz", expect=130)
    run("train", "shapes", "--out", "few.npz", "--batch-size", "5", expect=130)
    run("train", "shapes", "--out", "few.npz", "--epochs", "7", expect=130)
    assert seen == [200, 67, 7], "800 steps at least: 56 pictures are 4 batches of 16, or 12 of 5"


def test_small_pictures_get_a_smaller_recipe(here):
    run("train", "shapes", "--recipe", "achiral", "--epochs", "1", "--size", "8x8", "--out", "tiny.npz")
    network = tigra.load("tiny.npz")
    assert network.options["architecture"].startswith("SC[10, 4]-DP[128]-SC[20, 4]-DP[64]-")


def test_inverted_pictures_are_predicted_inverted(here):
    shutil.rmtree("dark", ignore_errors=True)
    for path in (here / "shapes").rglob("*.png"):
        target = here / "dark" / path.relative_to(here / "shapes")
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(255 - np.asarray(Image.open(path))).save(target)
    run("train", "dark", *QUICK, "--invert", "--out", "dark.npz")
    plain = json.loads(run("predict", "dark.npz", "dark/ring/0.png", "--json").stdout)["predictions"][0]
    light = json.loads(run("predict", "dark.npz", "shapes/ring/0.png", "--invert", "--json").stdout)["predictions"][0]
    assert plain["probabilities"] == light["probabilities"]
    shutil.rmtree("dark")


def test_evaluate_uses_the_split_of_the_training_whatever_its_own_seed(here):
    """Another seed must not move training images into the test."""
    options = load_model("shapes.npz").training["dataset_options"]
    splits, network = tigra.load_dataset("shapes", **options), tigra.load("shapes.npz")
    values = json.loads(run("evaluate", "shapes.npz", "--seed", "7", "--runs", "2", "--json").stdout)
    expected = [tigra.accuracy(network, splits.fresh_test(generator(7, f"evaluate {run}"))) for run in range(2)]
    assert values["accuracy"]["values"] == expected and values["n_images"] == 12


def test_evaluate_on_another_folder_tests_all_of_it(here, tmp_path):
    rng = np.random.default_rng(5)
    for number in range(3):
        (tmp_path / "new" / "spot").mkdir(parents=True, exist_ok=True)
        blob(rng, False).save(tmp_path / "new" / "spot" / f"{number}.png")
    text = run("evaluate", "shapes.npz", tmp_path / "new").stdout
    assert f"on 3 test images of {tmp_path / 'new'}" in text
    (tmp_path / "new" / "cube").mkdir()
    blob(rng, False).save(tmp_path / "new" / "cube" / "0.png")
    assert (
        "class 'cube', which the network does not have"
        in run("evaluate", "shapes.npz", tmp_path / "new", expect=1).stderr
    )


def test_evaluate_never_tests_what_was_learned_wherever_the_folder_lies(here, tmp_path):
    """The same folder from another place, a copy, a copy with more in it: the learned pictures stay out."""
    test = json.loads(run("evaluate", "shapes.npz", "--json").stdout)
    shutil.copytree(here / "shapes", tmp_path / "copy")
    os.chdir(tmp_path)
    for folder in (here / "shapes", "copy"):
        again = json.loads(run("evaluate", here / "shapes.npz", folder, "--json").stdout)
        assert again["n_images"] == 12 and again["accuracy"] == test["accuracy"]
        assert "without 68 that the model was trained on" in again["protocol"]
    (tmp_path / "copy" / "ring" / "note.txt").write_text("text")
    blob(np.random.default_rng(6), True).save(tmp_path / "copy" / "ring" / "new.png")
    more = json.loads(run("evaluate", here / "shapes.npz", "copy", "--json").stdout)
    assert more["n_images"] == 13 and more["notes"] == [
        "skipped 1 of 82 files: 1 file that is not a picture (ring/note.txt)",
        "left out 68 of 81 pictures, because the model was trained on them",
    ]
    shutil.rmtree("copy/spot")
    for path in sorted((tmp_path / "copy" / "ring").glob("*.png")):
        image = tigra.read_image(path, (16, 16))
        digest = hashlib.blake2b(np.rint(image * 65535).astype("<u2").tobytes(), digest_size=16).hexdigest()
        if not load_model(here / "shapes.npz").training["learned"].contains([digest]).all():
            path.unlink()
    assert "the network was trained on all 34 others" in run("evaluate", here / "shapes.npz", "copy", expect=1).stderr


def test_evaluate_refuses_a_named_data_set_that_is_split_in_another_way(here, monkeypatch):
    run("train", "mnist-012", *QUICK, "--out", "digits.npz")
    monkeypatch.setattr("tigra_cli.shared.model_data.split_hash", lambda splits: "another")
    assert "differ from those in training" in run("evaluate", "digits.npz", expect=1).stderr


def test_evaluate_says_when_the_folder_is_not_here(here, tmp_path):
    os.chdir(tmp_path)
    message = run("evaluate", here / "shapes.npz", expect=2).stderr
    assert "shapes is neither a folder or file that exists nor a data set that is registered" in message


def test_ctrl_c_during_the_report_says_that_the_model_is_saved(here, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    run("train", "shapes", *QUICK, "--out", "whole.npz")
    with monkeypatch.context() as patched:
        patched.setattr("tigra.experiments.runs.outcomes", stop)
        result = run("train", "shapes", *QUICK, "--out", "cut.npz", expect=130)
    wanted = "Trained and saved as cut.npz, but without a report; get it with: tigra train --resume cut.npz"
    assert wanted in result.stderr and load_model("cut.npz").resume is None
    report = json.loads(run("train", "--resume", "cut.npz", "--json").stdout)
    assert Path("cut.npz").read_bytes() == Path("whole.npz").read_bytes()
    assert report["accuracy"] == load_model("whole.npz").training["accuracy"] and report["epochs"] == 3


def test_what_was_skipped_is_told_on_standard_error_and_in_json(here, tmp_path):
    shutil.copytree(here / "shapes", tmp_path / "shapes")
    (tmp_path / "shapes" / "ring" / "note.txt").write_text("text")
    result = run("train", tmp_path / "shapes", *QUICK, "--out", tmp_path / "model.npz", "--json")
    note = "skipped 1 of 81 files: 1 file that is not a picture (ring/note.txt)"
    assert result.stderr == f"Note: {note}.\n" and json.loads(result.stdout)["notes"] == [note]


@pytest.mark.usefixtures("heeds_signals")
def test_a_run_on_a_folder_can_be_resumed_even_if_the_folder_has_moved(here, tmp_path):
    shutil.copytree(here / "shapes", tmp_path / "first")
    os.chdir(tmp_path)
    run_and_stop(signal.SIGINT, 2, 3, "train", "first", *QUICK, "--out", "cut.npz")
    run("train", "first", *QUICK, "--out", "whole.npz")
    (tmp_path / "first").rename(tmp_path / "second")
    message = run("train", "--resume", "cut.npz", expect=2).stderr
    assert "The folder first does not exist; give its new place: tigra train FOLDER --resume cut.npz" in message
    run("train", "second", "--resume", "cut.npz")
    whole, cut = load_model("whole.npz"), load_model("cut.npz")
    np.testing.assert_array_equal(whole.network.parameters, cut.network.parameters)


@pytest.mark.usefixtures("heeds_signals")
def test_resuming_with_other_pictures_is_refused(here, tmp_path):
    shutil.copytree(here / "shapes", tmp_path / "first")
    os.chdir(tmp_path)
    run_and_stop(signal.SIGINT, 2, 3, "train", "first", *QUICK, "--out", "cut.npz")
    for number in range(20):
        blob(np.random.default_rng(number), True).save(f"first/ring/{number}.png")
    assert (
        "images of first have changed since cut.npz was saved" in run("train", "--resume", "cut.npz", expect=1).stderr
    )


@pytest.mark.usefixtures("heeds_signals")
def test_ctrl_c_while_pictures_are_decoded_stops_at_once_and_leaves_nothing(here, tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        if once.acquire(blocking=False):  # a second Ctrl-C would end this process
            signal.raise_signal(signal.SIGINT)
        return right(*arguments, **options)

    right, once = store.decode_image, threading.Lock()
    monkeypatch.setattr(store, "decode_image", interrupted)
    monkeypatch.setenv("TIGRA_CACHE", str(tmp_path / "cache"))
    cut = run("train", "shapes", *QUICK, "--out", tmp_path / "model.npz", expect=130)
    assert cut.stderr.strip().endswith("Stopped.")
    assert os.listdir(tmp_path) == ["cache"] and not os.listdir(tmp_path / "cache" / "images")


@pytest.mark.parametrize(
    "words, status, message",
    [
        (["train", "nothing"], 2, "There is no data set 'nothing'; choose one of"),
        (["train", "shapes/ring"], 1, "no subfolders with pictures"),
        (["train", "shapes", "--size", "20"], 2, "Expected a size such as 50x50 (height x width in pixels), got '20'"),
        (["train", "shapes", "--size", "0x5"], 2, "(height x width in pixels), got '0x5'"),
        (["train", "shapes", "--size", "3000x3000"], 2, "Training this network needs about"),  # before decoding
        (["train", "shapes", "--fold", "3"], 2, "shapes has no option --fold; it has --seed, --interpolation, --size"),
        (["train", "mnist-012", "--test-rotations"], 2, "mnist-012 has no option --test-rotations"),
        (["train", "mnist-012", "--train-rotations", "many"], 2, "Expected a number of angles from 0 to 360"),
        (["train", "shapes", "--train-rotations", "361"], 2, "Expected a number of angles"),
        (["train", "shapes", "--data-dir", "nowhere"], 2, "'nowhere' does not exist"),
        (["train", "shapes", "--data-dir", "."], 2, "--data-dir is for MNIST and ETH-80"),
        (["train", "eth-80", "--fold", "3"], 2, "fold is for split='object'"),
        (["train", "eth-80", "--split", "object", "--n-train", "9"], 2, "n_train and n_valid are for split='image'"),
        (["train", "mnist-rot", "--data-dir", "."], 1, "Run 'tigra data fetch mnist', or put"),
        (["evaluate", "shapes.npz", "mnist-012"], 2, "has the classes ring, spot, but mnist-012 has 0, 1, 2"),
        (["evaluate", "shapes.npz", "--all-test"], 2, "shapes has no option --all-test"),
        (["evaluate", "shapes.npz", "elsewhere"], 2, "There is no data set 'elsewhere'"),
    ],
)
def test_bad_input_gets_one_sentence(here, monkeypatch, words, status, message):
    monkeypatch.delenv("TIGRA_DATA", raising=False)
    result = run(*words, expect=status)
    assert message in result.stderr and "Traceback" not in result.output and result.stdout == ""


def test_a_window_is_in_the_protocol_of_training_and_evaluation(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, period in (("narrow", 4), ("wide", 8)):
        (tmp_path / "stripes" / name).mkdir(parents=True)
        for number in range(12):
            waves = 0.5 + 0.3 * np.sin(2 * np.pi * (np.arange(16) + rng.uniform(0, 8)) / period)
            pixels = np.tile(255 * waves, (16, 1)).astype(np.uint8)
            Image.fromarray(pixels + rng.integers(0, 9, (16, 16), np.uint8)).save(f"stripes/{name}/{number}.png")
    words = "round window, mean subtracted"
    assert words in run("train", "stripes", "--epochs", "1", "--out", "model.npz").stdout
    for more in ([], ["stripes"], ["stripes", "--json"]):
        assert words in run("evaluate", "model.npz", *more).stdout


def test_baselines_are_tested_on_pictures_as_they_were_read_in_training(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, rows in (("tall", slice(2, 10)), ("flat", slice(5, 7))):
        (tmp_path / "grey" / name).mkdir(parents=True)
        for number in range(8):
            pixels = rng.integers(176, 184, (12, 12), np.uint8)
            pixels[rows, 4:8] = 60
            Image.fromarray(pixels).save(f"grey/{name}/{number}.png")
    run("train", "grey", "--method", "convnet", "--epochs", "1", "--out", "model.npz")
    words = run("evaluate", "model.npz").stdout
    assert "on 2 test images" in words and "background from the border, without 14 that" in words
