"""Mean and variance of absolute values over nodes, and their gradient."""

import numpy as np

from tigra.kernels.decorator import kernel


@kernel
def absolute_moments(t, mean, variance):
    """Compute the mean and the variance of abs(t) over the nodes, for each image.

    Parameters
    ----------
    t : array (N, B)
        Signals, one per image.
    mean, variance : arrays (B,)
        Filled with the result.
    """
    n_nodes, n_batch = t.shape
    one_nth = mean.dtype.type(1.0 / n_nodes)
    mean[:] = 0
    variance[:] = 0
    for v in range(n_nodes):
        row = t[v]
        for b in range(n_batch):
            mean[b] += abs(row[b])
    for b in range(n_batch):
        mean[b] *= one_nth
    for v in range(n_nodes):
        row = t[v]
        for b in range(n_batch):
            deviation = abs(row[b]) - mean[b]
            variance[b] += deviation * deviation
    for b in range(n_batch):
        variance[b] *= one_nth


@kernel
def absolute_moments_gradient(t, mean, grad_mean, grad_variance, out):
    """Compute dE/dt from the gradients of the mean and the variance of abs(t).

    dE/dt = sign(t) / N * (dE/dmean + 2 (abs(t) - mean) dE/dvariance), Eqs. (18), (19) as corrected, with sign(0) = 0.

    Parameters
    ----------
    t : array (N, B)
        Signals, one per image.
    mean : array (B,)
        Mean of abs(t) over the nodes.
    grad_mean, grad_variance : arrays (B,)
        dE/dmean and dE/dvariance.
    out : array (N, B)
        Filled with dE/dt.
    """
    n_nodes, n_batch = t.shape
    one_nth = mean.dtype.type(1.0 / n_nodes)
    two = mean.dtype.type(2.0)
    for v in range(n_nodes):
        row, to = t[v], out[v]
        for b in range(n_batch):
            value = row[b]
            slope = one_nth * (grad_mean[b] + two * (abs(value) - mean[b]) * grad_variance[b])
            to[b] = slope * np.sign(value)
