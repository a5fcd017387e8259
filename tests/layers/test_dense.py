"""Dense, ReLU and the loss: hand-sized values."""

import numpy as np
import pytest

from tigra import Dense, ReLU, ShapeError, UsageError
from tigra.models.loss import image_losses, negative_log_likelihood, softmax


def test_dense_by_hand():
    layer = Dense(np.array([[1.0, -1.0], [0.5, 2.0]]), np.array([0.0, 1.0]))
    np.testing.assert_array_equal(layer.forward(np.array([[3.0], [4.0]])), [[-1.0], [10.5]])
    np.testing.assert_array_equal(layer.backward(np.array([[1.0], [2.0]])), [[2.0], [3.0]])
    np.testing.assert_array_equal(layer.grads["weight"], [[3.0, 4.0], [6.0, 8.0]])
    np.testing.assert_array_equal(layer.grads["bias"], [1.0, 2.0])


def test_relu_has_slope_0_at_0():
    layer = ReLU()
    layer.forward(np.array([[-1.0, 0.0, 1.0]]))
    np.testing.assert_array_equal(layer.backward(np.ones((1, 3))), [[0.0, 0.0, 1.0]])


def test_paper_start_values_are_uniform_in_minus_1_to_1():
    layer = Dense.init(100, 50, np.random.default_rng(0), "float64", init="paper")
    for array in layer.params.values():
        assert -1 <= array.min() < -0.9 and 0.9 < array.max() <= 1


def test_default_start_values_keep_the_size_of_signals():
    layer = Dense.init(400, 300, np.random.default_rng(0), "float64")
    x = np.random.default_rng(1).standard_normal((400, 50))
    assert np.mean(np.maximum(layer.forward(x), 0) ** 2) == pytest.approx(1.0, rel=0.1)  # He: second moment kept
    assert not layer.params["bias"].any()


def test_unknown_start_values_are_refused():
    with pytest.raises(UsageError, match="default, paper"):
        Dense.init(2, 2, np.random.default_rng(0), "float64", init="zeros")


def test_dense_refuses_another_number_of_features():
    with pytest.raises(ShapeError, match=r"\(2, B\), got \(3, 1\)"):
        Dense(np.zeros((1, 2)), np.zeros(1)).forward(np.zeros((3, 1)))


def test_loss_at_chance_is_the_logarithm_of_the_number_of_classes():
    loss, _ = negative_log_likelihood(np.zeros((7, 4)), np.array([0, 1, 2, 3]))
    assert loss == pytest.approx(np.log(7), rel=1e-12)


def test_loss_by_hand():
    scores = np.log(np.array([[0.2], [0.8]])) + 100.0
    loss, grad = negative_log_likelihood(scores, np.array([1]))
    assert loss == pytest.approx(-np.log(0.8), rel=1e-12)
    np.testing.assert_allclose(grad, [[0.2], [-0.2]], rtol=1e-12)


def test_smoothed_labels_by_hand():
    """With e = 0.3 and three classes the label counts 0.8, each other class 0.1."""
    probabilities = np.array([[0.5], [0.25], [0.25]])
    loss, grad = negative_log_likelihood(np.log(probabilities), np.array([0]), label_smoothing=0.3)
    assert loss == pytest.approx(-0.8 * np.log(0.5) - 0.2 * np.log(0.25), rel=1e-12)
    np.testing.assert_allclose(grad, probabilities - [[0.8], [0.1], [0.1]], rtol=1e-12)


def test_parts_of_a_batch_add_up_to_the_batch(rng):
    scores, labels = rng.standard_normal((3, 10)), rng.integers(0, 3, 10)
    loss, grad = negative_log_likelihood(scores, labels)
    parts = [negative_log_likelihood(scores[:, s], labels[s], n_images=10) for s in (slice(0, 4), slice(4, 10))]
    assert sum(part[0] for part in parts) == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(np.concatenate([part[1] for part in parts], axis=1), grad, rtol=1e-12)


def test_huge_scores_give_finite_results():
    scores = np.array([[1e4, -1e4], [-1e4, 1e4]])
    loss, grad = negative_log_likelihood(scores, np.array([1, 1]))
    assert np.isfinite(loss) and np.isfinite(grad).all() and np.isfinite(softmax(scores)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_losses_and_probabilities_of_far_scores_are_exact(dtype):
    """exp(2000) overflows: the largest score must be subtracted, not the smallest or the first."""
    scores, labels = np.array([[1000, -1000], [-1000, 1000]], dtype), np.array([0, 0])
    with np.errstate(over="raise", invalid="raise"):
        np.testing.assert_array_equal(image_losses(scores, labels), [0, 2000])
        np.testing.assert_array_equal(softmax(scores), [[1, 0], [0, 1]])
        loss, grad = negative_log_likelihood(scores, labels)
    assert loss == 1000
    np.testing.assert_array_equal(grad, [[0, -0.5], [0, 0.5]])


def test_without_smoothing_scores_near_the_largest_float_do_no_harm():
    loss, grad = negative_log_likelihood(np.array([[2e38], [-1e38]], np.float32), np.array([0]))
    assert loss == 0 and np.isfinite(grad).all()


def test_one_label_for_each_image():
    with pytest.raises(ShapeError, match="each of the 2 images"):
        negative_log_likelihood(np.zeros((3, 2)), np.array([0]))
