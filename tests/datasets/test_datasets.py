import gzip
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tigra
from tigra.datasets.splits import turned_at_random

DATA = Path(__file__).parents[2] / "data"


def test_mnist_012_is_500_100_100_digits_in_0_to_1(mnist_012):
    for split, n in (
        (mnist_012.train, 500),
        (mnist_012.valid, 100),
        (mnist_012.test, 100),
        (mnist_012.test_upright, 100),
    ):
        assert split.images.shape == (n, 28, 28) and split.labels.shape == (n,)
        assert split.images.min() >= 0 and split.images.max() <= 1
        assert set(split.labels) == {0, 1, 2} and np.issubdtype(split.labels.dtype, np.integer)
    assert mnist_012.image_shape == (28, 28) and mnist_012.class_names == ["0", "1", "2"]


def test_no_digit_is_in_two_splits(mnist_012):
    splits = mnist_012.train, mnist_012.valid, mnist_012.test_upright
    digests = [{hashlib.sha256(image).digest() for image in split.images} for split in splits]
    assert [len(each) for each in digests] == [500, 100, 100]
    assert not (digests[0] & digests[1] or digests[0] & digests[2] or digests[1] & digests[2])


def test_test_digits_are_turned_by_the_seed(mnist_012):
    same, other = tigra.load_dataset("mnist-012", seed=0), tigra.load_dataset("mnist-012", seed=1)
    np.testing.assert_array_equal(mnist_012.test.images, same.test.images)
    assert np.abs(mnist_012.test.images - other.test.images).max() > 0.5
    np.testing.assert_array_equal(mnist_012.train.images, other.train.images)
    np.testing.assert_array_equal(mnist_012.test.labels, mnist_012.test_upright.labels)


def test_fresh_tests_differ_and_come_again(mnist_012):
    first, again, other = (mnist_012.fresh_test([0, run]) for run in (1, 1, 2))
    np.testing.assert_array_equal(first.images, again.images)
    assert np.abs(first.images - other.images).max() > 0.5


def test_angles_cover_the_whole_circle(monkeypatch):
    """Each test digit has an angle of its own in [0, 360)."""
    angles = []
    monkeypatch.setattr("tigra.datasets.splits.rotate", lambda images, degrees, *_, **__: angles.extend(degrees))
    turned_at_random(np.zeros((1000, 3, 3)), np.random.default_rng(0))
    counts, _ = np.histogram(angles, bins=8, range=(0, 360))
    assert len(set(angles)) == 1000 == counts.sum() and counts.min() > 80


def test_interpolation_is_a_parameter_and_part_of_the_protocol():
    linear = tigra.load_dataset("mnist-012", interpolation="linear")
    assert "linear" in linear.protocol and linear.options["interpolation"] == "linear"
    assert np.abs(linear.test.images - tigra.load_dataset("mnist-012").test.images).max() > 0.01


def test_unknown_data_set_is_refused_with_what_there_is():
    with pytest.raises(tigra.UsageError, match="'mnist'; choose one of mnist-012"):
        tigra.load_dataset("mnist")


def test_embedded_digits_are_small():
    assert (DATA / "mnist-012.npz").stat().st_size < 400_000


def test_drawing_script_refuses_files_that_are_not_mnists(tmp_path):
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(b"\0\0\x08\x01\0\0\0\x01\x05"))
    result = subprocess.run(
        [sys.executable, DATA / "draw_mnist_012.py", tmp_path], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1 and "is not MNIST's: SHA-256" in result.stderr


def test_drawing_script_draws_these_digits(tmp_path):
    """With MNIST at hand, the embedded file comes out again, byte for byte."""
    folder = Path(os.environ.get("TIGRA_DATA", ""), "mnist")
    if not (folder / "train-images-idx3-ubyte.gz").is_file():
        pytest.skip("to test this, set TIGRA_DATA to a folder with mnist/train-images-idx3-ubyte.gz and so on")
    copy = tmp_path / "draw_mnist_012.py"
    copy.write_bytes((DATA / "draw_mnist_012.py").read_bytes())
    subprocess.run([sys.executable, copy, folder], check=True, capture_output=True)
    drawn, embedded = np.load(tmp_path / "mnist-012.npz"), np.load(DATA / "mnist-012.npz")
    assert set(drawn) == set(embedded)
    for name in drawn:
        np.testing.assert_array_equal(drawn[name], embedded[name])
