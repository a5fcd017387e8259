"""Commands are run in this process, by click's own runner."""

import os

from click.testing import CliRunner
from tigra_cli.main import main

from tigra.training.divergence import Divergence


def run(*arguments, expect=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == expect, f"exit {result.exit_code}\n{result.output}\n{result.exception!r}"
    return result


def run_and_stop(number, epoch, step, *arguments):
    """Run a training that is sent a signal in that step; with the fixture `heeds_signals`."""
    right = Divergence.check_batch  # called in every step

    def interrupted(self, loss, n_epochs, n_steps):
        if (n_epochs, n_steps) == (epoch - 1, step - 1):
            os.kill(os.getpid(), number)
        return right(self, loss, n_epochs, n_steps)

    Divergence.check_batch = interrupted
    try:
        return run(*arguments, expect=130)
    finally:
        Divergence.check_batch = right
