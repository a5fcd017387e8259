"""What one seed decides, it decides for ever: models are only as good as the split they are tested with."""

import hashlib

import numpy as np
import pytest

from tigra import DatasetError, UsageError
from tigra.datasets.splits import draw, draw_stratified
from tigra.seeding import generator


def test_the_numbers_of_seed_0_are_the_same_on_every_machine_and_for_ever():
    """A change here would move training images of saved models into the test."""
    drawn = draw(54_051, {"n_train": 50_000, "n_valid": 3_000}, generator(0, "split"))  # mnist-rot and mnist-trans
    sums = {name: hashlib.sha256(rows.astype("<i8")).hexdigest()[:16] for name, rows in drawn.items()}
    assert sums == {"n_train": "825cf35295ff5201", "n_valid": "208b3cc6b81373ce"}
    assert drawn["n_valid"][:5].tolist() == [24, 50, 51, 66, 94]
    mask = draw_stratified(np.repeat([0, 1], 20), 0.15, generator(0, "split"), "ab")
    assert np.flatnonzero(mask).tolist() == [1, 2, 16, 31, 32, 34]
    assert generator(0, "train rotations").integers(4, size=8).tolist() == [1, 3, 1, 3, 1, 1, 0, 2]
    angles = generator(0, "evaluate 0").uniform(0, 360, 3)
    np.testing.assert_allclose(angles, [122.557898, 355.269881, 48.714767], atol=1e-6)  # six digits are written
    angles = np.random.default_rng(0).uniform(0, 360, 3)
    np.testing.assert_allclose(angles, [229.306207, 97.123217, 14.750469], atol=1e-6)


def test_what_is_drawn_is_disjoint_and_in_rising_order():
    drawn = draw(100, {"a": 40, "b": 30}, np.random.default_rng(1))
    assert [len(rows) for rows in drawn.values()] == [40, 30] and not set(drawn["a"]) & set(drawn["b"])
    assert all(np.all(np.diff(rows) > 0) for rows in drawn.values())


def test_strata_have_at_least_one_and_never_all():
    labels = np.array([0] * 2 + [1] * 100)
    mask = draw_stratified(labels, 0.15, np.random.default_rng(0), ["few", "many"])
    assert np.bincount(labels[mask]).tolist() == [1, 15]
    with pytest.raises(DatasetError, match="'one' has too few"):
        draw_stratified(np.array([0, 1, 1]), 0.5, np.random.default_rng(0), ["one", "two"])


@pytest.mark.parametrize("sizes", [{"a": 0}, {"a": 1.5}, {"a": 6, "b": 5}])
def test_what_cannot_be_drawn_is_refused(sizes):
    with pytest.raises(UsageError):
        draw(10, sizes, np.random.default_rng(0))
