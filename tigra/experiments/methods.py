"""Methods as things: each has a name, recipes, and starts runs. One registry, with one door: `register_method`.

TIGraNet, ConvNet, STN and HarmNet are networks, which are trained; DeepScat is fitted; nearest neighbour does neither.
A user's own method (docs/extending.md) is one more object with the same three answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tigra.baselines.deepscat.deepscat import read_deepscat
from tigra.baselines.deepscat.fitting import suited
from tigra.datasets.splits import Splits
from tigra.errors import UsageError
from tigra.experiments import recipes as book
from tigra.experiments.runs import DeepScatRun, NearestRun, NetworkRun, Run
from tigra.models.build import Plan, check_effects, with_pooling_limited
from tigra.models.notation import parse_architecture
from tigra.options import BuildOptions, Recipe
from tigra.training import Training


class Method:
    """A way to get from training images to a classifier.

    name : what users write after --method
    recipe_names : those that `recipe` knows, the usual one first
    makes_model : whether there is a model to save; else it is for tables alone
    """

    name = ""
    recipe_names: tuple[str, ...] = ("best",)
    makes_model = True

    def recipe(self, dataset: str, name: str = "best") -> Any:
        """The recipe of that name for a data set; an object that can be compared, with to_json and with_changes."""
        raise NotImplementedError

    def read_recipe(self, content: Mapping[str, Any]) -> Any:
        """The recipe that to_json wrote."""
        raise NotImplementedError

    def check_changes(self, changes: Mapping[str, Any], recipe: Any, spelling=lambda name: name) -> None:
        """UsageError for changes of a recipe that can have no effect; spelling: from a name to what the user wrote."""

    def start(self, splits: Splits, recipe: Any, seed: int = 0, threads: int = 1) -> Run:
        """A new run; one seed decides everything."""
        raise NotImplementedError


class NetworkMethod(Method):
    """A network that is trained by gradients.

    layers : names of the layers that it is made of, or none, if it may have any
    """

    def __init__(self, name: str, recipes: Mapping[str, Mapping[str, Recipe]], layers: tuple[str, ...] = ()):
        self.name, self.recipes, self.layers = name, recipes, layers
        self.recipe_names = tuple(name for name in book.RECIPE_NAMES if name in recipes["folder"])

    def recipe(self, dataset: str, name: str = "best") -> Recipe:
        """See `tigra.experiments.recipes`.

        >>> METHODS["convnet"].recipe("eth-80", "paper").network.dense_init
        'paper'
        """
        return book.in_book(self.recipes, dataset, name)

    def read_recipe(self, content: Mapping[str, Any]) -> Recipe:
        """The recipe that to_json wrote, by this version or an older one."""
        return Recipe.from_json(content)

    def check_changes(self, changes: Mapping[str, Any], recipe: Recipe, spelling=lambda name: name) -> None:
        """Layers must be the method's own, and options must be of use to one of them."""
        architecture = changes.get("architecture", recipe.network.architecture)
        names = {item.name for item in parse_architecture(architecture)}
        if names & {"W", "PCA"}:
            raise UsageError(
                f"W and PCA are layers of DeepScat, which is fitted, not trained: use {spelling('method')} deepscat."
            )
        if self.layers and (foreign := names - set(self.layers)):
            raise UsageError(
                f"Method {self.name} is made of {', '.join(self.layers)}, and has no {min(foreign)}; leave out"
                f" {spelling('method')} or change {spelling('architecture')}."
            )
        check_effects(changes, architecture, spelling)
        if changes.get("neighbours") == 4 and "diagonal_weight" in changes:
            raise UsageError(f"{spelling('diagonal_weight')} has no effect with 4 neighbours; leave it out.")

    def start(self, splits: Splits, recipe: Recipe, seed: int = 0, threads: int = 1) -> NetworkRun:
        """A new training run.

        >>> from tigra.datasets import load_dataset
        >>> method = METHODS["tigranet"]
        >>> run = method.start(load_dataset("mnist-012"), method.recipe("mnist-012").with_changes({"epochs": 2}))
        >>> run.training.options.epochs, run.model.n_parameters
        (2, 14563)
        """
        options = BuildOptions(
            **recipe.network, image_shape=splits.image_shape, n_classes=len(splits.class_names), seed=seed
        )
        if recipe.limits_pooling:
            height, width = options.grid_shape
            text = with_pooling_limited(options.architecture, height * width)
            options = replace(options, architecture=text)
        network = Plan.of(options).network()
        network.class_names = splits.class_names
        n_steps = -(-len(splits.train.labels) // recipe.fit.batch_size)
        epochs = max(recipe.fit.epochs, -(-recipe.least_steps // n_steps))
        fit = replace(recipe.fit, epochs=epochs, seed=seed)
        return NetworkRun(Training(network, splits, fit, threads), splits)


class DeepScatMethod(Method):
    """DeepScat: scattering features and a plane for each class, fitted."""

    name = "deepscat"
    recipe_names = book.RECIPE_NAMES

    def recipe(self, dataset: str, name: str = "best") -> book.DeepScatRecipe:
        """See `tigra.experiments.recipes`.

        >>> METHODS["deepscat"].recipe("eth-80", "paper").architecture
        'W[2, 5]-PCA[20]'
        """
        return book.in_book(book.DEEPSCAT_RECIPES, dataset, name)

    def read_recipe(self, content: Mapping[str, Any]) -> book.DeepScatRecipe:
        """The recipe that to_json wrote."""
        return book.DeepScatRecipe.from_json(content)

    def check_changes(self, changes, recipe, spelling=lambda name: name) -> None:
        """Only the architecture can be changed."""
        recipe.with_changes({spelling(name) if name != "architecture" else name: v for name, v in changes.items()})

    def start(self, splits, recipe, seed=0, threads=1) -> DeepScatRun:
        """A new run; nothing of it is random."""
        if recipe.limits_size:
            text = suited(recipe.architecture, splits.image_shape, splits.train.labels)
            recipe = replace(recipe, architecture=text)
        read_deepscat(recipe.architecture, splits.image_shape)  # complains before any work
        return DeepScatRun(recipe, splits, seed, threads)


class NearestMethod(Method):
    """One nearest neighbour on pixels: no learning at all, to judge how hard a split is."""

    name = "nearest"
    makes_model = False

    def recipe(self, dataset: str, name: str = "best") -> None:
        """It has none."""
        return

    def read_recipe(self, content: Any) -> None:
        """It has none."""
        return

    def start(self, splits, recipe=None, seed=0, threads=1) -> NearestRun:
        """A run that only remembers the training images."""
        return NearestRun(splits, threads)


METHODS: dict[str, Method] = {}


def register_method(method: Method) -> Method:
    """Make a method known by its name, to `tigra train --method` and to tables."""
    known = METHODS.get(method.name)
    if not method.name or (known is not None and type(known).__qualname__ != type(method).__qualname__):
        raise UsageError(f"A method needs a name of its own, got {method.name!r}; there are {', '.join(METHODS)}.")
    METHODS[method.name] = method
    return method


register_method(NetworkMethod("tigranet", book.RECIPES))
register_method(NetworkMethod("convnet", book.CONVNET_RECIPES, ("C", "P", "FC")))
register_method(NetworkMethod("stn", book.STN_RECIPES, ("C", "P", "ST", "FC")))
register_method(NetworkMethod("harmnet", book.HARMNET_RECIPES, ("HRC", "HCN", "HBN", "MP")))
register_method(DeepScatMethod())
register_method(NearestMethod())


def find_method(name: str) -> Method:
    """The method of that name."""
    if name not in METHODS:
        raise UsageError(f"A method is one of {', '.join(METHODS)}, got {name!r}.")
    return METHODS[name]
