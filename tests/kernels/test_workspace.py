"""Arrays to work in: on cache lines, used again, one piece of memory for all shapes of a name."""

import copy
import pickle

import numpy as np
import pytest

from tigra.kernels.workspace import CACHE_LINE, Workspace, aligned_empty


@pytest.mark.parametrize("dtype", [np.float32, np.float64, bool])
@pytest.mark.parametrize("shape", [(1,), (3, 5, 7), (0, 4), (1000, 11)])
def test_arrays_begin_on_a_cache_line(shape, dtype):
    for _ in range(5):
        array = aligned_empty(shape, dtype)
        assert array.shape == shape and array.dtype == dtype and array.flags.c_contiguous and array.flags.writeable
        assert array.size == 0 or array.ctypes.data % CACHE_LINE == 0


@pytest.mark.parametrize("keeps_results", [True, False])
def test_arrays_of_a_workspace_begin_on_a_cache_line(keeps_results):
    space = Workspace(keeps_results)
    for number, shape in enumerate([(7,), (3, 5), (1001,), (2, 3), (5, 7, 9), (11,)] * 3):
        for array in (space.array("a", shape, np.float32), space.result(f"r{number}", shape, np.float64)):
            assert array.shape == shape and array.flags.c_contiguous and array.ctypes.data % CACHE_LINE == 0


@pytest.mark.parametrize("grid_shape, n_batch", [((3, 5), 1), ((2, 2), 24), ((4, 1), 7)])
def test_the_first_node_of_frames_begins_a_cache_line(grid_shape, n_batch):
    frames = Workspace().frames("f", 2, grid_shape, n_batch, np.float32)
    assert frames[0, 1, n_batch:].ctypes.data % CACHE_LINE == 0


def test_an_array_is_the_same_and_as_it_was_left():
    space = Workspace()
    array = space.array("a", (4,), np.float32)
    array[:] = 7
    assert space.array("a", (4,), np.float32) is array and (array == 7).all()
    assert not np.shares_memory(space.array("b", (4,), np.float32), array)


def test_arrays_of_a_name_share_memory_as_large_as_the_largest(monkeypatch):
    made = []
    monkeypatch.setattr(
        "tigra.kernels.workspace.aligned_empty",
        lambda shape, dtype: (made.append(shape), aligned_empty(shape, dtype))[1],
    )
    space = Workspace(keeps_results=False)
    for _ in range(3):
        for n_batch in (3, 7, 5, 2, 6, 1):  # more shapes than anyone would keep
            array = space.array("a", (10, n_batch), np.float32)
            array[:] = n_batch
            assert array.shape == (10, n_batch) and (array == n_batch).all()
    assert made == [(120,), (280,)]


def test_results_are_new_arrays_unless_they_need_not_be_kept():
    keeping, saving = Workspace(), Workspace(keeps_results=False)
    assert keeping.result("z", (3,), np.float32) is not keeping.result("z", (3,), np.float32)
    assert saving.result("z", (3,), np.float32) is saving.result("z", (3,), np.float32)


def rim_and_inside(frames, grid_shape, n_batch):
    height, width = grid_shape
    whole = frames.reshape(len(frames), height + 2, width + 2, n_batch)
    rim = whole.copy()
    rim[:, 1:-1, 1:-1] = 0
    return np.abs(rim).sum(), whole[:, 1:-1, 1:-1]


def test_frames_have_a_rim_of_zeros_whatever_stood_there_before():
    """(1, 6) with 4 images and (1, 2) with 8 are arrays of one shape, with different rims."""
    space = Workspace()
    assert space.frames("t", 2, (3, 4), 5, np.float32).shape == (2, 5, 30)
    for grid_shape, n_batch in [((3, 4), 5), ((3, 4), 2), ((3, 4), 5), ((1, 6), 4), ((1, 2), 8), ((1, 6), 4)] * 2:
        rim, inside = rim_and_inside(space.frames("t", 2, grid_shape, n_batch, np.float32), grid_shape, n_batch)
        assert rim == 0
        inside[:] = np.nan if n_batch == 2 else 9


def test_frames_of_one_shape_are_left_alone():
    space = Workspace()
    _, inside = rim_and_inside(space.frames("t", 1, (2, 2), 3, np.float64), (2, 2), 3)
    inside[:] = 5
    _, again = rim_and_inside(space.frames("t", 1, (2, 2), 3, np.float64), (2, 2), 3)
    assert (again == 5).all()


@pytest.mark.parametrize("twin_of", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_of_a_workspace_is_empty(twin_of):
    space = Workspace(keeps_results=False)
    array = space.array("a", (1000,), np.float32)
    twin = twin_of(space)
    assert twin.keeps_results is False and not np.shares_memory(twin.array("a", (1000,), np.float32), array)
    assert len(pickle.dumps(space)) < 300
