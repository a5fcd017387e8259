"""Images that are not in memory train, validate and predict to the same bits as those that are."""

import os
import signal
import threading

import numpy as np
import pytest

import tigra
from tigra.datasets import splits as splits_module
from tigra.images import prepared as prepared_module
from tigra.images.prepared import PreparedImages
from tigra.images.store import StoredImages, TurnedImages
from tigra.models import network as network_module
from tigra.options import FitOptions
from tigra.training import training as training_module


def stored(split):
    """The split with its images as 16-bit pixels, and the same as an array."""
    pixels = np.rint(split.images * 65535).astype(np.uint16)
    lazy = StoredImages(pixels, np.arange(len(pixels)))
    return tigra.Split(lazy, split.labels), tigra.Split(lazy[:], split.labels)


@pytest.fixture
def both(small_splits):
    """Splits with lazy images, and the same splits with arrays."""
    (train, train_array), (valid, valid_array) = stored(small_splits.train), stored(small_splits.valid)
    return (train, valid), (train_array, valid_array)


class Pair:
    def __init__(self, pair):
        self.train, self.valid = pair


@pytest.mark.parametrize("largest", [0, 2**28])
def test_training_gives_the_same_bits(both, small_network, monkeypatch, largest):
    monkeypatch.setattr(PreparedImages.__init__, "__defaults__", (largest,))
    parameters = []
    for pair in both:
        network = small_network(smoothing=0.7, margin=1)
        for _ in tigra.fit(network, Pair(pair), epochs=2, batch_size=20, threads=2):
            pass
        parameters.append(network.parameters.copy())
    np.testing.assert_array_equal(*parameters)


