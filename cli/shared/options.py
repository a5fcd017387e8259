"""Options and types that more than one command uses."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from .field_options import HeadedOption


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
        from tigra.model_file import packaged_models

        models = packaged_models()
        if not os.path.isfile(value):
            if value in models:
                return str(models[value])
            if not os.path.exists(value):
                names = ", ".join(models) or "none"
                self.fail(f"Model file {value!r} does not exist; models that come with tigra: {names}.", param, ctx)
        return super().convert(value, param, ctx)

    def shell_complete(self, ctx, param, incomplete):
        """Models that come with tigra, and files."""
        from tigra.model_file import packaged_models

        return [*_completions(packaged_models(), incomplete), CompletionItem(incomplete, type="file")]


def _completions(names, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


class MethodName(click.ParamType):
    """A method that makes a model, also one that --import has registered."""

    name = "method"

    def _names(self) -> list[str]:
        from tigra.experiments.methods import METHODS

        return [name for name, method in METHODS.items() if method.makes_model]

    def get_metavar(self, param, ctx=None):
        """The names."""
        return f"[{'|'.join(self._names())}]"

    def convert(self, value, param, ctx):
        """The name, if there is such a method."""
        if value not in self._names():
            self.fail(f"{value!r} is not one of {', '.join(self._names())}.", param, ctx)
        return value

    def shell_complete(self, ctx, param, incomplete):
        """The names that begin so."""
        return _completions(self._names(), incomplete)


class RecipeName(click.ParamType):
    """The name of a recipe; which ones there are is the method's affair."""

    name = "recipe"

    def get_metavar(self, param, ctx=None):
        """TIGraNet's."""
        return "[best|paper]"

    def shell_complete(self, ctx, param, incomplete):
        """TIGraNet's."""
        return _completions(("best", "paper"), incomplete)


def _import_modules(ctx, param, names) -> tuple[str, ...]:
    """Import modules that register layers, data sets or methods: by name, also from this folder, or by file."""
    for name in names:
        sys.path.insert(0, os.getcwd())  # a console script does not look here by itself
        try:
            if name.endswith(".py"):
                _import_file(Path(name))
            else:
                importlib.import_module(name)
        except Exception as error:  # the module is the user's; its errors are theirs to read
            raise click.BadParameter(f"{name}: {type(error).__name__}: {error}.", ctx, param) from error
        finally:
            sys.path.remove(os.getcwd())
    return names


def _import_file(path: Path) -> None:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # the file's name ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)


import_option = click.option(
    "--import",
    "modules",
    multiple=True,
    is_eager=True,
    expose_value=False,
    metavar="MODULE",
    callback=_import_modules,
    help="First import this Python module (or file) with layers, data sets or methods of your own.",
)


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
    cls=HeadedOption,
    heading="Data",
    type=click.Choice(["cubic", "linear"]),
    default="cubic",
    show_default=True,
    help="How test images are interpolated when they are rotated.",
)
