"""`tigra gradcheck`: compare the hand-written gradients with finite differences."""

from __future__ import annotations

import math
import time

import click

from tigra.gradcheck.checks import run_checks

from .shared.options import import_option, json_option, seed_option
from .shared.output import Progress, duration, print_json, say, table


@click.command()
@click.option(
    "--layer",
    help="Check only this layer, e.g. SpectralConv, Loss, Network, or a layer of your own.",
)
@seed_option
@import_option
@json_option
@click.pass_context
def gradcheck(ctx, layer, seed, as_json):
    """Compare every hand-written gradient with finite differences.

    Checks the gradients of every layer, with respect to its input and to each of its parameters, and those
    of whole networks with their loss. Prints the relative errors in float64. The exit status is 1 if a
    gradient is wrong.

    \b
    Example:
        tigra gradcheck --layer SpectralConv
    """
    started = time.monotonic()
    with Progress() as progress:
        progress.show("compiling the kernels takes some seconds the first time")
        checks = list(run_checks(layer, seed, lambda what, done, total: progress.show(f"{what}, {done}/{total}")))
    seconds = time.monotonic() - started
    passed = all(check.passed for check in checks)
    if as_json:
        entries = [
            {**check._asdict(), "error": check.error if math.isfinite(check.error) else None, "passed": check.passed}
            for check in checks
        ]
        print_json({"seed": seed, "passed": passed, "checks": entries})
    else:
        rows = [
            (c.case, c.what, c.size, f"{c.error:.1e}", f"{c.tolerance:.0e}", "ok" if c.passed else "WRONG")
            for c in checks
        ]
        say(table(rows, header=("layer", "dE/d", "numbers", "error", "allowed", "")))
        wrong = [check for check in checks if not check.passed]
        for check in wrong:
            say(f"WRONG: {check.case}, dE/d({check.what}): see {check.where}.")
        verdict = (
            f"{len(checks)} gradients checked, {len(wrong)} wrong" if wrong else f"all {len(checks)} gradients right"
        )
        say(f"{verdict}, {duration(seconds)}")
    if not passed:
        ctx.exit(1)
