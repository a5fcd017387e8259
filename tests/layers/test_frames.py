"""Scratch frames that the layers of a thread share."""

from threading import Thread

import numpy as np

from tigra.graph import grid_graph
from tigra.layers import frames


def test_scratch_frames_are_shared_by_layers_of_a_thread_and_bounded(monkeypatch):
    monkeypatch.setattr(frames, "_scratch", type(frames._scratch)())
    small, large = (frames.frames_of(grid_graph((side, side)), 3, np.float32) for side in (4, 8))
    one = frames.scratch_frames("terms", 2, small)
    assert one.shape == (2, small.pitch) and not one.any() and one.ctypes.data % 64 == 0
    assert np.shares_memory(one, frames.scratch_frames("terms", 1, small))
    assert not np.shares_memory(one, frames.scratch_frames("sums", 1, small))
    more = frames.scratch_frames("terms", 5, small)
    assert len(more) == 5 and not np.shares_memory(one, more) and not more.any()
    others: list[np.ndarray] = []
    thread = Thread(target=lambda: others.append(frames.scratch_frames("terms", 2, small)))
    thread.start()
    thread.join()
    assert not np.shares_memory(more, others[0])
    monkeypatch.setattr(frames, "MOST_SCRATCH", 0)
    frames.scratch_frames("terms", 1, large)
    assert [key[1] for key in frames._scratch.kept] == [large.layout]  # the others are forgotten
