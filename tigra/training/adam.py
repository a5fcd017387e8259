"""The Adam optimiser and the learning-rate schedules."""

from __future__ import annotations

import numpy as np

from tigra.errors import UsageError
from tigra.kernels.adam import adam_step
from tigra.kernels.functions import cosine_of_turn, whole_power
from tigra.options import SCHEDULES


class Adam:
    """The Adam optimiser (Kingma and Ba, 2015) with decoupled weight decay (Loshchilov and Hutter, 2019).

    Parameters
    ----------
    parameters : array (P,)
        p, updated in place.
    beta1, beta2 : float
        Decay rates b1 and b2 of the running moments.
    epsilon : float
        Added to the denominator.
    decay : array (P,), optional
        Weight decay of each parameter, by default 0. Each step also subtracts rate * decay * p.

    Notes
    -----
    Step n = 1, 2, ... with gradient g is

        m = b1 m + (1 - b1) g            v = b2 v + (1 - b2) g^2
        p = p - rate * (m / (1 - b1^n)) / (sqrt(v / (1 - b2^n)) + epsilon)

    Examples
    --------
    >>> p = np.array([1.0, -1.0])
    >>> Adam(p).step(np.array([1000.0, -0.001]), rate=0.1)
    >>> p.round(4)  # the first step is rate * sign(g), whatever the gradient's size
    array([ 0.9, -0.9])
    """

    def __init__(self, parameters: np.ndarray, beta1=0.9, beta2=0.999, epsilon=1e-8, decay=None):
        self.parameters = parameters
        self.decay = np.zeros_like(parameters) if decay is None else decay
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self.mean = np.zeros_like(parameters)
        self.square = np.zeros_like(parameters)
        self.n_steps = 0

    def step(self, gradient: np.ndarray, rate: float) -> None:
        """Update the parameters with the gradient dE/dp and the given learning rate."""
        self.n_steps += 1
        number = self.parameters.dtype.type  # a float64 scalar would turn float32 arithmetic into float64
        grown = 1 - whole_power(self.beta1, self.n_steps), 1 - whole_power(self.beta2, self.n_steps)
        rates = tuple(number(value) for value in (rate, 1 - self.beta1, 1 - self.beta2, *grown))
        adam_step(self.parameters, self.mean, self.square, gradient, self.decay, rates, number(self.epsilon))


def learning_rate(peak: float, step: int, n_steps: int, schedule: str = "one-cycle") -> float:
    """Learning rate at a given step.

    Parameters
    ----------
    peak : float
        Largest learning rate.
    step : int
        Number of the step, from 0 to n_steps - 1.
    n_steps : int
        Number of steps of the whole run.
    schedule : {"one-cycle", "cosine", "constant"}
        "one-cycle": rises from peak/25 over the first 30 % of the steps, then falls to almost 0, both along half a
        cosine. "cosine": falls from the peak to almost 0 along half a cosine. "constant": always the peak.

    Returns
    -------
    float
        The learning rate.

    Examples
    --------
    >>> [round(learning_rate(1.0, step, 11), 3) for step in (0, 3, 10)]
    [0.04, 1.0, 0.0]
    """
    if schedule == "constant":
        return peak
    if schedule == "cosine":
        return float(peak * 0.5 * (1 + cosine_of_turn(step / n_steps)))
    if schedule != "one-cycle":
        raise UsageError(f"schedule must be one of {', '.join(SCHEDULES)}, got {schedule!r}.")
    rise, done = 0.3, step / max(n_steps - 1, 1)
    if done < rise:
        low, high, phase = peak / 25, peak, 1 - done / rise
    else:
        low, high, phase = peak * 1e-4, peak, (done - rise) / (1 - rise)
    return float(low + (high - low) * 0.5 * (1 + cosine_of_turn(phase)))
