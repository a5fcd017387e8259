"""Scratch frames that the layers of a thread share."""

from functools import partial
from threading import Thread

import numpy as np

from tigra.graph import grid_graph
from tigra.kernels.workspace import Workspace
from tigra.layers import frames


def test_scratch_frames_are_shared_by_layers_of_a_thread_and_bounded(monkeypatch):
    monkeypatch.setattr(frames, "_scratch", type(frames._scratch)())
    space = Workspace()
    scratch = partial(frames.scratch_frames, space=space)
    small, large = (frames.frames_of(grid_graph((side, side)), 3, np.float32) for side in (4, 8))
    one = scratch("terms", 2, small)
    assert one.shape == (2, small.pitch) and not one.any() and one[:, small.first :].ctypes.data % 64 == 0
    assert np.shares_memory(one, scratch("terms", 1, small))
    assert not np.shares_memory(one, scratch("sums", 1, small))
    more = scratch("terms", 5, small)
    assert len(more) == 5 and not np.shares_memory(one, more) and not more.any()
    others: list[np.ndarray] = []
    thread = Thread(target=lambda: others.append(scratch("terms", 2, small)))
    thread.start()
    thread.join()
    assert not np.shares_memory(more, others[0])
    own = scratch("terms", 1 + frames.LARGEST_SCRATCH // large.pitch // 4, large)
    assert np.shares_memory(own, space.array("terms", own.shape, own.dtype))  # too large to be shared
    monkeypatch.setattr(frames, "MOST_SCRATCH", 1 + more.nbytes)
    scratch("terms", 1, large)
    assert [key[:2] for key in frames._scratch.kept] == [("terms", large.layout)]  # older ones are forgotten