@pytest.mark.parametrize("jitter", [0.0, 0.5])
def test_images_are_prepared_while_the_batch_before_is_trained_on(both, small_network, monkeypatch, jitter):
    monkeypatch.setattr(PreparedImages.__init__, "__defaults__", (0,))
    parameters, threads = [], []
    for n_threads in (1, 2):
        network, names = small_network(smoothing=0.7), []
        prepare = network.prepare_part

        def watched(images, numbers=None, prepare=prepare, names=names):
            names.append(threading.current_thread().name)
            return prepare(images, numbers)

        network.prepare_part = watched
        options = {"epochs": 1, "batch_size": 16, "jitter": jitter}
        list(tigra.fit(network, Pair(both[0]), threads=n_threads, **options))
        parameters.append(network.parameters.copy())
        threads.append(set(names))
    np.testing.assert_array_equal(*parameters)
    assert len(threads[0]) == 1 and any("ThreadPoolExecutor" in name for name in threads[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_forked_between_epochs_goes_on(both, small_network):
    """The thread that prepares images exists only in the parent, so there must be none between epochs."""
    options = FitOptions(epochs=2, batch_size=16, jitter=0.1)
    run = tigra.Training(small_network(), Pair(both[1]), options, 2)
    epochs = run.run()
    next(epochs)
    if (child := os.fork()) == 0:
        signal.alarm(60)  # ends the child if it waits for a thread
        os._exit(len(list(epochs)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == len(list(epochs)) == 1


def test_an_error_ahead_is_raised_by_its_batch_and_ends_the_thread(both, small_network):
    (train, valid), before = both[1], threading.active_count()
    images = train.images.copy()
    network = small_network()
    run = tigra.Training(network, ((images, train.labels), valid), FitOptions(epochs=1, batch_size=16, jitter=0.1), 2)
    images[:, 3, 3] = np.nan
    with pytest.raises(tigra.ShapeError, match="NaN"):
        list(run.run())
    assert threading.active_count() == before


def test_prepared_images_are_kept_only_if_they_are_small(both, small_network):
    network = small_network(smoothing=0.7)
    (train, _), (array, _) = both
    kept, made = (
        PreparedImages(network, images, largest) for images, largest in ((array.images, 2**28), (train.images, 0))
    )
    assert kept.array is not None and made.array is None and len(made) == len(kept) == 48
    rows = np.array([40, 3, 3, 17])
    np.testing.assert_array_equal(kept[rows], made[rows])
    np.testing.assert_array_equal(kept[2:9], made[2:9])


def test_predicting_gives_the_same_bits(both, small_network):
    network = small_network()
    (train, _), (array, _) = both
    network.calibrate(array.images)
    for call in (network.predict_proba, network.features, network.scores):
        np.testing.assert_array_equal(call(train.images), call(array.images))
    assert tigra.accuracy(network, train) == tigra.accuracy(network, array)
    turned = TurnedImages(train.images, np.full(48, 90.0))
    np.testing.assert_array_equal(network.predict(turned), network.predict(np.rot90(array.images, axes=(1, 2))))


@pytest.mark.slow
def test_lazy_images_never_become_one_array(both, small_network, monkeypatch):
    monkeypatch.setattr(StoredImages, "__array__", lambda *_, **__: pytest.fail("all images were read at once"))
    monkeypatch.setattr(PreparedImages.__init__, "__defaults__", (0,))
    largest = []
    right = StoredImages.take
    monkeypatch.setattr(StoredImages, "take", lambda self, rows: largest.append(len(rows)) or right(self, rows))
    monkeypatch.setattr(training_module, "CALIBRATION_IMAGES", 10)
    train, valid = both[0]
    many = StoredImages(train.images.pixels, np.arange(4800) % 48)
    labels = np.tile(train.labels, 100)
    network = small_network()
    run = tigra.Training(network, Pair((tigra.Split(many, labels), valid)), tigra.FitOptions(epochs=1, batch_size=50))
    for _ in run.run():
        break
    tigra.accuracy(network, tigra.Split(many, labels))
    assert max(largest) <= 1024


def test_statistics_are_standardised_from_a_random_choice_where_there_are_many(both, small_network, monkeypatch):
    """Pictures of a folder lie class by class, so the first ones would not do."""
    monkeypatch.setattr(training_module, "CALIBRATION_IMAGES", 20)
    seen = []
    monkeypatch.setattr(tigra.Network, "calibrate", lambda self, images, *_: seen.append(np.asarray(images)))
    tigra.Training(small_network(), Pair(both[1]), tigra.FitOptions(seed=0))
    tigra.Training(small_network(), Pair(both[1]), tigra.FitOptions(seed=1))
    first, second = seen
    assert first.shape == second.shape == (20, 14, 14) and not np.array_equal(first, second)
    assert not np.array_equal(first, both[1][0].images[:20])


def test_a_bad_pixel_is_found_by_its_number_wherever_it_is(small_network):
    images = np.zeros((1500, 14, 14))
    images[1300, 3, 3] = np.nan
    for call in (small_network().prepare, small_network().predict):
        with pytest.raises(tigra.ShapeError, match="image 1300 has NaN"):
            call(images)


def test_the_fingerprint_sees_every_image(small_splits):
    images, labels = np.tile(small_splits.train.images, (50, 1, 1)), np.tile(small_splits.train.labels, 50)
    before = splits_module.fingerprint(Pair(((images, labels), small_splits.valid)))
    images[2000, 3, 3] += 0.5
    assert splits_module.fingerprint(Pair(((images, labels), small_splits.valid))) != before
    other = labels.copy()
    other[2000] = (other[2000] + 1) % 3
    split = splits_module.split_hash
    assert split(Pair(((images, labels), small_splits.valid))) != split(Pair(((images, other), small_splits.valid)))


def test_little_is_kept_in_memory():
    assert prepared_module.LARGEST_PREPARED <= 2**28 and network_module.PREPARED_AT_ONCE <= 1024


def test_large_images_come_in_smaller_micro_batches():
    sizes = {n: tigra.build_network("S[1]-FC[2]", (n, n), 2).micro_batch for n in (8, 64, 100, 200, 500)}
    assert sizes == {8: 32, 64: 32, 100: 8, 200: 3, 500: 1}


def test_many_images_may_be_given_as_a_list(small_network, small_splits, monkeypatch):
    monkeypatch.setattr(training_module, "CALIBRATION_IMAGES", 10)
    pair = (list(small_splits.train.images), list(small_splits.train.labels)), small_splits.valid
    assert len(list(tigra.fit(small_network(), Pair(pair), epochs=1))) == 1


def test_a_bad_pixel_in_images_that_are_not_kept_is_found_by_its_number(small_network):
    images = np.zeros((50, 14, 14))
    images[40, 3, 3] = np.nan
    with pytest.raises(tigra.ShapeError, match="image 40 has NaN"):
        PreparedImages(small_network(), images, largest=0)[np.array([3, 40, 7])]
