"""An oriented convolution step by step, on any graph with an orientation.

`tigra.layers.OrientedConv` uses it on graphs without a discrete gradient. On padded grids it is the readable
reference: there `tigra.kernels.oriented.convolution` does the same in one call.
"""

from __future__ import annotations

import numpy as np

from tigra.graph import Graph
from tigra.graph.orientation import cross, cross_adjoint, dot, dot_adjoint
from tigra.graph.polynomials import laplacian_powers_adjoint, laplacian_step
from tigra.kernels.products import outer, product, times, transposed_times
from tigra.kernels.workspace import Workspace


def chain_forward(graph: Graph, y, alpha, mixing, space: Workspace, x) -> tuple[np.ndarray, np.ndarray]:
    """Fill x (K_out, N, B); returns the terms (T, N, B) and the pairs (2, R, N, B), for `chain_backward`.

    Parameters
    ----------
    graph : Graph
        With an orientation.
    y : array (K_in, N, B)
        Maps, contiguous.
    alpha, mixing : array (K_out, T), array (2 R, 2 K_in)
        Weights of the terms, and of the pairs.
    space : Workspace
        Scratch arrays.
    x : array (K_out, N, B)
        Result.
    """
    n_in, n_pairs = len(y), len(mixing) // 2
    terms = space.array("terms", (alpha.shape[1], *y.shape[1:]), y.dtype)
    pairs = space.array("pairs", (2, n_pairs, *y.shape[1:]), y.dtype)
    n_filtered = len(terms) - 2 * n_pairs
    terms[:n_in] = y
    for past in range(0, n_filtered - n_in, n_in):
        maps = terms[past : past + n_in]
        laplacian_step(graph, maps, maps, 1, 0, 0, out=terms[past + n_in : past + 2 * n_in])
    times(mixing, _rows(terms[: 2 * n_in]), pairs.reshape(2 * n_pairs, -1))
    terms[n_filtered:-n_pairs] = dot(graph, *pairs)
    terms[-n_pairs:] = cross(graph, *pairs)
    times(alpha, _rows(terms), _rows(x))
    return terms, pairs


def chain_backward(graph: Graph, grad_x, alpha, mixing, space: Workspace, terms, pairs, grads) -> np.ndarray:
    """Fill grads, those of alpha and mixing, from grad_x (K_out, N, B); returns dE/dy (K_in, N, B).

    docs/derivations.md, section 20, has the four steps.
    """
    grad_alpha, grad_mixing = grads
    n_pairs, n_mixed = pairs.shape[1], mixing.shape[1]
    grad_terms = space.array("grad terms", terms.shape, terms.dtype)
    grad_pairs = space.array("grad pairs", pairs.shape, pairs.dtype)
    _outer(_rows(grad_x), _rows(terms), grad_alpha)
    transposed_times(alpha, _rows(grad_x), _rows(grad_terms))
    a, b = pairs
    through_dot = dot_adjoint(graph, a, b, grad_terms[-2 * n_pairs : -n_pairs])
    through_cross = cross_adjoint(graph, a, b, grad_terms[-n_pairs:])
    for to, one, other in zip(grad_pairs, through_dot, through_cross, strict=True):
        np.add(one, other, out=to)
    of_pairs = grad_pairs.reshape(2 * n_pairs, -1)
    _outer(of_pairs, _rows(terms[:n_mixed]), grad_mixing)
    n = of_pairs.shape[1]
    weights = mixing.reshape(-1), 1, n_mixed, n_mixed, 2 * n_pairs  # of the transpose
    product(*weights, of_pairs.reshape(-1), 0, n, grad_terms.reshape(-1), 0, n, n, False)
    powers = grad_terms[: -2 * n_pairs].reshape(-1, n_mixed // 2, *terms.shape[1:])
    return laplacian_powers_adjoint(graph, powers)


def _rows(maps: np.ndarray) -> np.ndarray:
    """Maps (K, N, B) as rows (K, N B)."""
    return maps.reshape(len(maps), -1)


def _outer(grad, x, out) -> None:
    """out = grad x^T, the sums over nodes and images."""
    n = x.shape[1]
    outer(grad.reshape(-1), 0, n, len(grad), x.reshape(-1), 0, n, len(x), out.reshape(-1), n, True)
