"""Estimates of memory and work, so that a network that asks for too much is refused before it predicts or trains.

A model file of a few hundred kilobytes can describe a network with a hundred thousand maps. The estimates count, for
one image, the numbers that the layers hold at the same time and the multiplications and additions. They are meant to
be right within a factor of about two (tests/models/test_costs.py).
"""

from __future__ import annotations

from typing import NamedTuple

from tigra.errors import UsageError
from tigra.options import Limits

TRAINING = 1.6  # maps in training, with those kept for the backward pass and gradients, in multiples of prediction
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
        what = f"This network needs about {megabytes:,.0f} MB of memory for the maps of {_images(n_images)}"
        raise _beyond(what, megabytes, limits.max_memory, "MAX_MEMORY")
    millions = -(-cost.operations // 10**6)
    if millions > limits.max_work:
        what = f"This network needs about {millions:,.0f} million operations for one image"
        raise _beyond(what, millions, limits.max_work, "MAX_WORK")


def check_training_cost(cost: Cost, n_images: int, n_parameters: int, itemsize: int) -> None:
    """Raise UsageError if a training step needs more memory than the limit allows.

    Parameters
    ----------
    cost : Cost
        Estimate for the prediction of one image.
    n_images : int
        Number of images whose maps are in memory at the same time, in all threads.
    n_parameters : int
        Number of parameters, times the number of vectors that are as long.
    itemsize : int
        Bytes of a number.
    """
    limit = Limits.now().max_training_memory
    megabytes = -(-(TRAINING * cost.numbers * n_images + n_parameters) * itemsize // 10**6)
    if megabytes > limit:
        what = f"Training this network needs about {megabytes:,.0f} MB of memory for {_images(n_images)} at a time"
        remedy = "a smaller batch size, " if n_images > 1 else ""
        raise _beyond(what, megabytes, limit, "MAX_TRAINING_MEMORY", remedy)


def _images(count: int) -> str:
    return f"{count} image{'s' if count > 1 else ''}"


def _beyond(what: str, needed: float, limit: int, name: str, remedy: str = "") -> UsageError:
    return UsageError(
        f"{what}, the limit is {limit:,}; use {remedy}a smaller network or smaller images, or set TIGRA_{name} to"
        f" {needed:.0f}."
    )
