"""Cross-validation: every image is tested once."""

import contextlib
import json
import subprocess
import sys

import numpy as np
import pytest
from tigra_cli.shared.folding import Folds

import tigra
from benchmarks.attack import ranks
from tests.cli.running import run
from tigra.errors import DatasetError, TrainingError
from tigra.experiments.own_data.folds import fold_protocol, fold_splits
from tigra.files.claims import claim

WORDS = "train", "a.npz", "--folds", "3", "--architecture", "SC[1, 1]-S[1]", "--epochs", "1"


@pytest.fixture
def arrays(tmp_path, rng):
    path = tmp_path / "a.npz"
    np.savez(path, images=rng.random((23, 6, 6)), labels=np.arange(23) % 2)
    return path


@contextlib.contextmanager
def claim_in(folder, name):
    folder.mkdir()
    with claim(folder / name):
        yield


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


def test_the_protocol_says_folds_and_training_images_are_rotated_if_asked(arrays):
    upright = tigra.load_dataset(arrays)
    fold = next(fold_splits(upright, 4))
    words = "4 folds, valid drawn (15% of each class that is not tested)"
    kind = "6x6 grey, round window, mean subtracted"
    assert fold.protocol == f"{kind}, {words}, train and valid upright, test as in the files"
    asked = tigra.load_dataset(arrays, train_rotations=4)
    turned = next(fold_splits(asked, 4))
    assert f"{words}, train rotated by one of 4 equally spaced angles, valid upright" in turned.protocol
    for part in ("valid", "test", "test_upright"):
        np.testing.assert_array_equal(getattr(turned, part).images[:], getattr(fold, part).images[:])
    for image, original in zip(turned.train.images[:], fold.train.images[:], strict=True):
        assert min(np.abs(image - np.rot90(original, k)).max() for k in range(4)) < 1e-12
    parts = tigra.load_dataset("mnist-012")
    assert fold_protocol(parts, 5).startswith("5 folds, valid drawn (15% of each class that is not tested), train and")


@pytest.mark.slow
def test_the_command_prints_mean_and_spread_and_goes_on_where_it_stopped(arrays, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = json.loads(run(*WORDS, "--json").stdout)
    values = found["accuracy"]["test_upright"]["values"]
    assert found["folds"] == len(values) == 3 and not (tmp_path / "a-model.npz").exists()
    assert found["accuracy"]["test_upright"]["mean"] == pytest.approx(np.mean(values))
    train, done = Folds.train, []
    monkeypatch.setattr(Folds, "train", lambda folds, number, *more: done.append(number) or train(folds, number, *more))
    with claim_in(tmp_path / "kept", "fold-2-of-3.lock"):
        first = run(*WORDS, "--out", "kept")
    assert done == [1, 3] and "over 2 of 3 folds" in first.stdout and "another process is doing 1" in first.stderr
    (tmp_path / "kept" / "fold-3-of-3.json").write_text("{}")
    again = json.loads(run(*WORDS, "--out", "kept", "--json").stdout)
    assert done == [1, 3, 2, 3] and again == found
    run(*WORDS, "--out", "kept", "--seed", "1")
    assert done[4:] == [1, 2, 3]  # those of another seed are not its own


def test_a_fold_that_fails_is_reported_and_the_others_go_on(arrays, tmp_path, monkeypatch):
    def train(folds, number, watch):
        if number == 2:
            raise TrainingError("The loss rose.")
        return {"test_upright": number / 4}

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Folds, "train", train)
    done = run(*WORDS, expect=1)
    assert done.stderr == "Fold 2: no result. The loss rose.\n" and "25.0 %, 75.0 %" in done.stdout
    assert "number of folds at a time" in run("train", "a.npz", "--jobs", "2", expect=2).stderr


@pytest.mark.slow
@pytest.mark.skipif(ranks.launcher() is None, reason="no MPI here; run: pip install mpi4py mpich")
def test_folds_are_handed_out_to_the_processes_of_mpi(arrays, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [*WORDS, "--json"]
    expected = run(*words).stdout
    command = [ranks.launcher(), "-n", "2", sys.executable, "-m", "tigra", *words]
    done = subprocess.run(command, env=ranks.environment(), capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, expected), done.stderr
