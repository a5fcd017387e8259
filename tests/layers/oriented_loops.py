"""The oracle of the oriented layers: their equations as plain loops, node by node, for one map on a grid."""

import numpy as np

AROUND = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]  # (down, right)


def neighbours(shape, i, j, weight, dilation):
    """(row, column, down, right, weight) of every neighbour inside the grid."""
    for down, right in AROUND:
        row, column = i + dilation * down, j + dilation * right
        if 0 <= row < shape[0] and 0 <= column < shape[1]:
            yield row, column, down, right, weight if down and right else 1.0


def laplacian(y, weight, dilation=1):
    """y_n - sum_m w_nm y_m / d with the degree d of an inner node: outside lies 0."""
    found = np.array(y, np.float64)
    for i, j in np.ndindex(y.shape):
        for row, column, _, _, w in neighbours(y.shape, i, j, weight, dilation):
            found[i, j] -= w * y[row, column] / (4 + 4 * weight)
    return found


def gradient(y, weight, dilation=1):
    """D y(n) = sum_m w_nm (p_m - p_n) y_m / (2 + 4 w), to the right and down; neighbours have distance 1."""
    found = np.zeros((2, *y.shape))
    for i, j in np.ndindex(y.shape):
        for row, column, down, right, w in neighbours(y.shape, i, j, weight, dilation):
            found[:, i, j] += w * np.array([right, down]) * y[row, column] / (2 + 4 * weight)
    return found


def products(a, b, weight, dilation=1):
    """dot and cross of the gradients of two maps, node by node."""
    (a_x, a_y), (b_x, b_y) = gradient(a, weight, dilation), gradient(b, weight, dilation)
    dot, cross = np.zeros(a.shape), np.zeros(a.shape)
    for n in np.ndindex(a.shape):
        dot[n] = a_x[n] * b_x[n] + a_y[n] * b_y[n]
        cross[n] = a_x[n] * b_y[n] - a_y[n] * b_x[n]
    return dot, cross


def oriented_conv(y, alpha, pairs, laplacian, products):
    """x (K_out, ...) of maps y (K_in, ...), term by term, given L and the products of gradients of single maps."""
    n_in, n_pairs = len(y), pairs.shape[1]
    powers = [list(y)]
    while len(powers) * n_in < alpha.shape[1] - 2 * n_pairs:
        powers.append([laplacian(one) for one in powers[-1]])
    mixed = [*powers[0], *powers[1]]
    terms = [one for power in powers for one in power]
    dots, crosses = [], []
    for r in range(n_pairs):
        a = sum(pairs[0, r, k] * mixed[k] for k in range(2 * n_in))
        b = sum(pairs[1, r, k] * mixed[k] for k in range(2 * n_in))
        dot, cross = products(a, b)
        dots.append(dot)
        crosses.append(cross)
    return np.array([sum(w * term for w, term in zip(row, terms + dots + crosses, strict=True)) for row in alpha])


def rectifier(t):
    """The non-linearity of MapNorm."""
    return max(0.0, t)


def map_norm(x, gamma, beta, mean=None, variance=None, epsilon=1e-10):
    """z of one map (N, B): rectifier(s x + h) - rectifier(h), value by value; mean and variance of x unless given."""
    if mean is None:
        mean = sum(value for value in x.flat) / x.size
        variance = sum((value - mean) ** 2 for value in x.flat) / x.size
    s = gamma / np.sqrt(variance + epsilon)
    h = beta - s * mean
    return np.array([rectifier(s * value + h) - rectifier(h) for value in x.flat]).reshape(x.shape)


def coarse(y):
    """Means of blocks of 2x2 nodes; along an odd side every second node instead."""
    rows, columns = ([[i] for i in range(0, n, 2)] if n % 2 else [[i, i + 1] for i in range(0, n, 2)] for n in y.shape)
    return np.array([[np.mean([y[i, j] for i in block for j in other]) for other in columns] for block in rows])
