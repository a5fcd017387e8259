"""The documents stay true: their commands run, their examples hold, their tables name what exists."""

import doctest
import importlib
import json
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
import tigra_cli
from click.testing import CliRunner
from tigra_cli.main import COMMANDS, main

import tigra
from tests.documents import test_errata, test_errata_theory

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = [f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))]
FENCED = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
MODULES = [
    name
    for package in (tigra, tigra_cli)
    for name in [package.__name__, *(m.name for m in pkgutil.walk_packages(package.__path__, package.__name__ + "."))]
]


def blocks(text, kind):
    return [content for language, content in FENCED.findall(text) if language == kind]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples_in_docstrings():
    finder = doctest.DocTestFinder()
    examples = sum(len(test.examples) for name in MODULES for test in finder.find(importlib.import_module(name)))
    assert examples > 40


def measurements_hidden(text):
    """Text without what differs from machine to machine: percentages, seconds, epochs, errors; blanks folded."""
    text = re.sub(r"\d+\.\d %|\d+\.\de-\d+|(?<=best epoch )\d+", "#", text)
    text = re.sub(r"[\d minsh]+ on \d+ threads|(?<=digit.png: )\w+", "#", text)
    return re.sub(r"[ ]+", " ", text).strip()


def output_of(words, in_a_process):
    """What a command that ends well prints; a process of its own costs two seconds, which one of them shall do."""
    if in_a_process:
        code = [sys.executable, "-c", "from tigra_cli.main import main; main(prog_name='tigra')", *words]
        result = subprocess.run(code, capture_output=True, text=True, check=False)
        status = result.returncode
    else:
        result = CliRunner().invoke(main, words, prog_name="tigra")
        status = result.exit_code
    assert status == 0, f"{words}\n{result.stderr}"
    return result.stdout


def test_the_readme_can_be_followed_from_top_to_bottom(tmp_path, monkeypatch):
    """All `$` commands and all Python examples, in their order, in one folder.

    Where the README shows an output, the real one must be the same but for what is measured.
    """
    monkeypatch.chdir(tmp_path)
    names, n_commands = {}, 0
    for language, content in FENCED.findall(README):
        if language == "python":
            example = doctest.DocTestParser().get_doctest(content, names, "README.md", "README.md", 0)
            runner = doctest.DocTestRunner()
            runner.run(example, clear_globs=False)
            names.update(example.globs)
            assert runner.failures == 0, content
        if language == "console":
            for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", content, re.MULTILINE):
                program, *words = shlex.split(command)
                assert program == "tigra"
                shown = output_of(words, in_a_process=n_commands == 0)
                assert not expected or measurements_hidden(shown) == measurements_hidden(expected), command
                if words[0] == "predict":  # the label is no measurement: the picture is a two
                    assert re.match(r"digit\.png: (2|two) ", shown), shown
                if words == ["evaluate", "mnist-012.npz"]:  # the paper's figure, with room for another rounding
                    assert float(shown.split()[0]) >= 93.0
                n_commands += 1
    assert n_commands >= 6
    left = {"mnist-012.npz", "digit.png", "mine.npz", "small.npz", "pictures", "pictures.npz", "digits.png"}
    left |= {"results", "figures"}
    assert {path.name for path in tmp_path.iterdir()} == left


def test_commands_that_need_a_download_are_at_least_well_formed():
    """They stand in `text` blocks: every word must be a command, an option or a value that tigra takes."""
    commands = [line for block in blocks(README, "text") for line in block.splitlines()]
    assert len(commands) >= 4
    for line in commands:
        program, *words = shlex.split(line)
        context, command = click.Context(main), main
        while isinstance(command, click.Group):
            command = command.get_command(context, words.pop(0))
        assert program == "tigra" and command.make_context(line, words)


def test_nothing_is_left_to_be_filled_in():
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        assert not re.search(r"\b(TODO|FIXME|XXX|RESULTS|TBD)\b", path.read_text(encoding="utf-8")), path


def test_every_command_is_in_the_readme():
    for name in COMMANDS:
        assert f"$ tigra {name}" in README and f"| `{name}` |" in README


