"""A run: a classifier made by a recipe, trained or fitted on a data set, kept in a model file, and measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from tigra.architecture import PAIRED, build_network, with_pooling_limited
from tigra.classifier import Classifier
from tigra.datasets import DATASETS
from tigra.deepscat import DeepScat
from tigra.errors import DatasetError, ModelFileError, UsageError
from tigra.fitting import DEEPSCAT_RECIPES, fit_deepscat, suited
from tigra.methods import METHODS
from tigra.model_file import Model, save
from tigra.recipes import LEAST_STEPS, RECIPE_NAMES, find_recipe
from tigra.settings import FitOptions
from tigra.sources import cache_folder
from tigra.splits import Splits
from tigra.training import Training, accuracy, split_hash

METHOD_NAMES = "tigranet", *METHODS, "deepscat"


def recipe_for(dataset: str, name: str = "best", method: str = "tigranet") -> dict:
    """The recipe of a method for a data set, or for a folder of the user's own pictures.

    TIGraNet's are in `tigra.recipes`. Of the networks that it is compared with (`tigra.methods`) "best" starts FC
    layers from He's values and "paper" from the paper's U[-1, 1]; of DeepScat (`tigra.fitting`) "paper" has the
    paper's settings and "best" those chosen on validation images.

    >>> recipe_for("eth-80", "paper", "convnet")["network"]["init"]
    'paper'
    >>> recipe_for("eth-80", "paper", "deepscat")["architecture"]
    'W[2, 5]-PCA[20]'
    """
    if method not in METHOD_NAMES:
        raise UsageError(f"A method is one of {', '.join(METHOD_NAMES)}, got {method!r}.")
    if name not in RECIPE_NAMES or method == "tigranet":
        return find_recipe(dataset, name)
    if method == "deepscat":
        recipes = DEEPSCAT_RECIPES["chosen" if name == "best" else "paper"]
        return recipes[dataset if dataset in recipes else "folder"]
    of_method = METHODS[method]
    recipe = of_method.get(dataset) or of_method["eth-80"] | {"least_steps": LEAST_STEPS}
    return recipe | {"network": recipe["network"] | {"init": "he" if name == "best" else "paper"}}


def start_run(splits: Splits, recipe: dict, seed: int = 0, threads: int = 1, limit_pooling=None, **changes) -> Training:
    """A new run by a recipe (`tigra.recipes`), with changes of its settings by name; one seed decides everything.

    limit_pooling : fit the recipe's dynamic pooling to the number of pixels; by default for the user's own
        pictures, of which the recipe knows nothing

    >>> from tigra.datasets import load_dataset
    >>> from tigra.recipes import find_recipe
    >>> training = start_run(load_dataset("mnist-012"), find_recipe("mnist-012"), epochs=2)
    >>> training.options.epochs, training.network.n_parameters
    (2, 14563)
    """
    of_fit = {name: value for name, value in changes.items() if name in FitOptions.__dataclass_fields__}
    options = recipe["network"] | {name: value for name, value in changes.items() if name not in of_fit}
    if changes.get("mixing", "pairs") not in PAIRED:  # then what the recipe has for pairs alone goes, too
        others = {"diffusion": 0} | ({"active": "map"} if options.get("active") == "all" else {})
        options |= {name: value for name, value in others.items() if name not in changes}
    if "architecture" not in changes and (splits.name not in DATASETS if limit_pooling is None else limit_pooling):
        height, width = (size + 2 * options["margin"] for size in splits.image_shape)  # small images have few nodes
        options["architecture"] = with_pooling_limited(options["architecture"], height * width)
    network = build_network(**options, image_shape=splits.image_shape, n_classes=len(splits.class_names), seed=seed)
    network.class_names = splits.class_names
    how = recipe["fit"] | of_fit
    n_steps = -(-len(splits.train.labels) // how["batch_size"])
    if "epochs" not in changes:
        how["epochs"] = max(how["epochs"], -(-recipe.get("least_steps", 0) // n_steps))
    return Training(network, splits, FitOptions(**how, seed=seed), threads)


def fit_run(
    splits: Splits, recipe: dict, threads: int = 1, on_progress=lambda *_: None, architecture: str | None = None
) -> DeepScat:
    """DeepScat, fitted by a recipe; on_progress is called with (what is done, how many, of how many).

    architecture : one to be taken as it is, instead of the recipe's; only logarithm and scale are chosen then
    """
    if architecture is not None:
        free = {name: values for name, values in recipe.get("candidates", {}).items() if name in ("log", "standardise")}
        recipe = recipe | {"architecture": architecture, "candidates": free}
    elif splits.name not in DATASETS:
        text = suited(recipe["architecture"], splits.image_shape, splits.train.labels)
        recipe = recipe | {"architecture": text}
    model, _ = fit_deepscat(splits, **recipe, threads=threads, cache=cache_folder(), on_progress=on_progress)
    model.class_names = splits.class_names
    return model


def save_run(training: Training, splits: Splits, path, report: dict | None = None, **more) -> None:
    """Write the best network so far, with what is known of the run, and `more`; an unfinished one can be resumed."""
    best = training.best_epoch
    facts = _facts(splits, report) | {
        "options": asdict(training.options),
        "best_epoch": best.number if best else 0,
        "history": [asdict(epoch) for epoch in training.history],
    }
    save(training.best_network(), path, facts | more, None if training.is_finished else training.snapshot())


def save_fitted(model: DeepScat, splits: Splits, path, report: dict | None = None, **more) -> None:
    """Write a classifier that was fitted, with what is known of it, and `more`."""
    save(model, path, _facts(splits, report) | more)


def _facts(splits: Splits, report: dict | None) -> dict:
    return {
        "dataset": splits.name,
        "dataset_options": splits.options,
        "split_hash": split_hash(splits),
        "learned": " ".join(sorted(splits.learned)),
        "protocol": splits.protocol,
        "accuracy": report["accuracy"] if report else None,
    }


def resume_run(model: Model, splits: Splits, path, threads: int = 1) -> Training:
    """The run that a model file (read from `path`) holds, ready to go on, to the same bits as without a stop."""
    if model.resume is None:
        raise ModelFileError(f"{path} holds a finished run, there is nothing to resume; start a new one.")
    arrays, numbers = model.resume
    try:
        training = Training(model.network, splits, FitOptions(**numbers["options"]), threads)
        if training.data_hash != numbers["data_hash"]:
            raise DatasetError(
                f"The images of {splits.name} have changed since {path} was saved; put them back, or start a new run."
            )
        training.restore(arrays, numbers)
    except DatasetError:
        raise
    except Exception as error:  # the file's numbers may be of any kind
        raise ModelFileError(f"{path} does not say how to go on ({error}); start a new run.") from error
    return training


def measured_parts(splits: Splits) -> dict:
    """The splits that accuracy is reported on; transformed test images only where there are any."""
    parts = {"train": splits.train, "valid": splits.valid, "test_upright": splits.test_upright}
    return parts | ({"test_transformed": splits.test} if splits.transform else {})


def run_report(
    model: Classifier,
    splits: Splits,
    threads: int = 1,
    on_progress: Callable[[str, int, int], None] = lambda part, done, total: None,
    **facts,
) -> dict:
    """What came out, ready for JSON, with further facts; accuracies as fractions.

    on_progress : called with (part of the data set, images done, of how many)
    """
    parts = measured_parts(splits)

    def measure(name, split):
        return accuracy(model, split, threads, lambda done, total: on_progress(name, done, total))

    return {
        "dataset": splits.name,
        "images": {name: len(split.labels) for name, split in parts.items()},
        "architecture": model.options["architecture"],
        "parameters": model.n_parameters,
        **facts,
        "protocol": splits.protocol,
        "notes": list(splits.notes),
        "accuracy": {name: measure(name, split) for name, split in parts.items()},
    }


def training_facts(training: Training, seconds: float) -> dict:
    """What a report says of a training run."""
    return {
        "seed": training.options.seed,
        "epochs": len(training.history),
        "best_epoch": training.best_epoch.number,
        "seconds": round(seconds, 3),
    }
