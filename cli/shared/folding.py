"""`tigra train --folds K`: cross-validation, with mean and spread."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from tigra.experiments.own_data.folds import fold_splits
from tigra.experiments.runs import Stopped, Watch, perform
from tigra.models.classifier import accuracy

from .output import Progress, percent, print_json, say, table


def cross_validated(
    ctx: click.Context, method, recipe, splits, n_folds, seed, threads, watch: Watch, progress: Progress, as_json: bool
) -> None:
    """Train a network for every fold, test it, and print mean and spread; nothing is saved."""
    values: dict[str, list[float]] = {}
    for number, fold in enumerate(fold_splits(splits, n_folds, seed), start=1):
        run = method.start(fold, recipe, seed, threads)
        try:
            perform(run, None, Watch(lambda what, *n, k=number: watch.show(f"fold {k}: {what}", *n), watch.should_stop))
        except Stopped:
            progress.clear()
            say(f"Stopped in fold {number} of {n_folds}; nothing was saved.", err=True)
            ctx.exit(130)
        values.setdefault("test_upright", []).append(accuracy(run.model, fold.test_upright, threads))
        if fold.transform:
            values.setdefault("test_transformed", []).append(accuracy(run.model, fold.test, threads))
    progress.clear()
    for note in splits.notes:
        say(f"Note: {note}.", err=True)
    facts: dict[str, dict[str, Any]] = {
        name: {"mean": float(np.mean(some)), "std": float(np.std(some, ddof=1)), "values": some}
        for name, some in values.items()
    }
    if as_json:
        of_data = {"dataset": splits.name, "folds": n_folds, "seed": seed, "protocol": splits.protocol}
        print_json(of_data | {"notes": list(splits.notes), "accuracy": facts})
        return
    rows = [
        (name.replace("_", ", "), percent(fact["mean"]), percent(fact["std"]), ", ".join(map(percent, fact["values"])))
        for name, fact in facts.items()
    ]
    say(f"{splits.name}: mean and standard deviation over {n_folds} folds, every image tested once")
    say(splits.protocol)
    say(table(rows, header=("images", "accuracy", "+-", "folds")))
