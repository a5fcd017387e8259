"""`--size auto`: by the pictures, and by the time that training takes."""

import numpy as np
import pytest
from PIL import Image

from tests.cli.running import run
from tigra.errors import DatasetError, UsageError
from tigra.experiments.methods import METHODS
from tigra.experiments.own_data.sizing import choose_size

TIGRANET = METHODS["tigranet"]


@pytest.fixture
def folder(tmp_path, rng):
    for number in range(10):
        place = tmp_path / "things" / "ab"[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (70, 60), dtype=np.uint8)).save(place / f"{number}.png")
    return tmp_path / "things"


def test_the_size_follows_the_pictures_and_the_time(folder, tmp_path):
    recipe = TIGRANET.recipe("folder")
    free = choose_size(folder, TIGRANET, recipe, budget=1e9)
    assert free.size == (70, 70) and free.pictures == (70, 60), "never larger than the pictures"
    tight = choose_size(folder, TIGRANET, recipe, budget=free.seconds / 2)
    assert 28 < tight.size[0] < 70 and tight.seconds <= free.seconds / 2
    assert choose_size(folder, TIGRANET, recipe, budget=0).size == (28, 28), "the smallest, if nothing is in time"
    assert choose_size(folder, TIGRANET, recipe, threads=2).seconds == pytest.approx(free.seconds / 2)
    np.savez(tmp_path / "a.npz", images=np.zeros((10, 90, 80)), labels=np.arange(10) % 2)
    assert choose_size(tmp_path / "a.npz", TIGRANET, recipe, budget=1e9).size == (90, 90)
    np.savez(tmp_path / "b.npz", images=np.zeros((10, 90)), labels=np.arange(10) % 2)
    with pytest.raises(DatasetError, match="expected images \\(n, height, width\\)"):
        choose_size(tmp_path / "b.npz", TIGRANET, recipe)
    np.savez(tmp_path / "b.npz", x=np.zeros((10, 9, 9)))
    with pytest.raises(DatasetError, match="no train_images and train_labels, or images and labels, only 'x'"):
        choose_size(tmp_path / "b.npz", TIGRANET, recipe)
    with pytest.raises(UsageError, match="--size auto is for folders and .npz files, got mnist-rot"):
        choose_size("mnist-rot", TIGRANET, recipe)
    with pytest.raises(UsageError, match="time that deepscat takes is not known"):
        choose_size(folder, METHODS["deepscat"], METHODS["deepscat"].recipe("folder"))


@pytest.mark.slow
def test_the_command_says_both(folder, tmp_path):
    quick = "--architecture", "SC[1, 1]-S[1]", "--epochs", "1", "--out", tmp_path / "m.npz"
    said = run("train", folder, "--size", "auto", *quick)
    assert "the size is 70x70, from pictures of 70x60; training takes about 1 s" in said.stderr
    assert "70x70 grey" in said.stdout
