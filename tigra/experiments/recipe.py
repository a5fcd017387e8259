"""A recipe: how a network is built and trained. `tigra.experiments.recipes` has the recipes of every method."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from tigra.models.notation import parse_architecture
from tigra.option_fields import unknown_option, warn_deprecated
from tigra.options import PAIRED_MIXINGS, FitOptions, NetworkOptions

SMALL_SIDE, LARGE_SIDE = 40, 100  # pixels
FEW_IMAGES = 100, 16  # images for each that is in a batch, and the smallest batch
LARGEST_FACTOR = 4.0  # of the learning rate for larger batches
VERY_FEW_IMAGES, MANY_IMAGES = 100, 5000


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network is built and trained on a data set. Recipes compare by value.

    Attributes
    ----------
    network : NetworkOptions
        How to build the network.
    fit : FitOptions
        How to train it.
    least_steps : int
        Train for at least this many steps; small data sets get more epochs.
    steps_for_few : int
        The same if there are fewer than 100 images.
    epochs_for_many : int
        Number of epochs from 5,000 images on; 0 is the usual one.
    limits_pooling : bool
        For images of unknown size: dynamic pooling keeps at most half of the nodes in the first layer, a quarter in
        the next, and so on.
    small_architecture : str
        For images of unknown size: the architecture for sides of up to 40 pixels; "" is the usual one.
    large_architecture : str
        The same for sides of more than 100 pixels.
    fine_architecture : str
        The same for sides of up to 40 pixels unless the background is black; "" is `small_architecture`.
    fine_smoothing : float
        The smoothing for sides of more than 40 pixels, and with the background `window`; 0 is the usual one.
    evens_grid : bool
        For images of unknown size: enlarge the margin until blocks of coarsening cover the grid evenly.
    limits_batch : bool
        For few images: smaller batches, so that the same number of steps takes less time.
    """

    network: NetworkOptions
    fit: FitOptions
    least_steps: int = 0
    steps_for_few: int = 0
    epochs_for_many: int = 0
    limits_pooling: bool = False
    small_architecture: str = ""
    large_architecture: str = ""
    fine_architecture: str = ""
    fine_smoothing: float = 0.0
    evens_grid: bool = False
    limits_batch: bool = False

    def for_images(self, image_shape: tuple[int, ...], n_images: int, background: str = "") -> Recipe:
        """The recipe for training images of this shape, number and background, if the recipe does not say which.

        >>> recipe = Recipe(network=NetworkOptions(architecture="OC[2, 1]-GC[2]-S[2]", margin=2), fit=FitOptions())
        >>> replace(recipe, evens_grid=True).for_images((31, 31), 100).network.margin
        2
        >>> replace(recipe, limits_batch=True).for_images((31, 31), 100).fit.batch_size
        16
        >>> replace(recipe, least_steps=400, steps_for_few=800).for_images((31, 31), 40).least_steps
        800
        >>> replace(recipe, epochs_for_many=15).for_images((31, 31), 5000).fit.epochs
        15
        >>> replace(recipe, fine_smoothing=0.5).for_images((64, 64), 100).network.smoothing
        0.5
        """
        network, fit = self.network, self.fit
        side = max(image_shape[:2])
        found = background if network.background == "auto" else network.background
        if self.fine_smoothing and (found == "window" or side > SMALL_SIDE):
            network = replace(network, smoothing=self.fine_smoothing)
        for_small = (found not in ("", "black") and self.fine_architecture) or self.small_architecture
        if for_small and side <= SMALL_SIDE:
            network = replace(network, architecture=for_small)
        if self.large_architecture and side > LARGE_SIDE:
            network = replace(network, architecture=self.large_architecture)
        if self.evens_grid:
            network = replace(network, margin=even_margin(network.architecture, network.margin, image_shape))
        if self.limits_batch:
            for_each, least = FEW_IMAGES
            fit = replace(fit, batch_size=min(fit.batch_size, max(least, n_images // for_each)))
        if self.epochs_for_many and n_images >= MANY_IMAGES:
            fit = replace(fit, epochs=self.epochs_for_many)
        steps = max(self.least_steps, self.steps_for_few) if n_images < VERY_FEW_IMAGES else self.least_steps
        return replace(self, network=network, fit=fit, least_steps=steps)

    def to_json(self) -> dict[str, Any]:
        """The recipe as a JSON-compatible dictionary."""
        content: dict[str, Any] = {"network": self.network.to_json(), "fit": self.fit.to_json()}
        rest = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in content}
        return content | {name: value for name, value in rest.items() if value}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Recipe:
        """Read a recipe written by `to_json` of this or an earlier version."""
        parts = {"network": NetworkOptions.from_json(content["network"]), "fit": FitOptions.from_json(content["fit"])}
        return cls(**{**content, **parts})

    def with_changes(self, changes: Mapping[str, Any]) -> Recipe:
        """A copy of the recipe with some options changed.

        Given values are used as they are: `epochs` is not raised to `least_steps`, the pooling of a given
        architecture is not limited, and a given margin or batch size is not adapted to the images.

        Parameters
        ----------
        changes : mapping
            Options of the network or of the training, by name.

        Returns
        -------
        Recipe
            The changed recipe.
        """
        known = {**NetworkOptions.specs(), **FitOptions.specs()}
        older = {spec.formerly for spec in known.values()}
        for name in changes:
            if name not in known and name not in older:
                raise unknown_option("A recipe", name, known)
        of_fit = {name: value for name, value in changes.items() if name in FitOptions.specs()}
        of_network = NetworkOptions.resolved({n: value for n, value in changes.items() if n not in of_fit})
        unused: dict[str, Any] = {}  # options of the recipe that the changes make meaningless
        architecture = of_network.get("architecture", self.network.architecture)
        pairs_maps = of_network.get("mixing", self.network.mixing) in PAIRED_MIXINGS
        if not pairs_maps:
            unused = {"active_set": "map"} if self.network.active_set == "all" else {}
        if not pairs_maps and "OC" not in architecture:
            unused |= {"diffusion": 0}
        if of_network.get("standardise") is False:
            unused |= {"deviation_floor": 0.0, "log_offset": 0.0, "batch_norm": False}
        if of_network.get("deviation_floor"):
            unused |= {"batch_norm": False}
        of_network = unused | of_network
        return Recipe(
            network=self.network.with_changes(of_network),
            fit=self.fit.with_changes(of_fit),
            least_steps=0 if "epochs" in changes else self.least_steps,
            steps_for_few=0 if "epochs" in changes else self.steps_for_few,
            epochs_for_many=0 if "epochs" in changes else self.epochs_for_many,
            limits_pooling=self.limits_pooling and "architecture" not in changes,
            small_architecture="" if "architecture" in changes else self.small_architecture,
            large_architecture="" if "architecture" in changes else self.large_architecture,
            fine_architecture="" if "architecture" in changes else self.fine_architecture,
            fine_smoothing=0.0 if "smoothing" in changes else self.fine_smoothing,
            evens_grid=self.evens_grid and "margin" not in changes,
            limits_batch=self.limits_batch and "batch_size" not in changes,
        )

    def rate_for(self, batch_size: int) -> float:
        """Learning rate for batches of another size.

        With batch normalisation it rises in proportion to larger batches, up to `LARGEST_FACTOR`: measured in
        docs/cluster.md. Other networks keep the recipe's, and so do smaller batches.

        >>> recipe = Recipe(
        ...     network=NetworkOptions(architecture="OC[2, 1]-S[2]", batch_norm=True),
        ...     fit=FitOptions(batch_size=50, learning_rate=0.01),
        ... )
        >>> recipe.rate_for(100), recipe.rate_for(800), recipe.rate_for(10)
        (0.02, 0.04, 0.01)
        """
        factor = min(max(batch_size / self.fit.batch_size, 1.0), LARGEST_FACTOR) if self.network.batch_norm else 1.0
        return self.fit.learning_rate * factor

    def __getitem__(self, name: str) -> Any:
        """Look up an option by name, as in version 0.1; deprecated."""
        warn_deprecated("Recipes are objects now: write recipe.network.margin.")
        return self.to_json().get(name, getattr(self, name, None))


def even_margin(architecture: str, margin: int, image_shape: tuple[int, ...]) -> int:
    """Return the smallest margin from `margin` on with which coarsening divides the grid into whole blocks.

    Images of odd sides have none; they keep `margin`.

    >>> even_margin("OC[2, 1]-GC[2]-OC[2, 1]-GC[2]-S[2]", 2, (32, 32)), even_margin("GC[2]-S[2]", 2, (31, 31))
    (2, 2)
    >>> even_margin("OC[2, 1]-GC[2]-GC[2]-GC[2]-S[2]", 2, (64, 64))
    4
    """
    block = math.prod(int(item.numbers[0]) for item in parse_architecture(architecture) if item.name == "GC")
    even = [more for more in range(margin, margin + block) if all((s + 2 * more) % block == 0 for s in image_shape[:2])]
    return even[0] if even else margin
