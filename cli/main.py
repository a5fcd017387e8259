"""`tigra`: the command group, which turns errors into messages."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
from collections.abc import Iterator

import click

from .shared.output import cache_notes, safe, say
from .shared.processes import SHARED, current_team, in_process_0, is_one_of_many
from .shared.signals import signals_interrupt

# Each command has a module of its own, loaded when it is called, so that `tigra --help` is quick.
COMMANDS = {
    "train": "Train a network and save it.",
    "evaluate": "Measure a model's accuracy on freshly transformed test images.",
    "predict": "Predict the class of each picture.",
    "features": "Write the features of pictures to a table.",
    "reproduce": "Reproduce a TABLE of the paper and print it next to the paper's numbers.",
    "data": "List, fetch, verify and show the data sets.",
    "info": "Show the architecture, options and training results of a model.",
    "figures": "Draw what a model has learned and how it processes images.",
    "playground": "Show a network at work on a page in the browser.",
    "export": "Write a model as an ONNX file, to run it without tigra.",
    "equivariance": "Measure how equivariant filters and products are to rotations and shifts, at five resolutions.",
    "gradcheck": "Compare every hand-written gradient with finite differences.",
}


@contextlib.contextmanager
def _safe_messages() -> Iterator[None]:
    """Escape what cannot be printed in messages, which quote names of files and arguments."""
    try:
        yield
    except click.ClickException as error:
        vars(error)["message"] = safe(error.message)  # click declares it final
        raise


class TigraGroup(click.Group):
    """Load commands by name and turn errors into messages: exit status 2 for wrong usage, 1 for the rest."""

    def main(self, *words, **extra):
        """Run in this process, or in all that mpiexec started."""
        return in_process_0(super().main, *words, **extra)

    def list_commands(self, ctx):
        """Return the names, in the order in which they are typically used."""
        return list(COMMANDS)

    def get_command(self, ctx, name):
        """Import and return the command `name` from the module tigra_cli.<name>."""
        if name not in COMMANDS:
            return None
        if is_one_of_many() and name not in SHARED and current_team().size > 1:
            raise click.UsageError(f"tigra {name} runs in one process; start it without mpiexec.")
        return getattr(importlib.import_module(f"tigra_cli.{name}"), name)

    def format_commands(self, ctx, formatter):
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def make_context(self, info_name, args, parent=None, **extra):
        """Parse the options before the command."""
        with _safe_messages():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx):
        """Run the command with messages that are safe to print."""
        with _safe_messages():
            return self._invoke(ctx)

    def _invoke(self, ctx):
        """Run the command; print errors of tigra as one sentence, without a traceback."""
        try:
            with signals_interrupt(), cache_notes():
                return super().invoke(ctx)
        except BrokenPipeError:  # e.g. `tigra ... | head`
            raise
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            say("Stopped.", err=True)
            ctx.exit(130)
        except OSError as error:
            from tigra.files.advice import advice_for

            what = f" ({error.filename})" if error.filename else ""
            raise click.ClickException(f"{error.strerror or error}{what}; {advice_for(error)}.") from error
        except MemoryError as error:
            raise click.ClickException(
                "Not enough memory; use smaller images, fewer filters or a smaller --batch-size."
            ) from error
        except Exception as error:
            from tigra.errors import TigraError, UsageError

            if isinstance(error, UsageError):
                raise click.UsageError(str(error)) from error
            if isinstance(error, TigraError):
                raise click.ClickException(str(error)) from error
            raise


def _print_version(ctx, _, wanted):
    if wanted:
        say(f"tigra {importlib.metadata.version('tigra')}")
        ctx.exit()


@click.group(cls=TigraGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show the version."
)
def main():
    """Train and evaluate TIGraNet, an image classifier that is invariant to rotations and shifts.

    TIGraNet trains on upright images and classifies rotated and shifted ones. Start with the example
    below: its data set mnist-012 (handwritten digits 0, 1 and 2) comes with tigra. For more, see
    'tigra COMMAND --help'.

    \b
    Example:
        tigra train mnist-012
        tigra evaluate mnist-012.npz
    """
