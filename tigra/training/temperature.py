"""One temperature for the probabilities of a network, from validation images (Guo et al., 2017)."""

from __future__ import annotations

import math

import numpy as np

from tigra.models.loss import negative_log_likelihood

LARGEST = 20.0  # temperatures are from 1 / LARGEST to LARGEST


def fitted_temperature(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the temperature T at which the labels are most likely under softmax(scores / T).

    Parameters
    ----------
    scores : array (n, C)
        Scores of images that the network was not trained on.
    labels : integer array (n,)
        Their classes.

    Returns
    -------
    float
        The temperature, with four digits. Above 1 it makes probabilities less extreme; the predicted classes stay.

    Notes
    -----
    One of n + 1 images is treated as unlabelled, so that no class is ever certain, even if all images are right.

    Examples
    --------
    >>> scores = np.array([[4.0, 0.0]] * 4)  # 98 % sure, but 75 % right
    >>> temperature = fitted_temperature(scores, np.array([0, 0, 0, 1]))
    >>> bool(1 / (1 + np.exp(-4 / temperature)) < 0.75)
    True
    """
    from scipy.optimize import minimize_scalar  # not loaded for prediction alone

    columns, doubt = np.asarray(scores, np.float64).T, 1 / (len(labels) + 1)

    def loss(logarithm: float) -> float:
        return float(negative_log_likelihood(columns / math.exp(logarithm), labels, label_smoothing=doubt)[0])

    limit = math.log(LARGEST)
    found = minimize_scalar(loss, bounds=(-limit, limit), method="bounded", options={"xatol": 1e-6}).x
    return float(f"{math.exp(found):.4g}")
