"""Options and types that more than one command uses."""

from __future__ import annotations

import os

import click


def usable_cores() -> int:
    """How many cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


EXISTING_FILE = click.Path(exists=True, dir_okay=False)


class ModelFile(click.Path):
    """A model file, or the name of a model that comes with tigra; a file of that name goes first."""

    name = "model"

    def __init__(self):
        super().__init__(exists=True, dir_okay=False)

    def convert(self, value, param, ctx):
        """The path of the file."""
        from tigra.packaged import packaged_models

        models = packaged_models()
        if not os.path.isfile(value):
            if value in models:
                return str(models[value])
            if not os.path.exists(value):
                names = ", ".join(models) or "none"
                self.fail(f"Model file {value!r} does not exist; models that come with tigra: {names}.", param, ctx)
        return super().convert(value, param, ctx)


model_argument = click.argument("model", metavar="MODEL", type=ModelFile())
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Decides everything random."
)
threads_option = click.option(
    "--threads",
    type=click.IntRange(min=1, max=1024),
    default=usable_cores,
    show_default="all cores",
    help="Worker threads; results do not depend on them.",
)
interpolation_option = click.option(
    "--interpolation",
    type=click.Choice(["cubic", "linear"]),
    default="cubic",
    show_default=True,
    help="How test images are interpolated when they are turned.",
)
