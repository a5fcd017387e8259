"""`tigra gradcheck`: the hand-written gradients against finite differences."""

from __future__ import annotations

import math

import click
from tigra_cli.shared.options import json_option, seed_option
from tigra_cli.shared.output import Progress, print_json, table

from tigra.gradcheck.checks import run_checks


@click.command()
@click.option("--layer", help="Only this layer, e.g. SpectralConv; also Loss or Network.")
@seed_option
@json_option
@click.pass_context
def gradcheck(ctx, layer, seed, as_json):
    """Compare every hand-written gradient with finite differences.

    For each layer, its input and each of its parameters, and for a whole network with its loss:
    the relative error in float64. The exit status is 1 when one is off.

    \b
    Example:
        tigra gradcheck --layer SpectralConv
    """
    checks = []
    with Progress() as progress:
        progress.show("compiling")
        for check in run_checks(layer, seed):
            progress.show(f"checked {check.case}, {check.what}")
            checks.append(check)
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
        click.echo(table(rows, header=("layer", "dE/d", "numbers", "error", "allowed", "")))
        wrong = sum(not check.passed for check in checks)
        click.echo(f"{len(checks)} gradients checked, {wrong} wrong" if wrong else f"all {len(checks)} gradients right")
    if not passed:
        ctx.exit(1)
