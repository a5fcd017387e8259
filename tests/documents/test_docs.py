"""The documents stay true: their commands run, their examples hold, their tables name what exists."""

import doctest
import importlib
import importlib.util
import json
import pkgutil
import platform
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
from tests.documents.names import resolve
from tigra import figures

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = [f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))]
DOCUMENTS = "\n".join([README, *((ROOT / path).read_text(encoding="utf-8") for path in DOCS)])
FENCED = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
MODULES = [
    name
    for package in (tigra, tigra_cli)
    for name in [package.__name__, *(m.name for m in pkgutil.walk_packages(package.__path__, package.__name__ + "."))]
]


if importlib.util.find_spec("sklearn") is None:  # the test extra has it
    MODULES = [name for name in MODULES if not name.startswith("tigra.sklearn")]


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
    text = re.sub(r"\d+\.\d %|\d+\.\de-\d+|(?<=best epoch )\d+ of \d+", "#", text)
    text = re.sub(r"(?<=gradients right, )\d+ s", "#", text)
    return seconds_hidden(re.sub(r"(?<=digit.png: )\w+", "#", text))


def seconds_hidden(text):
    """Text without the time that a training took; blanks folded."""
    return re.sub(r"[ ]+", " ", re.sub(r"[\d minsh]+ on \d+ threads", "#", text)).strip()


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


def shortened(words, most_epochs=8):
    """A command with fewer epochs, if it says how many."""
    place = words.index("--epochs") + 1 if "--epochs" in words else None
    return [str(min(int(word), most_epochs)) if i == place else word for i, word in enumerate(words)]


EXACT = "tigra train mnist-012", "tigra evaluate mnist-012.npz", "tigra predict mnist-012.npz digit.png"
FOLLOWED = "README.md", "docs/own-pictures.md", "docs/data-sets.md", "docs/architectures.md", "docs/command-line.md"


