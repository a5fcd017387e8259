"""Commands are run in this process, by click's own runner."""

import os

from click.testing import CliRunner
from tigra_cli.main import main

from tigra.training.training import Training


def run(*arguments, expect=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == expect, f"exit {result.exit_code}\n{result.output}\n{result.exception!r}"
    return result


def run_and_stop(number, epoch, step, *arguments):
    """Run a training that is sent a signal in that step; with the fixture `heeds_signals`."""
    right = Training._gradient

    def interrupted(self, *more):
        if (len(self.history), self.step) == (epoch - 1, step - 1):
            os.kill(os.getpid(), number)
        return right(self, *more)

    Training._gradient = interrupted
    try:
        return run(*arguments, expect=130)
    finally:
        Training._gradient = right
