"""Training images moved by fractions of a pixel: by the seed alone, on any number of threads, and after a stop."""

from collections import deque

import numpy as np
import pytest

from tigra import UsageError
from tigra.images.transforms import translate
from tigra.training.jitter import JitteredImages
from tigra.training.training import FitOptions, Training


def test_jittered_images_are_moved_anew_in_every_epoch_and_nothing_else_moves_them(small_network, small_splits):
    network, images = small_network(smoothing=0.7, margin=1), small_splits.train.images
    jittered = JitteredImages(network, images, jitter=0.5, seed=3)
    rows = np.array([7, 2, 30])
    first = jittered[rows]
    for row, got in zip(rows, first, strict=True):
        kind = ("cubic", "linear")[jittered.interpolations[row]]
        moved = translate(images[row : row + 1], jittered.shifts[row], kind)
        np.testing.assert_array_equal(got, network.prepare(moved)[0])
    assert np.abs(jittered.shifts).max() <= 0.5 and len(set(jittered.interpolations)) == 2
    jittered.begin(1)
    assert np.abs(jittered[rows] - first).max() > 0.01
    jittered.begin(0)
    np.testing.assert_array_equal(jittered[rows], first)
    np.testing.assert_array_equal(jittered[2:3], first[1:2])
    assert len(jittered) == 48 and images.max() <= 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_grey_background_is_moved_with_the_image(small_network, small_splits, dtype):
    things = np.zeros((48, 14, 14), dtype)
    things[:, 3:-3, 3:-3] = small_splits.train.images[:, 3:-3, 3:-3] / 2
    on_black, on_grey = (small_network(background=background, dtype="float64") for background in ("black", "border"))
    plain = JitteredImages(on_black, things, jitter=0.9, seed=3)
    grey = JitteredImages(on_grey, things + dtype(0.25), jitter=0.9, seed=3)
    difference = np.abs(grey[:] - plain[:])
    linear = plain.interpolations == 1
    assert difference[linear].max() < 1e-6 and linear.any()  # float32 pixels
    frame = np.ones((14, 14), bool)
    frame[1:-1, 1:-1] = False
    assert np.abs(grey[:].reshape(-1, 14, 14)[:, frame]).max() < 0.02  # splines ring, but no edge comes in


def test_images_that_are_no_grey_levels_are_moved_unclipped(small_network, small_splits):
    network, images = small_network(), 3 * small_splits.train.images - 1
    jittered = JitteredImages(network, images, jitter=0.5, seed=3)
    got, linear = jittered[:], np.flatnonzero(jittered.interpolations == 1)
    for row in linear:
        moved = translate(images[row : row + 1], jittered.shifts[row], "linear", clip=False)
        np.testing.assert_array_equal(got[row], network.prepare(moved)[0])
    assert got.min() < -0.9 and got.max() > 1.5
    assert got.min() >= images.min().astype(got.dtype) and got.max() <= images.max().astype(got.dtype)


def test_jitter_is_the_same_for_any_threads_and_when_resumed(small_network, small_splits):
    def trained(threads, stop_after=None):
        training = Training(small_network(), small_splits, FitOptions(epochs=3, batch_size=20, jitter=0.5), threads)
        steps = []
        training.on_progress = lambda *_: steps.append(1)
        training.should_stop = lambda: stop_after is not None and len(steps) >= stop_after
        deque(training.run(), maxlen=0)
        return training

    whole = trained(1)
    assert trained(3).network.parameters.tobytes() == whole.network.parameters.tobytes()
    arrays, numbers = trained(1, stop_after=4).snapshot()
    again = Training(small_network(), small_splits, FitOptions(epochs=3, batch_size=20, jitter=0.5), 1)
    again.restore(arrays, numbers)
    deque(again.run(), maxlen=0)
    assert again.network.parameters.tobytes() == whole.network.parameters.tobytes()
    plain = Training(small_network(), small_splits, FitOptions(epochs=3, batch_size=20), 1)
    deque(plain.run(), maxlen=0)
    assert plain.network.parameters.tobytes() != whole.network.parameters.tobytes()


def test_training_images_are_moved_in_every_epoch_and_validation_images_never(small_network, small_splits, monkeypatch):
    begun, begin = [], JitteredImages.begin
    monkeypatch.setattr(JitteredImages, "begin", lambda self, epoch: begun.append(epoch) or begin(self, epoch))
    training = Training(small_network(), small_splits, FitOptions(epochs=3, batch_size=48, jitter=0.5, seed=5))
    deque(training.run(), maxlen=0)
    assert begun == [0, 0, 1, 2]  # the first when it is made
    assert (training.train[0].jitter, training.train[0].seed) == (0.5, 5)
    np.testing.assert_array_equal(training.valid[0][:], training.network.prepare(small_splits.valid.images))


@pytest.mark.parametrize("jitter", [-0.1, 11, "1", np.nan])
def test_wrong_jitter_is_refused(jitter):
    with pytest.raises(UsageError, match="jitter must be a number of pixels from 0 to 10"):
        FitOptions(jitter=jitter)
