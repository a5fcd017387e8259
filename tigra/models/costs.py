"""Estimates of memory and work, so that a network that asks for too much is refused before it predicts.

A model file of a few hundred kilobytes can describe a network with a hundred thousand maps. The estimates count, for
one image, the numbers that the layers hold at the same time and the multiplications and additions. They are meant to
be right within a factor of about two (tests/models/test_costs.py).
"""

from __future__ import annotations

from typing import NamedTuple

from tigra.errors import UsageError
from tigra.options import Limits

STENCIL = 9  # operations for a product of the Laplacian and a map, per node


class Cost(NamedTuple):
    """What one image costs.

    Attributes
    ----------
    numbers : float
        Numbers in memory, in the precision of the network.
    operations : float
        Multiplications and additions.
    """

    numbers: float = 0.0
    operations: float = 0.0

    def plus(self, other: Cost) -> Cost:
        """The cost of both."""
        return Cost(self.numbers + other.numbers, self.operations + other.operations)


def check_cost(cost: Cost, n_images: int, itemsize: int) -> None:
    """Raise UsageError if a network needs more memory or work than the limits allow.

    Parameters
    ----------
    cost : Cost
        Estimate for one image.
    n_images : int
        Number of images that one thread processes at a time.
    itemsize : int
        Bytes of a number.
    """
    limits = Limits.now()
    megabytes = -(-cost.numbers * n_images * itemsize // 10**6)
    if megabytes > limits.max_memory:
        raise _beyond("MB of memory", f"for the maps of {n_images} images", megabytes, limits.max_memory, "MAX_MEMORY")
    millions = -(-cost.operations // 10**6)
    if millions > limits.max_work:
        raise _beyond("million operations", "for one image", millions, limits.max_work, "MAX_WORK")


def _beyond(unit: str, what: str, needed: float, limit: int, name: str) -> UsageError:
    images = what.replace("1 images", "1 image") if what.endswith(" 1 images") else what
    return UsageError(
        f"This network needs about {needed:,.0f} {unit} {images}, the limit is {limit:,}; use a smaller network or"
        f" smaller images, or set TIGRA_{name} to {needed:.0f}."
    )
