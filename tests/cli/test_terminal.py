"""What reaches the terminal: nothing that a file's name or a model's text could use, and the right advice."""

import errno
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import tigra_cli
from PIL import Image
from tigra_cli.shared.output import say
from tigra_cli.shared.signals import StopSignals, signals_interrupt

from tests.cli.running import run
from tigra.files.advice import ADVICE, advice_for

EVIL = "\x1b[31mred\u202e"


@pytest.fixture
def picture(tmp_path):
    Image.fromarray(np.arange(784, dtype=np.uint8).reshape(28, 28)).save(tmp_path / "good.png")
    return tmp_path / "good.png"


def test_every_command_prints_through_say():
    folder = Path(tigra_cli.__path__[0])
    echoing = [path.name for path in folder.rglob("*.py") if "click.echo" in path.read_text(encoding="utf-8")]
    assert echoing == ["output.py"]


def test_control_characters_are_escaped_but_line_ends_are_not(capsys):
    say(f"a{EVIL}\nb\r\x9b")
    assert capsys.readouterr().out == "a\\x1b[31mred\\u202e\nb\\r\\x9b\n"


def test_names_of_files_and_arguments_are_escaped(tmp_path, picture):
    evil = picture.rename(tmp_path / f"{EVIL}.png")
    said = [
        run("predict", "mnist-012", evil).output,
        run("predict", "mnist-012", tmp_path / f"{EVIL}.gif", expect=1).output,
        run("predict", f"{EVIL}.npz", evil, expect=2).output,
        run(f"{EVIL}", expect=2).output,
        run(f"--{EVIL}", expect=2).output,
        run("evaluate", "mnist-012", f"{EVIL}", expect=2).output,
    ]
    for text in said:
        assert "\\x1b[31m" in text and "\x1b" not in text and "\u202e" not in text


def test_pictures_that_are_missing_do_not_keep_the_others_from_being_predicted(tmp_path, picture):
    result = run("predict", "mnist-012", tmp_path / "missing.png", picture, "/dev/null", expect=1)
    assert "good.png: " in result.stdout and result.stdout.count("\n") == 1
    missing, device = result.stderr.splitlines()
    assert "missing.png: No such file or directory" in missing and "it is not a regular file" in device


def test_the_advice_suits_the_error(monkeypatch, picture):
    assert set(ADVICE) <= set(dir(errno))
    for number, words in ((errno.ENOSPC, "free disk space"), (errno.EACCES, "permissions"), (errno.EMFILE, "ulimit")):
        error = OSError(number, os.strerror(number), "here")
        monkeypatch.setattr("tigra_cli.predict.load_model", lambda _, error=error: (_ for _ in ()).throw(error))
        said = run("predict", "mnist-012", picture, expect=1).stderr
        assert said.startswith(f"Error: {os.strerror(number)} (here); ") and words in said
    assert advice_for(OSError("odd")) == "check the path and the disk"


class EndedError(Exception):
    """Raised in place of the end of the process."""


@pytest.mark.usefixtures("heeds_signals")
def test_a_second_ctrl_c_ends_at_once(monkeypatch, capfd):
    def end(status):
        raise EndedError(status)

    monkeypatch.setattr(os, "_exit", end)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with pytest.raises(EndedError, match="130"), signals_interrupt():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)  # it is stopping already
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(EndedError, match="130"), StopSignals() as stop:
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGINT):
            os.kill(os.getpid(), number)
    assert stop.received == [signal.SIGINT, signal.SIGHUP]
    assert capfd.readouterr().err.count("Stopped at once") == 2
