"""`tigra evaluate MODEL FOLDER` leaves out what the model was trained on, whatever data set that was."""

import json
import zipfile

import numpy as np
import pytest
from PIL import Image

import tigra
from tests.cli.running import run
from tigra.datasets.learned import Learned
from tigra.images.transforms import resize
from tigra.model_file import load_model


def write_digits(folder, images, labels):
    for number, (image, label) in enumerate(zip(np.asarray(images), labels, strict=True)):
        (folder / str(label)).mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.rint(255 * image).astype(np.uint8)).save(folder / str(label) / f"{number}.png")


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A folder with 30 training, 10 validation and 20 test digits of mnist-012 as PNG files."""
    folder, splits = tmp_path_factory.mktemp("digits"), tigra.load_dataset("mnist-012")
    parts = (splits.train, 30), (splits.valid, 10), (splits.test_upright, 20)
    images = np.concatenate([part.images[:n] for part, n in parts])
    write_digits(folder, images, np.concatenate([part.labels[:n] for part, n in parts]))
    return folder


def test_digits_of_the_training_are_left_out_with_a_note(digits, tmp_path):
    """Also for the packaged model, whose file does not say what it learned: its data set is loaded again."""
    model = tmp_path / "model.npz"
    run("train", "mnist-012", "--epochs", 1, "--architecture", "S[1]", "--out", model)
    assert load_model(model).training["learned"] == tigra.load_dataset("mnist-012").learned_pictures
    for name in (model, "mnist-012"):
        result = json.loads(run("evaluate", name, digits, "--json").stdout)
        assert result["n_images"] == 20
        assert result["notes"] == ["left out 40 of 60 pictures, because the model was trained on them"]


def test_a_file_that_does_not_know_says_so(digits, tmp_path):
    network = tigra.build_network("S[1]", (28, 28), 3)
    tigra.save(network, tmp_path / "model.npz", {"dataset": "elsewhere"})
    result = json.loads(run("evaluate", tmp_path / "model.npz", digits, "--json").stdout)
    assert result["n_images"] == 60
    (note,) = result["notes"]
    assert note == "pictures that the model was trained on may be among those tested (its file does not say which)"
    tigra.save(network, tmp_path / "model.npz", {"dataset": "mnist-012", "split_hash": "other"})
    (note,) = json.loads(run("evaluate", tmp_path / "model.npz", digits, "--json").stdout)["notes"]
    assert "and mnist-012 is not the same any more" in note


def test_digits_are_known_by_their_own_size(tmp_path, digits):
    """A network for 20x20 pixels that was trained on scaled digits: files of digits have 28x28."""
    splits = tigra.load_dataset("mnist-012")
    learned = Learned.of_images(np.rint(255 * splits.train.images).astype(np.uint8))
    assert learned == Learned.of_images(splits.train.images) and learned.shape == (28, 28) and len(learned) == 500
    network = tigra.build_network("S[1]", (20, 20), 3)
    tigra.save(network, tmp_path / "model.npz", {"dataset": "mnist-rot", "learned": learned})
    assert load_model(tmp_path / "model.npz").training["learned"] == learned
    result = json.loads(run("evaluate", tmp_path / "model.npz", digits, "--json").stdout)
    assert result["n_images"] == 30 and "left out 30 of 60" in result["notes"][0]
    assert not np.isin(Learned.of_images(resize(splits.train.images, (20, 20))).numbers, learned.numbers).any()


def test_a_data_set_of_the_users_own_records_its_images_even_if_they_are_rotated():
    splits = tigra.load_dataset("mnist-012")
    own = tigra.Splits("own", splits.train, splits.valid, splits.test, splits.test_upright, ["a", "b", "c"], None)
    assert own.learned is None and own.learned_pictures == splits.learned_pictures
    assert tigra.load_dataset("mnist-012", train_rotations="random").learned_pictures == splits.learned_pictures


def test_a_record_that_lies_is_refused(tmp_path):
    network, learned = tigra.build_network("S[1]", (4, 4), 2), Learned.of_images(np.zeros((3, 4, 4)))
    tigra.save(network, tmp_path / "model.npz", {"learned": learned})
    assert len(load_model(tmp_path / "model.npz").training["learned"]) == 1
    with zipfile.ZipFile(tmp_path / "model.npz") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for lie in ({"pictures": 10**9}, {"pictures": -1}, {"shape": [0, 4]}, {"shape": [10**9, 4]}, {"pictures": 2}):
        meta = json.loads(members["meta.json"])
        meta["learned"] |= lie
        with zipfile.ZipFile(tmp_path / "lying.npz", "w") as archive:
            for name, content in (members | {"meta.json": json.dumps(meta).encode()}).items():
                archive.writestr(name, content)
        with pytest.raises(tigra.ModelFileError, match="learned"):
            tigra.load(tmp_path / "lying.npz")
