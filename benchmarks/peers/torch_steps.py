"""The single steps of the hand-written peer on framed signals (K, H+2, W+2, B), zeros in the frame.

`eager` adds neighbours by oneDNN's depthwise convolution, whose channels-last order is the batch-last
layout; `compiled` leaves slices to torch.compile, which makes one loop of each step. Both fill `out`
inside its frame. A is the normalised adjacency, L = I - A, L - I = -A.
"""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch.nn import functional


def inner(x):
    """A framed signal without its frame."""
    return x[:, 1:-1, 1:-1]


def eager(stencil) -> SimpleNamespace:
    """Steps out of ready-made operations, as few passes as these allow."""

    def weighted(x, factor):
        n_batch = x.shape[3]
        weights = (factor * stencil).expand(n_batch, 1, 3, 3)
        return functional.conv2d(x.permute(0, 3, 1, 2), weights, groups=n_batch).permute(0, 2, 3, 1)

    def laplacian(x, out):
        torch.sub(inner(x), weighted(x, 1), out=inner(out))

    def shifted(x, out):
        inner(out).copy_(weighted(x, -1))

    def chebyshev(current, previous, out, factor=2):
        torch.sub(weighted(current, -factor), inner(previous), out=inner(out))

    def horner(x, sets, term, out):
        to = inner(out)
        torch.sub(inner(x), weighted(x, 1), out=to)
        to.addcmul_(inner(sets), inner(term[None]))

    def moments(t, n_nodes):
        n_maps, _, _, n_batch = t.shape
        ones = torch.full((1, 1, t[0, :, :, 0].numel()), 1 / n_nodes, dtype=t.dtype)
        size = t.abs().view(n_maps, -1, n_batch)
        mean = torch.matmul(ones, size)  # a product with ones is the fastest sum
        size.sub_(mean).mul_(size)
        frame = ones.numel() / n_nodes - 1  # nodes of the frame, which count as 0 - mean
        return mean[:, 0], (torch.matmul(ones, size) - frame * mean.square())[:, 0]

    def add_slopes(t, height, slope, out):
        out.addcmul_(t.sign(), height).addcmul_(t, slope)

    def mix(terms, weights):
        return torch.stack([(term * weights).sum(dim=0) for term in terms])

    return SimpleNamespace(**{name: value for name, value in locals().items() if callable(value)})


def compiled(stencil) -> SimpleNamespace:
    """Each step one loop, made by torch.compile."""
    diagonal, straight = stencil[0, 0, 0, 0].item(), stencil[0, 0, 0, 1].item()

    def adjacency(x):
        sides = (x[:, :-2, 1:-1] + x[:, 2:, 1:-1]) + (x[:, 1:-1, :-2] + x[:, 1:-1, 2:])
        corners = (x[:, :-2, :-2] + x[:, 2:, 2:]) + (x[:, :-2, 2:] + x[:, 2:, :-2])
        return straight * sides + diagonal * corners

    def laplacian(x, out):
        inner(out).copy_(inner(x) - adjacency(x))

    def shifted(x, out):
        inner(out).copy_(-adjacency(x))

    def chebyshev(current, previous, out, factor=2):
        inner(out).copy_(-factor * adjacency(current) - inner(previous))

    def horner(x, sets, term, out):
        inner(out).copy_(inner(x) - adjacency(x) + inner(sets) * inner(term[None]))

    def moments(t, n_nodes):
        size = t.flatten(1, 2).abs()
        mean = size.sum(dim=1) / n_nodes
        frame = size.shape[1] / n_nodes - 1  # nodes of the frame, which count as 0 - mean
        return mean, (size - mean[:, None]).square().sum(dim=1) / n_nodes - frame * mean.square()

    def add_slopes(t, height, slope, out):  # not one with the Clenshaw step: that loop takes three times as long
        out.copy_(out + t.sign() * height + t * slope)

    def mix(terms, weights):
        return (terms * weights).sum(dim=1)

    steps = {name: value for name, value in locals().items() if callable(value) and name != "adjacency"}
    return SimpleNamespace(**{name: torch.compile(step, dynamic=False) for name, step in steps.items()})
