"""Dynamic pooling against Algorithm 1 as a loop, and its rule for ties."""

import numpy as np
import pytest

from tigra import DynamicPool, GraphSignal, ShapeError, UsageError
from tigra.kernels.workspace import Workspace
from tigra.layers import dynamic_pool
from tigra.layers.dynamic_pool import largest, top_nodes


@pytest.fixture(autouse=True)
def values_are_checked_in_every_test(monkeypatch):
    """Whatever is pooled in this file: y is z on the active nodes, and 0 elsewhere."""

    def checked(z, omega, n_active, space):
        y, active = largest(z, omega, n_active, space)
        assert y.shape == active.shape == z.shape and y.dtype == z.dtype and active.dtype == bool
        np.testing.assert_array_equal(y, np.where(active, z, 0))
        assert not np.signbit(y[~active]).any()
        return y, active

    monkeypatch.setattr(dynamic_pool, "largest", checked)


def algorithm_1(z, omega, n_active):
    """Algorithm 1 with min for max, one argmax at a time; only for values without ties."""
    active = np.zeros(z.shape, bool)
    for i in range(z.shape[0]):
        for b in range(z.shape[2]):
            left = set(np.flatnonzero(omega[0, :, b]))
            for _ in range(min(n_active, len(left))):
                node = max(left, key=lambda v, i=i, b=b: z[i, v, b])
                left.remove(node)
                active[i, node, b] = True
    return active


@pytest.mark.parametrize("n_active", [1, 4, 9, 15, 16])
@pytest.mark.parametrize("share", [1.0, 0.6, 0.1])
def test_without_ties_it_is_algorithm_1(n_active, share, rng):
    z = rng.standard_normal((3, 16, 5))
    omega = rng.uniform(size=(1, 16, 5)) < share
    omega[:, 0] = True
    np.testing.assert_array_equal(top_nodes(z, omega, n_active), algorithm_1(z, omega, n_active))


@pytest.mark.parametrize(
    "values, n_active, kept",
    [
        ([5, 3, 3, 1], 3, [1, 1, 1, 0]),  # the tie fits
        ([5, 3, 3, 1], 2, [1, 0, 0, 0]),  # it does not: it goes as a whole
        ([5, 5, 5, 1], 2, [1, 1, 1, 0]),  # nothing lies above it: it stays as a whole
        ([7, 7, 7, 7], 1, [1, 1, 1, 1]),
        ([0, 0, 2, 0], 3, [0, 0, 1, 0]),  # a digit's background
        ([-1, -2, -3, -4], 2, [1, 1, 0, 0]),
        ([0.0, -0.0, -1, -1], 2, [1, 1, 0, 0]),  # both zeros are one value
    ],
)
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]])
def test_equal_values_stay_or_go_together_in_any_order(values, n_active, kept, order):
    z = np.array(values, float)[order].reshape(1, 4, 1)
    active = top_nodes(z, np.ones((1, 4, 1), bool), n_active)
    np.testing.assert_array_equal(active.ravel(), np.array(kept, bool)[order])


def kept_by_the_rule(values, inside, n_active):
    """The largest set of at most J nodes of Omega without a tie across its edge; of a crowded top all of it."""
    kept = set()
    for value in sorted(set(values[inside]), reverse=True):
        level = set(np.flatnonzero((values == value) & inside))
        if kept and len(kept | level) > n_active:
            return kept
        kept |= level
        if len(kept) >= n_active:
            return kept
    return kept


@pytest.mark.parametrize("low, high", [(-2, 2), (0, 3), (-3, 0), (0, 0)])
@pytest.mark.parametrize("share", [1.0, 0.6])
@pytest.mark.parametrize("n_batch", [1, 7])
def test_zeros_and_signs_change_nothing_about_the_rule(low, high, share, n_batch, rng):
    """Maps with few values above 0 take a short cut; all mixtures of signs, ties and numbers of nodes are met here."""
    for n_active in range(1, 10):
        z = rng.integers(low, high + 1, (20, 9, n_batch)).astype(float)
        omega = rng.random((1, 9, n_batch)) < share
        active = top_nodes(z, omega, n_active)
        for k, b in np.ndindex(20, n_batch):
            assert set(np.flatnonzero(active[k, :, b])) == kept_by_the_rule(z[k, :, b], omega[0, :, b], n_active)


def test_a_crowded_top_is_sought_in_omega_alone():
    z = np.array([9.0, 5.0, 5.0, 5.0]).reshape(1, 4, 1)
    omega = np.array([False, True, True, True]).reshape(1, 4, 1)
    np.testing.assert_array_equal(top_nodes(z, omega, 2), omega)


