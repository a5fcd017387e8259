"""docs/deploy.md: its command and its Python example hold."""

import doctest
import re
from pathlib import Path

import pytest

from tests.cli.running import run

PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"


def measurements_hidden(text):
    return re.sub(r"\d\.\de-\d+|onnxruntime [\d.]+", "#", text).strip()


@pytest.mark.slow
def test_the_examples_of_the_page_hold(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command, expected = re.search(r"^\$ tigra (.*)\n((?:(?!```).*\n)*)", PAGE.read_text("utf-8"), re.MULTILINE).groups()
    assert measurements_hidden(run(*command.split()).stdout) == measurements_hidden(expected)
    results = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert results.failed == 0 and results.attempted >= 8
