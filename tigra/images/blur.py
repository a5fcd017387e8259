"""Blur images along their columns or rows, with symmetric weights; pixels outside count as 0.

The order of additions is that of `scipy.ndimage.correlate1d`, in float64, and so are the bits.
"""

import numpy as np

from tigra.kernels.decorator import kernel


@kernel
def blur_both_ways(x, weights, scratch, out):
    """Fill out with the mean of blurring columns and then rows, and rows and then columns; scratch is like x."""
    half = x.dtype.type(0.5)
    blur_rows(x, weights, scratch)
    blur_columns(scratch, weights, out)
    blur_columns(x, weights, scratch)
    blur_rows(scratch, weights, scratch)
    first, second = out.reshape(out.size), scratch.reshape(scratch.size)
    for q in range(first.size):
        first[q] = (first[q] + second[q]) * half


@kernel
def blur_columns(x, weights, out):
    """Fill out with sum_j weights[j] x[row + j - reach], along the columns of images x (n, height, width)."""
    n_images, height, width = x.shape
    reach, total = len(weights) // 2, np.empty(width)
    outside = np.zeros(width, x.dtype)
    for image in range(n_images):
        for i in range(height):
            _start(x[image, i], weights[reach], total)
            for j in range(reach, 0, -1):
                above = x[image, i - j] if i >= j else outside
                below = x[image, i + j] if i + j < height else outside
                _add(above, below, weights[reach - j], total)
            _store(total, out[image, i])


@kernel
def blur_rows(x, weights, out):
    """Fill out with sum_j weights[j] x[column + j - reach], along the rows of images x (n, height, width).

    out may be x.
    """
    n_images, height, width = x.shape
    reach, total = len(weights) // 2, np.empty(width)
    line = np.zeros(width + 2 * reach, x.dtype)  # a row between zeros
    for image in range(n_images):
        for i in range(height):
            _store(x[image, i], line[reach : reach + width])
            _start(x[image, i], weights[reach], total)
            for j in range(reach, 0, -1):
                _add(line[reach - j :][:width], line[reach + j :][:width], weights[reach - j], total)
            _store(total, out[image, i])


@kernel
def _start(x, weight, total):
    for q in range(total.size):
        total[q] = weight * x[q]


@kernel
def _add(a, b, weight, total):
    for q in range(total.size):
        total[q] += (np.float64(a[q]) + np.float64(b[q])) * weight


@kernel
def _store(x, to):
    for q in range(to.size):
        to[q] = x[q]
