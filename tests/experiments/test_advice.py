"""What is said before and after a training on few pictures, or on classes of very different sizes."""

import json

import numpy as np
import pytest

import tigra
from tests.cli.running import run
from tigra.experiments.own_data.advice import on_few_images

SHORT = "--epochs", "1", "--architecture", "OC[2, 1]-S[2]"


@pytest.fixture
def arrays(tmp_path, rng):
    def save(*counts):
        path = tmp_path / "a.npz"
        labels = np.repeat(np.arange(len(counts)), counts)
        np.savez(path, images=rng.random((len(labels), 6, 6)), labels=labels)
        return str(path)

    return save


def test_few_training_pictures_are_said_with_a_hint_to_folds(arrays):
    said = on_few_images(tigra.load_dataset(arrays(3, 20, 5)))
    assert (
        len(said) == 1
        and "pictures: 0 (1), 2 (3);" in said[0]
        and said[0].endswith("--folds 3 to see how much they vary")
    )
    assert "--folds" not in on_few_images(tigra.load_dataset(arrays(3, 20)), is_folded=True)[0]
    assert on_few_images(tigra.load_dataset(arrays(9, 9))) == ()


def test_classes_without_validation_pictures_are_said(tmp_path, rng):
    path, labels = tmp_path / "a.npz", np.repeat([0, 1, 2], 9)
    arrays = {"train_images": rng.random((27, 6, 6)), "train_labels": labels}
    np.savez(path, **arrays, val_images=rng.random((4, 6, 6)), val_labels=[1, 1, 1, 1])
    splits = tigra.load_dataset(str(path))
    (said,) = on_few_images(splits)
    assert said.startswith("there is no validation picture of 0, 2, so")
    assert on_few_images(splits, is_folded=True) == ()


def test_the_command_says_few_pictures_first_and_balanced_classes_in_the_protocol(arrays, tmp_path):
    path, model = arrays(4, 30), str(tmp_path / "m.npz")
    done = run("train", path, "--out", model, "--json", *SHORT)
    report = json.loads(done.stdout)
    assert report["protocol"].endswith("classes weighted to count alike") and "fewer than 5" in report["notes"][0]
    assert not any("--class-weights" in remark for remark in report["remarks"])
    assert tigra.load_model(model).training["protocol"] == report["protocol"]
    plain = json.loads(run("train", path, "--out", model, "--json", "--class-weights", "none", *SHORT).stdout)
    assert "weighted" not in plain["protocol"] and any("--class-weights" in remark for remark in plain["remarks"])
    folds = json.loads(run("train", path, "--json", "--folds", "2", *SHORT).stdout)
    drawn, folded = (
        "valid and test drawn (15% of each class)",
        "2 folds, valid drawn (15% of each class that is not tested)",
    )
    assert folds["protocol"] == report["protocol"].replace(drawn, folded)
    assert "0 (1);" in folds["notes"][0], "as many as there are in a fold"
