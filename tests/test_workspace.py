"""Arrays to work in: on cache lines, zero at first, used again, and never more of them than a few."""

import numpy as np
import pytest

from tigra.workspace import CACHE_LINE, MOST_SHAPES, Workspace, aligned_empty


@pytest.mark.parametrize("dtype", [np.float32, np.float64, bool])
@pytest.mark.parametrize("shape", [(1,), (3, 5, 7), (0, 4), (1000, 11)])
def test_arrays_begin_on_a_cache_line(shape, dtype):
    for _ in range(5):
        array = aligned_empty(shape, dtype)
        assert array.shape == shape and array.dtype == dtype and array.flags.c_contiguous and array.flags.writeable
        assert array.size == 0 or array.ctypes.data % CACHE_LINE == 0


def test_an_array_is_zero_at_first_and_then_as_it_was_left():
    space = Workspace()
    array = space.array("a", (4,), np.float32)
    assert not array.any()
    array[:] = 7
    assert space.array("a", (4,), np.float32) is array and array[0] == 7
    assert space.array("a", (4,), np.float64) is not array and space.array("b", (4,), np.float32) is not array


def test_a_few_shapes_of_each_name_are_kept():
    space = Workspace()
    first = space.array("a", (1,), np.float32)
    other = space.array("b", (1,), np.float32)
    for size in range(2, MOST_SHAPES + 1):
        space.array("a", (size,), np.float32)
    assert space.array("a", (1,), np.float32) is first
    space.array("a", (99,), np.float32)
    assert space.array("b", (1,), np.float32) is other
    assert len([key for key in space._arrays if key[0] == "a"]) == MOST_SHAPES
    assert space.array("a", (1,), np.float32) is not first


def test_results_are_new_arrays_unless_they_need_not_be_kept():
    keeping, saving = Workspace(), Workspace(keeps_results=False)
    assert keeping.result("z", (3,), np.float32) is not keeping.result("z", (3,), np.float32)
    assert saving.result("z", (3,), np.float32) is saving.result("z", (3,), np.float32)


def test_frames_have_room_for_a_rim():
    assert Workspace().frames("t", 2, (3, 4), 5, np.float32).shape == (2, 5, 30)
