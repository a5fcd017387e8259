"""Command-line options generated from the fields of `tigra.options`, and help grouped under headings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:  # not loaded for --help alone
    from tigra.option_fields import Options, Spec

FIRST = "Options"  # heading of the options most users need


def spelling(name: str) -> str:
    """Return how an option is written on the command line.

    >>> spelling("learning_rate")
    '--learning-rate'
    """
    return "--" + name.replace("_", "-")


class HeadedOption(click.Option):
    """An option with a heading for its help; an old name is accepted but not shown."""

    def __init__(self, *args: Any, heading: str = FIRST, formerly: str = "", **keywords: Any):
        super().__init__(*args, **keywords)
        self.heading, self.formerly = heading, formerly

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return names and help, without the old name."""
        record = super().get_help_record(ctx)
        return record and (
            record[0].replace(f", {spelling(self.formerly)}", "") if self.formerly else record[0],
            record[1],
        )


class HeadedCommand(click.Command):
    """A command whose help lists options under headings, those that most users need first."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one block per heading, in the order in which headings first appear."""
        blocks: dict[str, list] = {FIRST: []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                blocks.setdefault(getattr(parameter, "heading", FIRST), []).append(record)
        for heading, records in blocks.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def click_type(spec: Spec) -> click.ParamType:
    """Return the click type that accepts the values of a field."""
    if spec.type == "choice":
        return click.Choice([str(choice) for choice in spec.choices])
    limits: dict[str, Any] = {
        "min": None if spec.least == float("-inf") else spec.least,
        "max": None if spec.most == float("inf") else spec.most,
        "min_open": spec.above,
        "max_open": spec.below,
    }
    if spec.type == "whole":
        return click.IntRange(
            **limits | {k: v if v is None else int(v) for k, v in limits.items() if k in ("min", "max")}
        )
    return click.FloatRange(**limits) if spec.type == "real" else click.STRING


def field_options(*classes: type[Options], first: Iterable[str] = ()) -> Callable:
    """Decorator: add an option for every field that has a heading.

    An option that is not given is None, and the recipe decides. Fields named in `first` are listed
    under the first heading.
    """
    specs = _headed(classes)

    def decorate(command: Callable) -> Callable:
        for name, spec in reversed(specs.items()):
            flag = f"{spelling(name)}/--no-{name.replace('_', '-')}" if spec.type == "flag" else spelling(name)
            kind = {} if spec.type == "flag" else {"type": click_type(spec)}
            old = [spelling(spec.formerly)] if spec.formerly else []
            command = click.option(
                flag,
                *old,
                name,
                cls=HeadedOption,
                formerly=spec.formerly,
                heading=FIRST if name in first else spec.heading,
                default=None,
                help=spec.help.replace("`", ""),
                **kind,
            )(command)
        return command

    return decorate


def _headed(classes: Iterable[type[Options]]) -> dict[str, Spec]:
    """Return the fields that have a heading, in the order of the classes."""
    return {name: spec for cls in classes for name, spec in cls.specs().items() if spec.heading}


def given_fields(settings: Mapping[str, Any], *classes: type[Options]) -> dict[str, Any]:
    """Return the options given on the command line, as values of the fields."""
    specs = _headed(classes)
    given = {name: settings[name] for name in specs if settings[name] is not None}
    for name, value in given.items():
        whole = {str(choice): choice for choice in specs[name].choices}
        given[name] = whole.get(value, value)  # click returns choices as text
    return given
