"""Kernels of dynamic pooling."""

import numpy as np

from tigra.kernels.decorator import kernel


@kernel
def count_signs(z, omega, positive, zero):
    """Count the nodes of omega where z is above 0, and where it is 0.

    Parameters
    ----------
    z : array (K, N, B)
        Maps.
    omega : bool array (1, N, B)
        Nodes to count.
    positive, zero : int32 arrays (K, B)
        Filled with the counts.
    """
    n_maps, n_nodes, n_batch = z.shape
    for k in range(n_maps):
        above, level = positive[k], zero[k]
        for b in range(n_batch):
            above[b] = level[b] = 0
        for v in range(n_nodes):
            value, is_in = z[k, v], omega[0, v]
            for b in range(n_batch):
                above[b] += is_in[b] & (value[b] > 0)
            for b in range(n_batch):
                level[b] += is_in[b] & (value[b] == 0)


@kernel
def candidates(z, omega, outside, out):
    """Copy z with the nodes last, and a constant outside omega.

    Parameters
    ----------
    z : array (K, N, B)
        Maps.
    omega : bool array (1, N, B)
        Nodes to copy.
    outside : float
        Value of all other nodes.
    out : array (K, B, N)
        Filled with the result.
    """
    n_maps, n_nodes, n_batch = z.shape
    for k in range(n_maps):
        for v in range(n_nodes):
            source, is_in, to = z[k, v], omega[0, v], out[k, :, v]
            for b in range(n_batch):
                to[b] = source[b] if is_in[b] else outside


@kernel
def keep_above(z, omega, threshold, active, y):
    """Keep the values above a threshold, and set the others to 0.

    Runs of 16 nodes are processed together, with repeated thresholds: long loops are faster than short ones.

    Parameters
    ----------
    z : array (K, N, B)
        Maps.
    omega : bool array (1, N, B)
        Nodes that may be kept.
    threshold : array (K, B)
        Threshold of each map and image.
    active : bool array (K, N, B)
        Filled with the nodes of omega above the threshold.
    y : array (K, N, B)
        Filled with z on the active nodes, and 0 elsewhere.
    """
    n_maps, n_nodes, n_batch = z.shape
    levels, zero = np.empty(16 * n_batch, z.dtype), z.dtype.type(0)
    inside = omega.reshape(n_nodes * n_batch)
    for k in range(n_maps):
        source, marks, target = z[k].reshape(inside.size), active[k].reshape(inside.size), y[k].reshape(inside.size)
        for q in range(levels.size):
            levels[q] = threshold[k, q % n_batch]
        for start in range(0, inside.size, levels.size):
            stop = min(start + levels.size, inside.size)
            value, is_in, mark, to = source[start:stop], inside[start:stop], marks[start:stop], target[start:stop]
            for q in range(stop - start):
                mark[q] = is_in[q] & (value[q] > levels[q])
            for q in range(stop - start):
                to[q] = value[q] if mark[q] else zero  # no product: a NaN or -inf that is dropped must not survive
