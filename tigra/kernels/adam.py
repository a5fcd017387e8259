"""One step of Adam."""

import numpy as np

from tigra.kernels.decorator import kernel


@kernel
def adam_step(parameters, mean, square, gradient, decay, rates, epsilon):
    """One step of Adam (`tigra.training.adam.Adam`), in place.

    Works in blocks that fit into the L1 cache, with three vectorised loops per block.

    Parameters
    ----------
    parameters, mean, square, gradient, decay : array (P,)
        Parameters, running moments, gradient and weight decay.
    rates : tuple of float
        (learning rate, 1 - b1, 1 - b2, 1 - b1^n, 1 - b2^n).
    epsilon : float
        Added to the denominator.
    """
    rate, take_mean, take_square, grown_mean, grown_square = rates
    for start in range(0, parameters.size, 1024):
        p, m, v = parameters[start : start + 1024], mean[start : start + 1024], square[start : start + 1024]
        g, d = gradient[start : start + 1024], decay[start : start + 1024]
        for q in range(m.size):
            m[q] += take_mean * (g[q] - m[q])
        for q in range(v.size):
            v[q] += take_square * (g[q] * g[q] - v[q])
        for q in range(p.size):
            p[q] -= rate * ((m[q] / grown_mean) / (np.sqrt(v[q] / grown_square) + epsilon) + d[q] * p[q])
