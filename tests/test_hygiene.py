"""Lint, format, types, and one version everywhere."""

import importlib.metadata
import importlib.resources
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tigra

ROOT = Path(__file__).parent.parent
CHECKED = ["tigra", "cli", "tests", "benchmarks", "data", "docs", "setup.py"]
RELATIVE = re.compile(r"\]\((?![a-z]+:)|(?:src|href)=[\"'](?![a-z]+:)")  # the start of a relative link or picture


def run(*words):
    return subprocess.run([sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False)


def check_with(tool, *words):
    wanted = re.search(rf'"{tool}==(.+?)"', (ROOT / "setup.py").read_text(encoding="utf-8"))[1]
    try:
        found = importlib.metadata.version(tool)
    except importlib.metadata.PackageNotFoundError:
        found = "not installed"
    if found != wanted:  # another version finds other things
        pytest.skip(f"{tool} {wanted} is needed, but it is {found}; run: pip install -e '.[test]'")
    done = run(tool, *words)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def setup_py():
    spec = importlib.util.spec_from_file_location("tigra_setup", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_ruff_finds_nothing():
    check_with("ruff", "check", "--no-cache", *CHECKED)


def test_the_code_is_formatted():
    check_with("ruff", "format", "--no-cache", "--check", *CHECKED)


@pytest.mark.slow
def test_types_are_right():
    check_with("mypy", f"--cache-dir={os.devnull}")


def test_every_file_has_the_same_version(setup_py):
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    changed = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {cited[1], changed[1], setup_py.VERSION} == {tigra.__version__}
    assert importlib.metadata.version("tigra") == tigra.__version__, "install tigra again"
    assert "[project]" not in (ROOT / "pyproject.toml").read_text(encoding="utf-8"), "metadata is in setup.py"


def test_the_conda_recipe_says_what_the_package_says():
    jinja2, yaml = pytest.importorskip("jinja2"), pytest.importorskip("yaml")
    text = (ROOT / ".ci" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    recipe = yaml.safe_load(jinja2.Template(text, undefined=jinja2.StrictUndefined).render(PYTHON="python"))
    metadata, (command,) = (
        importlib.metadata.metadata("tigra"),
        importlib.metadata.entry_points(group="console_scripts", name="tigra"),
    )
    package, about, requirements = recipe["package"], recipe["about"], recipe["requirements"]
    assert (package["name"], package["version"]) == (metadata["Name"], metadata["Version"])
    assert (about["summary"], about["license"]) == (metadata["Summary"], metadata["License-Expression"])
    assert recipe["build"]["entry_points"] == [f"{command.name} = {command.value}"]
    needed = [text for text in metadata.get_all("Requires-Dist") if "extra ==" not in text]
    python = f"python {metadata['Requires-Python']}"
    assert _without_spaces(requirements["run"]) == _without_spaces([python, *needed])
    builders = re.search(r'requires = \["(.+?)"\]', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))[1]
    assert _without_spaces(requirements["host"]) == _without_spaces([python, "pip", builders])


def _without_spaces(requirements):
    return {text.replace(" ", "") for text in requirements}


@pytest.mark.slow
def test_python_m_tigra_tells_the_version():
    done = run("tigra", "--version")
    assert done.returncode == 0 and done.stdout.split()[-1] == tigra.__version__, done.stdout + done.stderr


def test_the_package_says_that_it_is_typed():
    assert importlib.resources.files("tigra").joinpath("py.typed").is_file()


@pytest.mark.parametrize("url", ["", "https://example.org/tigra/"])
def test_the_page_of_a_package_index_has_no_relative_link(setup_py, url):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert RELATIVE.search(readme) and not RELATIVE.search(setup_py.index_page(readme, url))


def test_links_of_the_page_become_absolute_or_plain_text(setup_py):
    text = "![A digit](a.png)\n[Tour](docs/tour.md) [there](https://b.c/d) `x[0](y)`\n```\nf[1](z)\n```\n"
    rest = " [there](https://b.c/d) `x[0](y)`\n```\nf[1](z)\n```\n"
    assert setup_py.index_page(text) == "A digit\nTour" + rest
    linked = "![A digit](https://h/a.png)\n[Tour](https://h/docs/tour.md)" + rest
    assert setup_py.index_page(text, "https://h") == setup_py.index_page(text, "https://h/") == linked
