"""Data sets in .npz files: what they mean, and that hostile ones are refused."""

import io
import json
import zipfile

import numpy as np
import pytest

import tigra
from tests.cli.running import run
from tigra.datasets.npz.loading import load_images, load_test_arrays
from tigra.errors import DatasetError
from tigra.model_file import packaged_models

QUICK = "--architecture", "SC[2, 1]-S[1]-FC[4]", "--epochs", "2"


@pytest.fixture
def arrays(rng):
    """Images of 8x8 pixels in colour, with a grey border, as MedMNIST has them."""
    made = {}
    for part, n in (("train", 30), ("val", 8), ("test", 10)):
        images = np.full((n, 8, 8, 3), 120, np.uint8)
        images[:, 2:6, 2:6] = rng.integers(0, 256, (n, 4, 4, 3))
        made |= {f"{part}_images": images, f"{part}_labels": (np.arange(n) % 2)[:, None]}
    return made


def saved(path, **arrays):
    np.savez_compressed(path, **arrays)
    return path


def test_parts_types_and_names_are_read(tmp_path, arrays):
    splits = tigra.load_dataset(saved(tmp_path / "a.npz", **arrays))
    assert splits.image_shape == (8, 8, 3) and splits.class_names == ["0", "1"] and splits.background == "border"
    assert [len(part.labels) for part in (splits.train, splits.valid, splits.test)] == [30, 8, 10]
    np.testing.assert_array_equal(splits.test.images[:], arrays["test_images"] / 255)
    floats = {name: array / 255 if "images" in name else array[:, 0] for name, array in arrays.items()}
    same = tigra.load_dataset(saved(tmp_path / "b.npz", **floats, class_names=np.array(["cat", "dog"])))
    np.testing.assert_array_equal(same.train.images[:], splits.train.images[:])
    assert same.class_names == ["cat", "dog"]
    names = np.where(arrays["train_labels"] == 0, "cat", "dog")
    drawn = saved(tmp_path / "c.npz", images=arrays["train_images"][..., 0], labels=names)
    grey = tigra.load_dataset(drawn, size=(16, 20), test_rotations=True)
    assert grey.image_shape == (16, 20) and "valid and test drawn" in grey.protocol
    assert len(grey.train.labels) + len(grey.valid.labels) + len(grey.test.labels) == 30
    np.testing.assert_allclose(grey.test.images[:][:, 0, 0], 120 / 255, atol=1e-12)
    again = tigra.load_dataset(drawn, **grey.options)
    np.testing.assert_array_equal(again.test.images[:], grey.test.images[:])
    new = load_test_arrays(drawn, (8, 8), ["cat", "dog"], grey.learned)
    assert new.test.images.shape == (len(grey.test.labels), 8, 8) and new.test_names[0].startswith("c.npz[")