@pytest.mark.slow
def test_the_readme_and_the_guides_can_be_followed_from_top_to_bottom(tmp_path, monkeypatch):
    """All `$` commands and all Python examples, page after page, in one folder.

    Where a page shows an output, the real one must be the same but for what is measured. The numbers of the EXACT
    commands are the same on every x86-64 processor. To save time, only the command that trains by its recipe has all
    its epochs, no command runs twice, and two figures are drawn: tests/figures draws all of them.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(figures, "FIGURES", dict(list(figures.FIGURES.items())[:2]))
    names, outputs = {}, {}
    for language, content in (block for path in FOLLOWED for block in FENCED.findall((ROOT / path).read_text("utf-8"))):
        if language == "python":
            example = doctest.DocTestParser().get_doctest(content, names, "the page", "the page", 0)
            runner = doctest.DocTestRunner()
            runner.run(example, clear_globs=False)
            names.update(example.globs)
            assert runner.failures == 0, content
        if language == "console":
            for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", content, re.MULTILINE):
                program, *words = shlex.split(command)
                assert program == "tigra"
                if command not in outputs:
                    outputs[command] = output_of(shortened(words), in_a_process=not outputs)
                shown = outputs[command]
                is_exact = command in EXACT and platform.machine() == "x86_64"
                hidden = seconds_hidden if is_exact else measurements_hidden
                assert not expected or hidden(shown) == hidden(expected), command
                if words == ["evaluate", "mnist-012.npz"]:  # the paper's figure, with room for another rounding
                    assert float(shown.split()[0]) >= 93.0
    assert len(outputs) >= 15


def test_commands_that_need_a_download_are_at_least_well_formed(monkeypatch):
    """They stand in `text` blocks: every word must be a command, an option or a value that tigra takes."""
    monkeypatch.setattr(click.Path, "convert", lambda self, value, *_: value)  # files and folders need not exist
    lines = [line for block in blocks(DOCUMENTS, "text") for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("tigra ")]
    assert len(commands) >= 4
    for line in commands:
        words = shlex.split(line)[1:]
        context, command = click.Context(main), main
        while isinstance(command, click.Group):
            command = command.get_command(context, words.pop(0))
        assert command.make_context(line, words)


def test_nothing_is_left_to_be_filled_in():
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        assert not re.search(r"\b(TODO|FIXME|XXX|TBD)\b", path.read_text(encoding="utf-8")), path


def test_every_command_is_documented():
    for name in COMMANDS:
        assert f"tigra {name}" in DOCUMENTS, name


def test_ci_finds_one_test_command_in_the_readme():
    commands = [block.strip() for block in blocks(README, "sh")]
    pattern = re.search(r"sed -n 's/\^\\\((.*?)\\\)\$/", (ROOT / ".ci" / "run").read_text()).group(1)
    (found,) = re.findall(f"^({pattern})$", README, re.MULTILINE)
    assert found in commands


def documented_keys(command):
    """Keys of the JSON object that the documents name for a command, without what is nested in them."""
    (text,) = re.findall(rf"^\| `{command}` \| `(.*?)`", DOCUMENTS, re.MULTILINE)
    while (flat := re.sub(r": (\{[^{}]*\}|\[[^\[\]]*\])", "", text)) != text:
        text = flat
    return set(text.split(", "))


def test_json_keys_in_the_documents_are_those_the_commands_print(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny = ["--architecture", "SC[1, 1]-S[1]", "--epochs", "1", "--out", "tiny.npz"]
    commands = {"train": ["mnist-012", *tiny], "evaluate": ["tiny.npz"], "info": ["tiny.npz"]}
    for name, words in commands.items():
        assert set(json.loads(output_of([name, *words, "--json"], in_a_process=False))) == documented_keys(name)


# --- tables -------------------------------------------------------------------------------------------------


def table_below(heading):
    """The lines of the table that has this heading, wherever it stands."""
    (table,) = re.findall(rf"^{re.escape(heading)}\n\|[ :|-]+\n((?:\|.*\n)+)", DOCUMENTS, re.MULTILINE)
    return table.splitlines()


EQUATIONS = table_below("| equation | code | test |")


def test_the_equation_table_names_code_and_tests_that_exist():
    for line in EQUATIONS:
        equation, code, test = (cell.strip() for cell in line.strip("|").split("|"))
        assert resolve(code.strip("`")) is not None, equation
        assert (ROOT / test.strip("`")).is_file(), equation


def test_every_equation_that_the_code_cites_is_in_the_table():
    table = "\n".join(EQUATIONS)
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tigra").rglob("*.py")]
    labels = {label for text in sources for label in re.findall(r"\b(?:eq|alg):\w+", text)}
    numbers = {number for text in sources for number in re.findall(r"Eqs?\. \((\d+)\)", text)}
    assert len(labels) >= 10
    for label in labels:
        assert f"{label}]" in table, f"{label} is cited in the code, but not in the table"
    for number in numbers:
        assert f"| ({number}) " in table, f"Eq. ({number}) is cited in the code, but not in the table"


def test_every_entry_of_the_errata_has_its_test_and_every_test_its_entry():
    errata = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    tests = [name for module in (test_errata, test_errata_theory) for name in vars(module) if name.startswith("test_")]
    assert sorted(re.findall(r"^- Test: `(test_\w+)`$", errata, re.MULTILINE)) == sorted(tests)
    assert set(re.findall(r"`(test_\w+)`", errata)) <= set(tests)
    for name in re.findall(r"`(tigra\.[\w.]+)`", errata):
        assert resolve(name) is not None, name


def test_code_quoted_in_the_derivations_is_the_code():
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tigra").rglob("*.py"))
    for page, least in (("derivations.md", 30), ("deepscat.md", 4)):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        quoted = [line.strip() for block in blocks(text, "python") for line in block.splitlines() if line.strip()]
        assert len(quoted) > least
        for line in quoted:
            assert line in source, f"docs/{page} quotes what is not in the code: {line}"


def test_examples_in_the_derivations_hold():
    for page, least in (("derivations.md", 10), ("deepscat.md", 4), ("theory.md", 3)):
        results = doctest.testfile(str(ROOT / "docs" / page), module_relative=False, encoding="utf-8")
        assert results.failed == 0 and results.attempted > least


@pytest.mark.parametrize("path", ["README.md", "data/README.md", *DOCS])
def test_links_lead_to_files(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (ROOT / path).parent.joinpath(target).exists(), target


PROSE = re.compile(r"(?!\||!\[|    |Protocol: |.*\$)")  # no table, picture, indented code, generated line or formula


@pytest.mark.parametrize("path", ["README.md", *DOCS])
def test_prose_is_wrapped_and_github_shows_its_formulas(path):
    """At most 100 columns; in a formula, GitHub takes a backslash before a comma or a semicolon for an escape."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / path).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert [line for line in text.splitlines() if len(line) > 100 and PROSE.match(line)] == []
    formulas = re.findall(r"\$\$?[^$]+\$", re.sub(r"`[^`\n]*`", "", text))
    assert [formula for formula in formulas if re.search(r"\\[^A-Za-z\s]", formula)] == []


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
