"""A dense layer of prediction in one call: `tigra.layers.Dense`, and the rectifier after it."""

from tigra.kernels.decorator import kernel
from tigra.kernels.products import product


@kernel
def dense(weight, bias, is_rectified, x, out):
    """Fill out (F_out, B) with a = W x + c, or with a where a > 0 and 0 elsewhere; x (F_in, B)."""
    (n_rows, n_terms), n = weight.shape, x.shape[1]
    product(weight.reshape(-1), n_terms, 1, n_rows, n_terms, x.reshape(-1), 0, n, out.reshape(-1), 0, n, n, True)
    for i in range(n_rows):
        for b in range(n):
            a = out[i, b] + bias[i]
            out[i, b] = a * out.dtype.type(a > 0) if is_rectified else a  # NaN stays NaN, as in `ReLU`
