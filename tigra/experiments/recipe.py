"""A recipe: how a network is built and trained. `tigra.experiments.recipes` has the recipes of every method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tigra.option_fields import unknown_option, warn_deprecated
from tigra.options import PAIRED_MIXINGS, FitOptions, NetworkOptions


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
    limits_pooling : bool
        For images of unknown size: dynamic pooling keeps at most half of the nodes in the first layer, a quarter in
        the next, and so on.
    """

    network: NetworkOptions
    fit: FitOptions
    least_steps: int = 0
    limits_pooling: bool = False

    def to_json(self) -> dict[str, Any]:
        """The recipe as a JSON-compatible dictionary."""
        content: dict[str, Any] = {"network": self.network.to_json(), "fit": self.fit.to_json()}
        rest = {"least_steps": self.least_steps, "limits_pooling": self.limits_pooling}
        return content | {name: value for name, value in rest.items() if value}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Recipe:
        """Read a recipe written by `to_json` of this or an earlier version."""
        parts = {"network": NetworkOptions.from_json(content["network"]), "fit": FitOptions.from_json(content["fit"])}
        return cls(**{**content, **parts})

    def with_changes(self, changes: Mapping[str, Any]) -> Recipe:
        """A copy of the recipe with some options changed.

        Given values are used as they are: `epochs` is not raised to `least_steps`, and the pooling of a given
        architecture is not limited.

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
            limits_pooling=self.limits_pooling and "architecture" not in changes,
        )

    def __getitem__(self, name: str) -> Any:
        """Look up an option by name, as in version 0.1; deprecated."""
        warn_deprecated("Recipes are objects now: write recipe.network.margin.")
        return self.to_json().get(name, getattr(self, name, None))
