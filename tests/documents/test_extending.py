"""docs/extending.md is run from top to bottom: its module is imported, its examples hold, its commands work."""

import contextlib
import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tigra_cli.main import main

import tigra
from tigra.datasets.loading import DATASETS
from tigra.experiments.methods import METHODS
from tigra.models.kinds import LAYER_KINDS

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


REGISTRIES = DATASETS, METHODS, LAYER_KINDS
AT_FIRST = [dict(registry) for registry in REGISTRIES]


@contextlib.contextmanager
def fresh_registries():
    """Nothing of the page is registered; what is registered meanwhile is forgotten again."""
    kept, mine = [dict(registry) for registry in REGISTRIES], sys.modules.pop("mine", None)
    _fill(AT_FIRST)
    try:
        yield
    finally:
        _fill(kept)
        sys.modules.pop("mine", None)
        if mine:
            sys.modules["mine"] = mine


def _fill(contents):
    for registry, content in zip(REGISTRIES, contents, strict=True):
        registry.clear()
        registry.update(content)


@pytest.fixture
def registries():
    with fresh_registries():
        yield


def command_line(words, in_a_process=False):
    """(exit status, standard error) of a command; a process of its own costs two seconds, which one is worth."""
    if in_a_process:
        done = subprocess.run([sys.executable, "-m", "tigra", *words], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr
    with fresh_registries():
        done = CliRunner().invoke(main, words)
    return done.exit_code, done.stderr


@pytest.mark.slow
def test_the_page_can_be_followed_from_top_to_bottom(tmp_path, monkeypatch, registries):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("mine.py").write_text("\n\n".join(content for language, content in BLOCKS if language == "python"))
    names, n_commands = {}, 0
    for language, content in BLOCKS:
        if language == "pycon":
            example = doctest.DocTestParser().get_doctest(content, names, "extending.md", "extending.md", 0)
            runner = doctest.DocTestRunner()
            runner.run(example, clear_globs=False)
            names.update(example.globs)
            assert runner.failures == 0, content
        if language == "console":
            for line, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", content, re.MULTILINE):
                program, *words = shlex.split(line)
                status, errors = command_line(words, in_a_process=n_commands == 0)
                assert program == "tigra" and "Traceback" not in errors, errors
                assert status == (1 if expected else 0), errors
                assert not expected or errors == expected
                n_commands += 1
    assert n_commands >= 7
    assert tigra.load("squares.npz").options.architecture == "SC[6, 3]-DP[200]-S[8]"


def test_a_module_that_cannot_be_imported_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("broken.py").write_text("import nothing_of_that_name")
    for name in ("broken.py", "broken", "absent.py"):
        status, errors = command_line(["gradcheck", "--import", name])
        assert status == 2 and name in errors and "--import" in errors


def test_names_that_are_taken_are_refused(registries):
    with pytest.raises(tigra.UsageError, match="There is a layer SC already"):

        @tigra.layer_kind("SC")
        class Mine(tigra.LayerKind):
            """Another one."""

    with pytest.raises(tigra.UsageError, match="made of plain letters"):
        tigra.layer_kind("S C")
    with pytest.raises(tigra.UsageError, match="a name of its own"):
        tigra.register_dataset("mnist-012", lambda: None)
    with pytest.raises(tigra.UsageError, match="a name of its own"):
        tigra.register_dataset("a/b", lambda: None)


def test_a_kind_that_promises_other_shapes_than_it_builds_is_found(registries):
    @tigra.layer_kind("LIE")
    class Lying(tigra.LayerKind):
        """LIE[units]"""

        arguments = (tigra.whole("units", 1),)

        def size(self, numbers, site):
            return numbers[0]

        def shapes(self, numbers, site):
            return {"weight": (1, 1)}

        def build(self, numbers, site):
            return [tigra.Dense.init(site.size, *numbers, site.rng, site.dtype)]

    with pytest.raises(tigra.ArchitectureError, match="Lying.shapes says that LIE"):
        tigra.build_network("S[1]-LIE[3]", (3, 3), 2)


def test_odd_registrations_are_refused_with_a_sentence(registries):
    for odd in ({}, tigra.LayerKind(), tigra.Dense):
        with pytest.raises(tigra.UsageError, match="for subclasses of LayerKind"):
            tigra.layer_kind("ODD")(odd)
    with pytest.raises(tigra.UsageError, match="needs a comma"):

        @tigra.layer_kind("ODD")
        class NoTuple(tigra.LayerKind):
            """ODD[x]"""

            arguments = tigra.real("x")

    with pytest.raises(tigra.UsageError, match="an object of a class derived from tigra.Method"):
        tigra.register_method(tigra.Method)
    with pytest.raises(tigra.UsageError, match="a function that returns Splits"):
        tigra.register_dataset("odd", None)
    tigra.register_dataset("odd", lambda: None)
    with pytest.raises(tigra.DatasetError, match="must return tigra.Splits, but returned NoneType"):
        tigra.load_dataset("odd")

    @tigra.layer_kind("BARE")
    class Bare(tigra.LayerKind):
        """BARE[]"""

        def build(self, numbers, site):
            return tigra.ReLU()

    with pytest.raises(tigra.ArchitectureError, match="Bare.build must return a list of layers"):
        tigra.build_network("S[1]-BARE[]", (3, 3), 2)


def test_what_tigra_has_registered_cannot_be_replaced(registries):
    from tigra.experiments.methods import NetworkMethod

    class DenseKind(tigra.LayerKind):
        """FC[units]"""

    with pytest.raises(tigra.UsageError, match="There is a layer FC already"):
        tigra.layer_kind("FC")(DenseKind)
    with pytest.raises(tigra.UsageError, match="a name of its own"):
        tigra.register_method(NetworkMethod("tigranet", tigra.RECIPES))


def test_a_backward_that_replaces_its_gradients_is_found(registries, small_splits):
    """Nothing would be learned: training reads the arrays that grads had at the start."""

    class Gain(tigra.Layer):
        def forward(self, x):
            self._cache = x
            return self.params["gain"] * x

        def backward(self, grad):
            self.grads["gain"] = np.array([(grad * self._take_cache()).sum()])
            return self.params["gain"] * grad

    @tigra.layer_kind("GAIN")
    class GainKind(tigra.LayerKind):
        """GAIN[]"""

        def build(self, numbers, site):
            return [Gain(gain=np.ones(1, site.dtype))]

    advice = r"Gain.backward must write into grads\['gain'\]"
    with pytest.raises(tigra.TigraError, match=advice):
        tigra.check_gradients(Gain(gain=np.ones(1)), np.ones((2, 3)))
    network = tigra.build_network("S[1]-GAIN[]", (14, 14), 3)
    with pytest.raises(tigra.TigraError, match=advice):
        list(tigra.fit(network, small_splits, epochs=1))