@pytest.mark.parametrize("keeps_results", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_crowded_top_keeps_its_values_beside_maps_that_are_not_crowded(dtype, keeps_results):
    """Three nodes share the largest value, one more than J: their values pass, those of the other map as ever."""
    z = np.array([[5, 5, 5, 1], [4, 3, 2, 1]], dtype).reshape(2, 4, 1)
    space = Workspace(keeps_results)
    for _ in range(2):
        y, active = dynamic_pool.largest(z, np.ones((1, 4, 1), bool), 2, space)
        np.testing.assert_array_equal(y[:, :, 0], [[5, 5, 5, 0], [4, 3, 0, 0]])
        np.testing.assert_array_equal(active[:, :, 0], [[1, 1, 1, 0], [1, 1, 0, 0]])


@pytest.mark.parametrize("n_active", [1, 2, 4])
@pytest.mark.parametrize("outside", [np.nan, -np.inf, np.inf, -3.0])
def test_nothing_of_the_nodes_that_are_dropped_passes(outside, n_active):
    """Not even what times 0 is not 0; -3 becomes 0, not -0."""
    z = np.array([outside, 5.0, 5.0, -1.0]).reshape(1, 4, 1)
    omega = np.array([False, True, True, True]).reshape(1, 4, 1)
    y, active = dynamic_pool.largest(z, omega, n_active, Workspace())
    kept = {1: [0, 5, 5, 0], 2: [0, 5, 5, 0], 4: [0, 5, 5, -1]}[n_active]
    np.testing.assert_array_equal(y.ravel(), kept)
    assert not np.signbit(y[~active]).any()


def test_sets_are_nested_from_pooling_to_pooling(rng):
    z = rng.integers(-3, 4, (4, 30, 6)).astype(float)  # many ties
    signal = GraphSignal(z, np.ones((1, 30, 6), bool))
    for n_active in (20, 12, 5, 1):
        pooled = DynamicPool(n_active).forward(signal)
        omega_before, omega = signal.active.any(axis=0), pooled.active.any(axis=0)
        assert np.all(omega <= omega_before) and omega.any(axis=0).all()
        signal = GraphSignal(rng.permuted(z, axis=1) * omega, pooled.active)


def test_a_pooling_chooses_from_the_union_of_the_sets_before_it(rng):
    """Eq. (13): Omega, not each map's own set, limits the next pooling."""
    z = np.array([[[1.0], [2.0], [9.0]], [[7.0], [1.0], [1.0]]])
    sets = np.array([[[True], [False], [False]], [[False], [True], [False]]])
    pooled = DynamicPool(1).forward(GraphSignal(z, sets))
    np.testing.assert_array_equal(pooled.active[:, :, 0], [[False, True, False], [True, False, False]])


def test_kept_nodes_keep_their_value_and_the_rest_becomes_zero(rng):
    z = rng.standard_normal((2, 10, 3))
    pooled = DynamicPool(4).forward(GraphSignal(z, np.ones((1, 10, 3), bool)))
    np.testing.assert_array_equal(pooled.values, np.where(pooled.active, z, 0))
    assert np.all(pooled.active.sum(axis=1) == 4)


@pytest.mark.parametrize("n_active", [1, 4, 9, 16])
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_by_size_it_is_algorithm_1_of_absolute_values(n_active, share, rng):
    z, omega = rng.standard_normal((3, 16, 4)), rng.random((1, 16, 4)) < share
    y, active = DynamicPool(n_active, by_size=True).forward(GraphSignal(z, omega))
    np.testing.assert_array_equal(active, algorithm_1(np.abs(z), omega, n_active))
    np.testing.assert_array_equal(y, np.where(active, z, 0))


def test_by_size_an_empty_background_does_not_outrank_negative_responses():
    z = np.array([0.0, -2.0, 0.0, 1.0, 0.0, -1.0]).reshape(1, 6, 1)
    signal = GraphSignal(z, np.ones((1, 6, 1), bool))
    assert DynamicPool(2, by_size=True).forward(signal).values.ravel().tolist() == [0, -2, 0, 0, 0, 0]  # 1 and -1 tie
    assert DynamicPool(3, by_size=True).forward(signal).values.ravel().tolist() == [0, -2, 0, 1, 0, -1]
    assert DynamicPool(2).forward(signal).values.ravel().tolist() == [0, 0, 0, 1, 0, 0]


@pytest.mark.parametrize("n_active", [0, -3, 2.5, "2"])
def test_at_least_one_node_must_be_kept(n_active):
    with pytest.raises(UsageError, match="at least one"):
        DynamicPool(n_active)


def test_sets_of_another_shape_are_refused():
    for shape in ((1, 4, 3), (1, 5, 1), (3, 5, 3), (5, 3)):
        with pytest.raises(ShapeError, match="active sets"):
            DynamicPool(2).forward(GraphSignal(np.zeros((2, 5, 3)), np.ones(shape, bool)))
