"""Resampling of images under rotations and shifts."""

import numpy as np

from tigra.kernels.decorator import kernel


@kernel
def sample_moved(coefficients, frame, motions, cubic, out):
    """Rotate and shift images: out[n] at position p is image n at A (p - centre) + centre - shift.

    Positions outside the image, beyond the centres of its outer pixels, give 0.

    Parameters
    ----------
    coefficients : array (n, H + 2 frame, W + 2 frame)
        Spline coefficients, or pixels if not `cubic`, with a frame so that all neighbours of a position exist.
    frame : int
        Width of the frame.
    motions : array (n, 4)
        Rows (cosine, sine, shift down, shift right); A is [[cosine, sine], [-sine, cosine]].
    cubic : bool
        Cubic splines, or linear interpolation.
    out : array (n, H, W)
        Result.
    """
    n_images, height, width = out.shape
    middle_row, middle_column = 0.5 * (height - 1), 0.5 * (width - 1)
    down, right = np.empty(4), np.empty(4)
    for n in range(n_images):
        source, target = coefficients[n], out[n]
        cosine, sine, shift_down, shift_right = motions[n]
        for i in range(height):
            for j in range(width):
                row = cosine * (i - middle_row) + sine * (j - middle_column) + middle_row - shift_down
                column = -sine * (i - middle_row) + cosine * (j - middle_column) + middle_column - shift_right
                if row < 0 or row > height - 1 or column < 0 or column > width - 1:
                    target[i, j] = 0
                    continue
                top, left = int(row), int(column)  # both are >= 0, so this rounds down
                _spline_weights(row - top, cubic, down)
                _spline_weights(column - left, cubic, right)
                total = 0.0
                for a in range(4):
                    line = source[top + frame - 1 + a]
                    part = 0.0
                    for b in range(4):
                        part += right[b] * line[left + frame - 1 + b]
                    total += down[a] * part
                target[i, j] = total


@kernel
def _spline_weights(t, cubic, weights):
    """Fill the weights of the pixels at -1, 0, 1, 2 for a position t in [0, 1): cubic B-spline, or linear."""
    if cubic:
        rest = 1 - t
        weights[0] = rest * rest * rest / 6
        weights[1] = 2 / 3 - t * t * (2 - t) / 2
        weights[2] = 2 / 3 - rest * rest * (2 - rest) / 2
        weights[3] = t * t * t / 6
    else:
        weights[0], weights[1], weights[2], weights[3] = 0, 1 - t, t, 0
