"""Kernels of dynamic pooling."""

import numpy as np

from tigra.kernels.decorator import kernel


@kernel
def count_signs(z, omega, positive, zero):
    """Count the nodes of omega (1, N, B) where z (K, N, B) is above 0, and where it is 0; both (K, B), int32."""
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
    """Fill out (K, B, N), nodes last, with z (K, N, B) on the nodes of omega (1, N, B), and `outside` elsewhere."""
    n_maps, n_nodes, n_batch = z.shape
    for k in range(n_maps):
        for v in range(n_nodes):
            source, is_in, to = z[k, v], omega[0, v], out[k, :, v]
            for b in range(n_batch):
                to[b] = source[b] if is_in[b] else outside


@kernel
def keep_above(z, omega, threshold, active, y):
    """Fill active with the nodes of omega above the threshold (K, B), and y with z on these nodes, 0 elsewhere.

    Runs of 16 nodes are processed together, with repeated thresholds: long loops are faster than short ones.
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
