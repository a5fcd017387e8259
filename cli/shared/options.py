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
    """Return the number of cores this process may use; processes of mpiexec share those of their machine."""
    from .processes import current_team

    return current_team().cores


EXISTING_FILE = click.Path(exists=True, dir_okay=False)


class ModelFile(click.Path):
    """A model file, or the name of a model that comes with tigra; a file of that name takes precedence."""

    name = "model"

    def __init__(self):
        super().__init__(exists=True, dir_okay=False)

    def convert(self, value, param, ctx):
        """Return the path of the file."""
        from tigra.model_file import packaged_models

        models = packaged_models()
        if not os.path.isfile(value):
            if value in models:
                return str(models[value])
            if not os.path.exists(value):
                names = ", ".join(models) or "none"
                self.fail(
                    f"Model file {value!r} does not exist; models that come with tigra: {names}.",
                    param,
                    ctx,
                )
        return super().convert(value, param, ctx)

    def shell_complete(self, ctx, param, incomplete):
        """Complete models that come with tigra, and files."""
        from tigra.model_file import packaged_models

        return [*_completions(packaged_models(), incomplete), CompletionItem(incomplete, type="file")]


def _completions(names, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


class MethodName(click.ParamType):
    """A method that makes a model; --import can register more."""

    name = "method"

    def _names(self) -> list[str]:
        from tigra.experiments.methods import METHODS

        return [name for name, method in METHODS.items() if method.makes_model]

    def get_metavar(self, param, ctx=None):
        """Return the names."""
        return f"[{'|'.join(self._names())}]"

    def convert(self, value, param, ctx):
        """Return the name; fail if there is no such method."""
        if value not in self._names():
            self.fail(f"Expected one of {', '.join(self._names())}, got {value!r}.", param, ctx)
        return value

    def shell_complete(self, ctx, param, incomplete):
        """Complete the names."""
        return _completions(self._names(), incomplete)


class RecipeName(click.ParamType):
    """The name of a recipe; each method has its own, which are checked later."""

    name = "recipe"
    names = "best", "pooled", "achiral", "repaired", "paper"  # as in tigra.experiments.recipes, which is slow to import

    def get_metavar(self, param, ctx=None):
        """Return the recipes of TIGraNet."""
        return f"[{'|'.join(self.names)}]"

    def shell_complete(self, ctx, param, incomplete):
        """Complete the recipes of TIGraNet."""
        return _completions(self.names, incomplete)


def _import_modules(ctx, param, names) -> tuple[str, ...]:
    """Import the modules, and keep their names for other processes."""
    try:
        import_modules(names)
    except ImportError as error:
        raise click.BadParameter(f"{error}.", ctx, param) from error
    ctx.meta["modules"] = names
    return names


def import_modules(names: tuple[str, ...]) -> None:
    """Import modules that register layers, data sets or methods, by module name or by path of a .py file."""
    for name in names:
        path = Path(name).resolve() if name.endswith(".py") else None
        sys.path.insert(0, str(path.parent if path else Path.cwd()))  # a console script does not search here by itself
        try:
            if path:
                _import_file(path)
            else:
                importlib.import_module(name)
        except (Exception, SystemExit) as error:  # user code may raise anything
            text = f"{name}: {type(error).__name__}: {error}".rstrip(".")
            raise ImportError(text) from error


def _import_file(path: Path) -> None:
    known = getattr(sys.modules.get(path.stem), "__file__", None)
    if path.stem in sys.modules and known != str(path):
        raise ImportError(f"there is another module called {path.stem}; rename the file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # the file's name ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise


import_option = click.option(
    "--import",
    "modules",
    multiple=True,
    is_eager=True,
    expose_value=False,
    metavar="MODULE",
    callback=_import_modules,
    help="Import a Python module or .py file that registers your own layers, data sets or methods; can be repeated.",
)


def packaged_name(path: str) -> str | None:
    """Return the name of a model that comes with tigra from the path of its file; None for other files."""
    from tigra.model_file import packaged_models

    return next((name for name, file in packaged_models().items() if str(file) == path), None)


model_argument = click.argument("model", metavar="MODEL", type=ModelFile())
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object, for scripts, instead of text."
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of all random numbers; the same seed gives the same results, another one an independent run.",
)
threads_option = click.option(
    "--threads",
    type=click.IntRange(min=1, max=1024),
    default=usable_cores,
    show_default="all cores",
    help="Number of worker threads; use fewer to leave cores free. The results do not depend on it.",
)
views_option = click.option(
    "--views",
    type=click.IntRange(min=1, max=16),
    default=1,
    show_default=True,
    help="Look at each picture at so many angles and average the scores: 2 also rotates it by 45 degrees, where the"
    " grid of pixels makes a network least accurate. Takes as many times longer. Distances and heat maps are those of"
    " the picture as it is.",
)
interpolation_option = click.option(
    "--interpolation",
    cls=HeadedOption,
    heading="Data",
    type=click.Choice(["cubic", "linear"]),
    default="cubic",
    show_default=True,
    help="How to interpolate test images when they are rotated; linear blurs more.",
)
