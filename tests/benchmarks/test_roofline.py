"""Work counted by hand against kernels that run on numbers which count what is done with them."""

from collections import Counter
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from benchmarks import bench_roofline
from tigra.kernels import grid as grid_kernels
from tigra.kernels import steps as kernels

WIDTH, N_IMAGES = 3, 2


class Counted:
    """A number that counts what is done with it, as operations of its class."""

    done: ClassVar = Counter()

    def __init__(self, value):
        self.value = value

    def _binary(name):
        def operate(self, other):
            Counted.done[name] += 1
            return Counted(1.0)

        return operate

    __add__ = __radd__ = __sub__ = __rsub__ = _binary("sum")
    __mul__ = __rmul__ = _binary("product")

    def __abs__(self):
        Counted.done["abs"] += 1
        return self


def operations(monkeypatch, call, *heights):
    """Operations for each place that the rows of a higher grid bring: what is done once for a map cancels out."""

    def sign(x):
        Counted.done["sign"] += np.size(x)
        return x

    for module in (kernels, grid_kernels):
        for name, value in list(vars(module).items()):
            if hasattr(value, "py_func"):
                monkeypatch.setattr(module, name, value.py_func)
    monkeypatch.setattr(grid_kernels, "np", SimpleNamespace(sign=sign))
    monkeypatch.setattr(grid_kernels, "_fill_row", lambda to, value: to.fill(Counted(0.0)))  # zeros count, too
    counts = []
    for height in heights:
        Counted.done = Counter()
        call(height)
        counts.append(Counted.done)
    places = (heights[1] - heights[0]) * WIDTH * N_IMAGES
    return {name: (counts[1][name] - counts[0][name]) / places for name in counts[1]}


def numbers_that_count(*shape):
    array = np.empty(shape, object)
    array[...] = Counted(1.0)
    return array


@pytest.mark.parametrize("max_order", [1, 2, 5])
def test_flops_of_the_statistics_are_those_that_the_kernels_do(monkeypatch, max_order):
    n_orders, work = max_order + 1, bench_roofline.statistics_work(max_order)

    def arrays(height):
        frames = [numbers_that_count(n, height + 2, (WIDTH + 2) * N_IMAGES) for n in (n_orders, 3)]
        moments = numbers_that_count(1, n_orders, 2, N_IMAGES)
        z, rows = numbers_that_count(1, height * WIDTH, N_IMAGES), numbers_that_count(3, WIDTH * N_IMAGES)
        return z, moments, rows, *frames

    def forward(height):
        z, moments, rows, _, framed = arrays(height)
        grid_kernels.grid_moments(height, z, 1.0, 1.0, framed, rows, moments)

    def backward(height):
        z, moments, rows, framed_t, framed = arrays(height)
        out = z.copy()
        grid_kernels.grid_moments_adjoint(height, z, 1.0, 1.0, moments, moments, framed_t, framed, rows[:2], out)

    done = operations(monkeypatch, forward, 4, 8)
    assert done["abs"] == 2 * n_orders  # of which one is useful
    assert sum(done.values()) - n_orders == work["forward"]["flops"]
    done = operations(monkeypatch, backward, 4, 8)
    again = 11 * max_order  # the t_k
    assert sum(done.values()) - again == work["both"]["flops"] - work["forward"]["flops"]


def test_flops_of_a_laplacian_step_are_those_that_the_kernel_does(monkeypatch):
    def step(height):
        x, out = (numbers_that_count(1, height * WIDTH, N_IMAGES) for _ in range(2))
        kernels.stencil_step(height, x, x, 1.0, 1.0, 1.0, 1.0, out)

    assert sum(operations(monkeypatch, step, 4, 8).values()) == 13
    assert bench_roofline.laplacian_work(1)["flops"] == 13 - 2  # nothing times y is added