@pytest.mark.slow
def test_train_evaluate_and_predict_take_files_of_arrays(tmp_path, arrays, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved("cells.npz", **arrays)
    made = json.loads(run("train", "cells.npz", *QUICK, "--colour", "no", "--json").stdout)
    assert made["model"] == "cells-model.npz" and "8x8 grey, background from the border" in made["protocol"]
    tested = json.loads(run("evaluate", "cells-model.npz", "cells.npz", "--json").stdout)
    assert tested["n_images"] == 10
    found = json.loads(run("predict", "cells-model.npz", "cells.npz", "--json").stdout)["predictions"]
    assert [entry["image"] for entry in found] == [f"cells.npz[{row}]" for row in range(10)]
    labels = [int(entry["label"]) for entry in found]
    assert np.mean(np.array(labels) == arrays["test_labels"][:, 0]) == pytest.approx(made["accuracy"]["test_upright"])
    assert "would replace the data set" in run("train", "cells.npz", "--out", "cells.npz", expect=2).stderr


@pytest.mark.slow
def test_remarks_on_a_file_of_arrays_and_classes_that_it_does_not_test(tmp_path, arrays, monkeypatch):
    monkeypatch.chdir(tmp_path)
    three = {name: array % 3 if "labels" in name else array for name, array in arrays.items()}
    three["train_labels"] = np.arange(30)[:, None] % 3
    saved("cells.npz", **three)
    words = "train", "cells.npz", *QUICK, "--colour", "no", "--size", "5x5", "--test-rotations", "--json"
    said = json.loads(run(*words).stdout)["remarks"]
    assert any("have colours, but the network sees grey" in text for text in said)
    assert any("8x8 pixels were reduced to 5x5" in text for text in said) and not any("upright" in t for t in said)
    tested = json.loads(run("evaluate", "cells-model.npz", "cells.npz", "--json", "--no-test-rotations").stdout)
    assert tested["runs"] == 1 and tested["classes"][2]["images"] == 0
    assert any("the test pictures were upright" in text for text in tested["remarks"])
    both = run("evaluate", "cells-model.npz", "--test-rotations", "--no-test-rotations", expect=2).stderr
    assert "exclude each other" in both


def test_no_images_are_scaled_to_no_images(tmp_path, arrays):
    splits = tigra.load_dataset(saved(tmp_path / "a.npz", **arrays), size=(12, 10))
    assert splits.test.images[[]].shape == (0, 12, 10, 3)


def broken(path, **changes):
    """An .npz file with members of the given bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in changes.items():
            archive.writestr(f"{name}.npy", content)
    return path


def npy(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"train_images": np.zeros((30, 64))}, "expected images \\(n, height, width\\), or"),
        ({"train_images": np.zeros((30, 8, 8), np.int64)}, "int64; save uint8, uint16 or real numbers"),
        ({"train_images": np.full((30, 8, 8), 200.0)}, "pixels from 200 to 200; scale them to \\[0, 1\\]"),
        (
            {"train_images": np.where(np.arange(30)[:, None, None] == 7, np.nan, np.ones((30, 8, 8)))},
            "not finite numbers, the first in image 7; leave out such images",
        ),
        ({"train_images": np.zeros((30, 3, 8, 8), np.uint8)}, "move the channels to the end with numpy.moveaxis"),
        ({"train_images": np.zeros((30, 8, 8, 4), np.uint8)}, "leave out the fourth channel"),
        ({"train_labels": np.zeros((30, 14), int)}, "expected one whole number or name for each of 30 images"),
        ({"train_labels": np.zeros(30, int)}, "at least two classes, got 1"),
        ({"val_labels": np.full(8, 7)}, "the label 7 in valid, which is not among those in train"),
        ({"test_images": np.zeros((10, 9, 9, 3), np.uint8)}, "have the shapes .*; give all parts the same"),
        ({"class_names": np.array([1, 2])}, "class_names of .* must be a list of different names"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, arrays, change, message):
    with pytest.raises(DatasetError, match=message):
        tigra.load_dataset(saved(tmp_path / "a.npz", **arrays | change))


def test_hostile_files_are_refused_before_anything_is_made(tmp_path, arrays):
    labels, images = npy(arrays["train_labels"]), npy(arrays["train_images"])
    huge = io.BytesIO()
    np.lib.format.write_array_header_1_0(huge, {"descr": "|u1", "fortran_order": False, "shape": (10**6, 10**4, 10**4)})
    pickled = npy(np.array([{}], object), allow_pickle=True)
    for content, message in (
        (huge.getvalue(), "another size than its header says"),
        (images[:-5], "another size than its header says"),
        (pickled, "has the type 'object'"),
        (b"no array", "is damaged or not an .npz file"),
    ):
        with pytest.raises(DatasetError, match=message):
            tigra.load_dataset(broken(tmp_path / "bad.npz", train_images=content, train_labels=labels))
    with pytest.raises(DatasetError, match="has train_images, but no train_labels; add it"):
        tigra.load_dataset(broken(tmp_path / "half.npz", train_images=images))
    with pytest.raises(
        DatasetError, match="no train_images and train_labels, or images and labels, only 'x', 'y'; save"
    ):
        tigra.load_dataset(broken(tmp_path / "other.npz", x=images, y=labels))
    with pytest.raises(DatasetError, match="no images or test_images, only 'x'; save"):
        load_images(broken(tmp_path / "other.npz", x=images), (8, 8))
    with pytest.raises(DatasetError, match="is a model, not a data set; give a folder"):
        tigra.load_dataset(packaged_models()["mnist-012"])
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(DatasetError, match="is damaged or not an .npz file"):
        tigra.load_dataset(tmp_path / "text.npz")
