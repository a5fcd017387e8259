"""Methods that make a classifier: a name, recipes, and a way to start runs; `register_method` adds more.

TIGraNet, ConvNet, STN and HarmNet are networks, which are trained. DeepScat is fitted. Nearest neighbour is
neither. See docs/extending.md for how to add a method.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tigra.baselines.deepscat.deepscat import read_deepscat
from tigra.baselines.deepscat.fitting import suited
from tigra.datasets.splits import Splits
from tigra.errors import UsageError
from tigra.experiments import recipes as book
from tigra.experiments.recipe import Recipe
from tigra.experiments.runs import DeepScatRun, NearestRun, NetworkRun, Run
from tigra.models.build import Plan
from tigra.models.costs import check_training_cost
from tigra.models.effects import check_effects, with_pooling_limited
from tigra.models.notation import parse_architecture
from tigra.option_fields import is_same_object
from tigra.options import BuildOptions, FitOptions
from tigra.training import Training


class Method:
    """Base class of methods, which make a classifier from training images.

    Attributes
    ----------
    name : str
        Name of the method for `tigra train --method`.
    recipe_names : tuple of str
        Names of its recipes, the default first.
    makes_model : bool
        True if there is a model to save. Otherwise the method is for tables only.
    changeable : tuple of str
        Options of its recipes that users may change; others are refused.
    sees_colour : bool
        Whether it takes colour images; otherwise folders are read in grey.
    """

    name = ""
    recipe_names: tuple[str, ...] = ("best",)
    makes_model = True
    changeable: tuple[str, ...] = ()
    sees_colour = True

    def recipe(self, dataset: str, name: str = "best") -> Any:
        """Return a recipe for a data set: an object with `to_json`, `with_changes` and `==`."""
        raise NotImplementedError

    def read_recipe(self, content: Mapping[str, Any]) -> Any:
        """Return the recipe that `to_json` wrote."""
        raise NotImplementedError

    def check_changes(self, changes: Mapping[str, Any], recipe: Any, spelling=lambda name: name) -> None:
        """Raise UsageError for changes without effect; `spelling` maps an option to what the user wrote."""
        for name in changes:
            if name not in self.changeable:
                raise UsageError(f"{spelling(name)} has no effect on method {self.name}; leave it out.")

    def check_size(self, recipe: Any, size: tuple[int, int]) -> None:
        """Raise UsageError if images of this size are too large, before they are read; by default none is."""

    def start(self, splits: Splits, recipe: Any, seed: int = 0, threads: int = 1) -> Run:
        """Start a new run; `seed` is the seed of all its random numbers."""
        raise NotImplementedError


class NetworkMethod(Method):
    """A network that is trained by gradient descent.

    Parameters
    ----------
    name : str
        Name of the method.
    recipes : mapping
        Recipes by data set and name.
    layers : tuple of str
        Names of the layers it may have; empty if it may have any.
    """

    def __init__(self, name: str, recipes: Mapping[str, Mapping[str, Recipe]], layers: tuple[str, ...] = ()):
        self.name, self.recipes, self.layers = name, recipes, layers
        if "folder" not in recipes or not recipes["folder"]:
            raise UsageError(f"Method {name} needs recipes for 'folder', which is used for all other data sets.")
        self.recipe_names = tuple(sorted(recipes["folder"], key=lambda recipe: recipe != "best"))
        self.sees_colour = "HRC" not in layers  # which names its number of input maps

    def recipe(self, dataset: str, name: str = "best") -> Recipe:
        """Return a recipe of `tigra.experiments.recipes`.

        >>> METHODS["convnet"].recipe("eth-80", "paper").network.dense_init
        'paper'
        """
        return book.in_book(self.recipes, dataset, name)

    def read_recipe(self, content: Mapping[str, Any]) -> Recipe:
        """Return the recipe that `to_json` wrote in this version or an older one."""
        return Recipe.from_json(content)

    def check_changes(self, changes: Mapping[str, Any], recipe: Recipe, spelling=lambda name: name) -> None:
        """Raise UsageError for layers of other methods, and for options without effect."""
        architecture = changes.get("architecture", recipe.network.architecture)
        names = {item.name for item in parse_architecture(architecture)}
        if names & {"W", "PCA"}:
            raise UsageError(
                f"W and PCA are layers of DeepScat, which is fitted, not trained; use {spelling('method')} deepscat."
            )
        if self.layers and (foreign := names - set(self.layers)):
            raise UsageError(
                f"Method {self.name} has the layers {', '.join(self.layers)}, got {min(foreign)}; leave out"
                f" {spelling('method')} or change {spelling('architecture')}."
            )
        check_effects(changes, architecture, spelling)
        if changes.get("neighbours") == 4 and "diagonal_weight" in changes:
            raise UsageError(f"{spelling('diagonal_weight')} has no effect with 4 neighbours; leave it out.")

    def settled(
        self,
        recipe: Recipe,
        image_shape: tuple[int, ...],
        n_classes: int,
        n_images: int,
        seed: int,
        background: str = "black",
    ) -> tuple[BuildOptions, FitOptions]:
        """Return the options of a recipe for a number of training images of one shape.

        `background` is what a recipe with background "auto" gets, as `find_background` says.

        >>> method = METHODS["convnet"]  # at least 600 steps, in batches of 100 images
        >>> method.settled(method.recipe("folder"), (8, 8), n_classes=10, n_images=200, seed=0)[1].epochs
        300
        """
        recipe = recipe.for_images(image_shape, n_images, background)
        of_network = dict(recipe.network)
        if of_network["background"] == "auto":
            of_network["background"] = background
        options = BuildOptions(**of_network, image_shape=image_shape, n_classes=n_classes, seed=seed)
        if recipe.limits_pooling:
            height, width = options.grid_shape
            options = replace(options, architecture=with_pooling_limited(options.architecture, height * width))
        n_steps = -(-n_images // recipe.fit.batch_size)
        epochs = max(recipe.fit.epochs, -(-recipe.least_steps // n_steps))
        return options, replace(recipe.fit, epochs=epochs, seed=seed)

    def check_size(self, recipe: Recipe, size: tuple[int, int]) -> None:
        """Raise UsageError if training needs too much memory even for one image of this size."""
        plan = Plan.of(self.settled(recipe, size, n_classes=2, n_images=1, seed=0)[0])
        check_training_cost(plan.cost, 1, plan.n_parameters, np.dtype(plan.options.dtype).itemsize)

    def start(self, splits: Splits, recipe: Recipe, seed: int = 0, threads: int = 1) -> NetworkRun:
        """Start a new training run.

        >>> from tigra.datasets import load_dataset
        >>> method = METHODS["tigranet"]
        >>> run = method.start(load_dataset("mnist-012"), method.recipe("mnist-012").with_changes({"epochs": 2}))
        >>> run.training.options.epochs, run.model.n_parameters
        (2, 26139)
        """
        background = splits.found_background if recipe.network.background == "auto" else ""
        sizes = splits.image_shape, len(splits.class_names), len(splits.train.labels)
        options, fit = self.settled(recipe, *sizes, seed, background)
        network = Plan.of(options).network()
        network.class_names = splits.class_names
        return NetworkRun(Training(network, splits, fit, threads), splits)


class DeepScatMethod(Method):
    """DeepScat: scattering features and an affine PCA classifier, fitted."""

    name = "deepscat"
    recipe_names = book.RECIPE_NAMES
    sees_colour = False

    def recipe(self, dataset: str, name: str = "best") -> book.DeepScatRecipe:
        """Return a recipe of `tigra.experiments.recipes`.

        >>> METHODS["deepscat"].recipe("eth-80", "paper").architecture
        'W[2, 5]-PCA[20]'
        """
        return book.in_book(book.DEEPSCAT_RECIPES, dataset, name)

    def read_recipe(self, content: Mapping[str, Any]) -> book.DeepScatRecipe:
        """Return the recipe that `to_json` wrote."""
        return book.DeepScatRecipe.from_json(content)

    def check_changes(self, changes, recipe, spelling=lambda name: name) -> None:
        """Raise UsageError for changes other than the architecture."""
        recipe.with_changes({spelling(name) if name != "architecture" else name: v for name, v in changes.items()})

    def start(self, splits, recipe, seed=0, threads=1) -> DeepScatRun:
        """Start a new run; it uses no random numbers."""
        if recipe.limits_size:
            text = suited(recipe.architecture, splits.image_shape, splits.train.labels)
            recipe = replace(recipe, architecture=text)
        read_deepscat(recipe.architecture, splits.image_shape)  # fails before any work
        return DeepScatRun(recipe, splits, seed, threads)


class NearestMethod(Method):
    """One nearest neighbour on pixels, without training; shows how hard a split is."""

    name = "nearest"
    makes_model = False

    def recipe(self, dataset: str, name: str = "best") -> None:
        """Return None; there are no recipes."""
        return

    def read_recipe(self, content: Any) -> None:
        """Return None; there are no recipes."""
        return

    def start(self, splits, recipe=None, seed=0, threads=1) -> NearestRun:
        """Start a run that only stores the training images."""
        return NearestRun(splits, threads)


METHODS: dict[str, Method] = {}


def register_method(method: Method) -> Method:
    """Register a method for `tigra train --method` and for tables.

    Parameters
    ----------
    method : Method
        The method. A name that another class has registered is refused.

    Returns
    -------
    Method
        The same method.
    """
    if not isinstance(method, Method):
        raise UsageError(f"A method is an object of a class derived from tigra.Method, got {method!r}.")
    known = METHODS.get(method.name)
    is_new = known is None or is_same_object(type(known), type(method))
    if not method.name or not is_new:
        raise UsageError(
            f"A method needs a name of its own, got {method.name!r}; choose another than {', '.join(METHODS)}."
        )
    METHODS[method.name] = method
    return method


register_method(NetworkMethod("tigranet", book.RECIPES))
register_method(NetworkMethod("convnet", book.CONVNET_RECIPES, ("C", "P", "FC")))
register_method(NetworkMethod("stn", book.STN_RECIPES, ("C", "P", "ST", "FC")))
register_method(NetworkMethod("harmnet", book.HARMNET_RECIPES, ("HRC", "HCN", "HBN", "MP")))
register_method(DeepScatMethod())
register_method(NearestMethod())


def find_method(name: str) -> Method:
    """Return the method of that name."""
    if name not in METHODS:
        raise UsageError(f"method must be one of {', '.join(METHODS)}, got {name!r}.")
    return METHODS[name]