def test_ci_runs_the_readmes_test_command():
    _, test = (block.strip() for block in blocks(README, "sh"))
    pattern = re.search(r"sed -n 's/\^\\\((.*?)\\\)\$/", (ROOT / ".ci" / "run").read_text()).group(1)
    assert re.findall(f"^({pattern})$", README, re.MULTILINE) == [test]


def documented_keys(command):
    """Keys of the JSON object that the README's table names for a command, without what is nested in them."""
    (text,) = re.findall(rf"^\| `{command}` \| `(.*?)`", README, re.MULTILINE)
    while (flat := re.sub(r": (\{[^{}]*\}|\[[^\[\]]*\])", "", text)) != text:
        text = flat
    return set(text.split(", "))


def test_json_keys_in_the_readme_are_those_the_commands_print(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny = ["--architecture", "SC[1, 1]-S[1]", "--epochs", "1", "--out", "tiny.npz"]
    commands = {"train": ["mnist-012", *tiny], "evaluate": ["tiny.npz"], "info": ["tiny.npz"]}
    for name, words in commands.items():
        assert set(json.loads(output_of([name, *words, "--json"], in_a_process=False))) == documented_keys(name)


# --- tables -------------------------------------------------------------------------------------------------


def rows(section):
    body = README.split(f"## {section}\n")[1].split("\n## ")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in body.splitlines()
        if line.startswith("| ") and not line.startswith(("| ---", "| equation", "| paper"))
    ]


def resolve(path):
    """The object that a dotted path names."""
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            value = getattr(value, part)
        return value
    raise AssertionError(f"{path} does not exist")


def test_the_equation_table_names_code_and_tests_that_exist():
    for equation, code, test in rows("Equation, code, test"):
        assert resolve(code.strip("`")) is not None, equation
        assert (ROOT / test.strip("`")).is_file(), equation


def test_every_equation_that_the_code_cites_is_in_the_table():
    table = README.split("## Equation, code, test")[1]
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tigra").rglob("*.py")]
    labels = {label for text in sources for label in re.findall(r"\b(?:eq|alg):\w+", text)}
    numbers = {number for text in sources for number in re.findall(r"Eqs?\. \((\d+)\)", text)}
    assert len(labels) >= 10
    for label in labels:
        assert f"{label}]" in table, f"{label} is cited in the code, but not in the table"
    for number in numbers:
        assert f"| ({number}) " in table, f"Eq. ({number}) is cited in the code, but not in the table"


def test_every_row_of_the_errata_has_its_test_and_every_test_its_row():
    errata = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    tests = [name for module in (test_errata, test_errata_theory) for name in vars(module) if name.startswith("test_")]
    assert sorted(re.findall(r"`(test_\w+)` \|$", errata, re.MULTILINE)) == sorted(tests)


def test_code_quoted_in_the_derivations_is_the_code():
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tigra").rglob("*.py"))
    for page, least in (("derivations.md", 30), ("deepscat.md", 4)):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        quoted = [line.strip() for block in blocks(text, "python") for line in block.splitlines() if line.strip()]
        assert len(quoted) > least
        for line in quoted:
            assert line in source, f"docs/{page} quotes what is not in the code: {line}"


def test_examples_in_the_derivations_hold():
    for page, least in (("derivations.md", 10), ("deepscat.md", 4), ("equivariance.md", 3)):
        results = doctest.testfile(str(ROOT / "docs" / page), module_relative=False, encoding="utf-8")
        assert results.failed == 0 and results.attempted > least


@pytest.mark.parametrize("path", ["README.md", "data/README.md", *DOCS])
def test_links_lead_to_files(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (ROOT / path).parent.joinpath(target).exists(), target


def test_no_machine_is_named():
    """No absolute home or work folder, and no package registry's address, in any text of the project."""
    suspicious = re.compile(r"/(?:home|root|work)/|pypi\.|/opt/")
    folders = "tigra", "cli", "data", "tests", "benchmarks", "docs", ".ci"
    paths = [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    paths += [path for path in ROOT.glob("*") if path.name != ".git"]  # in a worktree a file, which names its folder
    texts = [path for path in paths if path.suffix in {".py", ".md", ""} and path.is_file()]
    assert len(texts) > 50
    for path in texts:
        if path != Path(__file__):
            assert not suspicious.search(path.read_text(encoding="utf-8")), path
