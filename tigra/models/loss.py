"""Softmax and negative log-likelihood, with one gradient for both."""

from __future__ import annotations

import numpy as np

from tigra.errors import ShapeError
from tigra.kernels.functions import exp, log


def softmax(scores: np.ndarray) -> np.ndarray:
    """Class probabilities of scores, without overflow for large scores.

    Parameters
    ----------
    scores : array (C, B)
        Scores of C classes for B images.

    Returns
    -------
    array (C, B)
        Probabilities; each column sums to 1.

    Examples
    --------
    >>> softmax(np.array([[1000.0], [1000.0]])).ravel()
    array([0.5, 0.5])
    """
    exponentials = exp(scores - scores.max(axis=0))
    return exponentials / exponentials.sum(axis=0)


def image_losses(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Negative log-likelihood of each image, -log p_b(label_b).

    Parameters
    ----------
    scores : array (C, B)
        Scores before the softmax.
    labels : integer array (B,)
        Class numbers.

    Returns
    -------
    array (B,)
        Losses in float64.

    Examples
    --------
    >>> image_losses(np.zeros((2, 1)), np.array([0])).round(6)
    array([0.693147])
    """
    shifted = scores.astype(np.float64) - scores.max(axis=0)
    return log(exp(shifted).sum(axis=0)) - shifted[labels, np.arange(len(labels))]


def negative_log_likelihood(
    scores: np.ndarray,
    labels: np.ndarray,
    n_images: int | None = None,
    label_smoothing: float = 0.0,
    weights: np.ndarray | None = None,
):
    """Mean negative log-likelihood after the softmax, and its gradient.

    Parameters
    ----------
    scores : array (C, B)
        Scores before the softmax.
    labels : integer array (B,)
        Class numbers.
    n_images : int, optional
        n in the formulas, by default B. If the images are one part of a batch, give the size of the whole batch;
        losses and gradients of the parts then add up to those of the batch.
    label_smoothing : float
        e in the formulas, from 0 to below 1. Smoothing keeps the network from becoming overconfident on a few
        training images.
    weights : array (B,), optional
        w in the formulas, by default 1 for each image.

    Returns
    -------
    loss : float
        E.
    grad : array (C, B)
        dE/dscores.

    Notes
    -----
    With probabilities p and targets q,

        E          = -1/n sum_b w_b sum_c q_{c,b} log p_{c,b}
        dE/dscores = w (p - q) / n
        q          = (1 - e) onehot + e / C

    Examples
    --------
    >>> loss, grad = negative_log_likelihood(np.zeros((2, 1)), np.array([0]))
    >>> float(loss.round(6)), grad.ravel()
    (0.693147, array([-0.5,  0.5]))
    """
    n_classes, n_batch = scores.shape
    if labels.shape != (n_batch,):
        raise ShapeError(f"Expected one label for each of the {n_batch} images, got shape {labels.shape}.")
    n_images = n_batch if n_images is None else n_images
    images = np.arange(n_batch)
    shifted = scores - scores.max(axis=0)
    log_sum = log(exp(shifted).sum(axis=0))
    on_label, on_each = 1 - label_smoothing, label_smoothing / n_classes  # q = on_label * onehot + on_each
    log_likelihood = on_label * shifted[labels, images] - log_sum
    if label_smoothing > 0:
        log_likelihood += on_each * shifted.sum(axis=0)
    grad = exp(shifted - log_sum) - scores.dtype.type(on_each)
    grad[labels, images] -= on_label
    if weights is not None:
        weights = weights.astype(scores.dtype)
        log_likelihood = log_likelihood * weights
        grad *= weights
    loss = -log_likelihood.sum() / n_images
    grad /= n_images
    return loss, grad
