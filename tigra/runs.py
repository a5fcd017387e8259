"""A run: a network made by a recipe, trained on a data set, kept in a model file, and measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from tigra.architecture import build_network, with_pooling_limited
from tigra.datasets import DATASETS
from tigra.errors import DatasetError, ModelFileError
from tigra.model_file import Model, save
from tigra.settings import FitOptions
from tigra.splits import Splits
from tigra.training import Training, accuracy, split_hash


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


def save_run(training: Training, splits: Splits, path, report: dict | None = None, **more) -> None:
    """Write the best network so far, with what is known of the run, and `more`; an unfinished one can be resumed."""
    best = training.best_epoch
    facts = {
        "dataset": splits.name,
        "dataset_options": splits.options,
        "split_hash": split_hash(splits),
        "learned": " ".join(sorted(splits.learned)),
        "protocol": splits.protocol,
        "options": asdict(training.options),
        "best_epoch": best.number if best else 0,
        "history": [asdict(epoch) for epoch in training.history],
        "accuracy": report["accuracy"] if report else None,
        **more,
    }
    save(training.best_network(), path, facts, None if training.is_finished else training.snapshot())


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
    training: Training, splits: Splits, seconds: float, on_progress: Callable[[str, int, int], None] = lambda *_: None
) -> dict:
    """What came out, ready for JSON; accuracies as fractions. on_progress is called with (part, done, of how many)."""
    network, parts = training.network, measured_parts(splits)

    def measure(name, split):
        return accuracy(network, split, training.threads, lambda done, total: on_progress(name, done, total))

    return {
        "dataset": splits.name,
        "images": {name: len(split.labels) for name, split in parts.items()},
        "architecture": network.options["architecture"],
        "parameters": network.n_parameters,
        "seed": training.options.seed,
        "epochs": len(training.history),
        "best_epoch": training.best_epoch.number,
        "seconds": round(seconds, 3),
        "protocol": splits.protocol,
        "notes": list(splits.notes),
        "accuracy": {name: measure(name, split) for name, split in parts.items()},
    }
