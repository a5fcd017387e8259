"""Cross-validation: every image is tested once."""

import json

import numpy as np
import pytest

import tigra
from tests.cli.running import run
from tigra.errors import DatasetError, UsageError
from tigra.experiments.own_data.folds import fold_splits


@pytest.fixture
def arrays(tmp_path, rng):
    path = tmp_path / "a.npz"
    np.savez(path, images=rng.random((23, 6, 6)), labels=np.arange(23) % 2)
    return path


def keys(images):
    return [image.tobytes() for image in np.asarray(images)]


def test_every_image_is_tested_once_and_never_by_a_network_that_saw_it(arrays):
    splits = tigra.load_dataset(arrays, test_rotations=True)
    tested = []
    for fold in fold_splits(splits, 4, seed=1):
        parts = [keys(part.images) for part in (fold.train, fold.valid, fold.test_upright)]
        assert sum(map(len, parts)) == len(set().union(*parts)) == 23
        assert np.bincount(fold.test.labels).min() >= 2 and len(np.unique(fold.valid.labels)) == 2
        assert np.abs(fold.test.images[:] - fold.test_upright.images[:]).max() > 0.1
        tested += parts[2]
    assert sorted(tested) == sorted(keys(np.load(arrays)["images"]))
    with pytest.raises(DatasetError, match="from 2 to the 11 images of class '1', got 12"):
        next(fold_splits(splits, 12))
    with pytest.raises(UsageError, match="leave out train_rotations"):
        next(fold_splits(tigra.load_dataset(arrays, train_rotations=4), 4))


@pytest.mark.slow
def test_the_command_prints_mean_and_spread(arrays, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = "train", "a.npz", "--folds", "3", "--architecture", "SC[1, 1]-S[1]", "--epochs", "1"
    found = json.loads(run(*words, "--json").stdout)
    values = found["accuracy"]["test_upright"]["values"]
    assert found["folds"] == len(values) == 3 and not (tmp_path / "a-model.npz").exists()
    assert found["accuracy"]["test_upright"]["mean"] == pytest.approx(np.mean(values))
    assert "over 3 folds" in run(*words).stdout
