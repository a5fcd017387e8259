"""Weights of images in the loss."""

import numpy as np
import pytest

import tigra
from tigra.models.loss import negative_log_likelihood
from tigra.options import FitOptions
from tigra.training import Training

OPTIONS = FitOptions(epochs=3, batch_size=16, learning_rate=0.02)


def trained(network, splits, weights):
    training = Training(network, splits, OPTIONS, weights=weights)
    assert len(list(training.run())) == OPTIONS.epochs
    return training


def test_a_weight_of_two_counts_like_two_images(rng):
    scores, labels, weights = rng.normal(size=(3, 4)), np.array([0, 1, 2, 1]), np.array([2, 0, 1, 3])
    loss, grad = negative_log_likelihood(scores, labels, label_smoothing=0.1, n_images=6, weights=weights)
    repeated = np.repeat(np.arange(4), weights)
    wanted, each = negative_log_likelihood(scores[:, repeated], labels[repeated], label_smoothing=0.1)
    assert loss == pytest.approx(wanted)
    np.testing.assert_allclose(grad, [[each[c, repeated == b].sum() for b in range(4)] for c in range(3)])


def test_equal_weights_change_no_bit(small_network, small_splits):
    plain = trained(small_network(), small_splits, None)
    weighted = trained(small_network(), small_splits, (np.full(48, 3.0), np.full(24, 2.0)))
    np.testing.assert_array_equal(plain.network.parameters, weighted.network.parameters)
    assert plain.history == weighted.history


def test_images_without_weight_teach_nothing_and_do_not_validate(small_network, small_splits):
    weights = [(split.labels != 2).astype(float) for split in (small_splits.train, small_splits.valid)]
    training = trained(small_network(), small_splits, weights)
    assert 2 not in training.network.predict(small_splits.train.images)
    seen = small_splits.valid.labels != 2
    seen_set = tigra.Split(small_splits.valid.images[seen], small_splits.valid.labels[seen])
    assert training.best_epoch.valid_accuracy == pytest.approx(tigra.accuracy(training.network, seen_set))


@pytest.mark.parametrize("weights", [np.ones(3), np.zeros(48), np.full(48, -1.0), np.full(48, np.nan)])
def test_wrong_weights_are_refused(small_network, small_splits, weights):
    with pytest.raises(tigra.TrainingError, match="Expected 48 finite weights of at least 0"):
        Training(small_network(), small_splits, OPTIONS, weights=(weights, np.ones(24)))
