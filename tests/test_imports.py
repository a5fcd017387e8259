"""Rooms import only rooms above them, and the package's surface is what it says."""

import ast
import importlib
from pathlib import Path

import pytest

import tigra
from tigra.moved import MOVED

PACKAGE = Path(tigra.__file__).parent
ROOMS = """
    errors version
    option_fields
    options seeding
    files kernels
    images graph processes
    datasets layers
    models
    training theory baselines
    model_arrays
    model_file
    experiments gradcheck figures onnx
    playground sklearn moved
    __init__ __main__
"""  # rooms on one line do not import each other
LEVELS = {room: level for level, line in enumerate(ROOMS.strip().splitlines()) for room in line.split()}
FILES = sorted(PACKAGE.rglob("*.py"))
VERBOSE = PACKAGE / "sklearn" / "estimators.py"  # prints when its parameter `verbose` asks for it


def room_of(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(path):
    """Dotted names of all modules that a file imports, relative ones too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            package = ["tigra", *path.relative_to(PACKAGE).parts[: -node.level]] if node.level else []
            module = ".".join([*package, *filter(None, [node.module])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names if module == "tigra")
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_rooms_import_only_rooms_above_them(path):
    for name in imported(path):
        assert not name.startswith("tigra_cli") or path.name == "__main__.py"
        if name.startswith("tigra.") and name.split(".")[1] in LEVELS:
            room = name.split(".")[1]
            assert room == room_of(path) or LEVELS[room] < LEVELS[room_of(path)], name


def test_the_rule_sees_every_way_to_import(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph" / "sneaky.py").write_text(
        "from tigra import experiments\nfrom ..training import fit\nfrom .. import figures\nimport tigra.models"
    )
    names = set(imported(tmp_path / "graph" / "sneaky.py"))
    assert {"tigra.experiments", "tigra.training", "tigra.figures", "tigra.models"} <= names


def test_rooms_are_small_and_all_are_in_the_list():
    assert {room_of(path) for path in FILES} == set(LEVELS)
    assert len(list(PACKAGE.glob("*.py"))) <= 10
    for folder in {path.parent for path in FILES} - {PACKAGE}:
        assert len(list(folder.glob("*.py"))) <= 12, folder


def test_the_packages_docstring_names_every_room():
    for room in set(LEVELS) - {"__init__", "__main__", "version"}:
        assert room in tigra.__doc__


@pytest.mark.parametrize("old", MOVED)
def test_modules_of_version_0_1_are_found_under_their_old_names(old):
    module, new = (importlib.import_module(f"tigra.{name}") for name in (old, MOVED[old].split()[0]))
    name = next(name for name in vars(new) if name[0].isalpha())
    with pytest.warns(DeprecationWarning, match=f"tigra.{old}.{name} is tigra"):
        assert getattr(module, name) is getattr(new, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        module.nothing  # noqa: B018


def test_rooms_that_were_modules_still_have_their_names():
    with pytest.warns(DeprecationWarning, match="tigra.layers.Conv is tigra.baselines.Conv now"):
        from tigra.layers import Conv
    with pytest.warns(DeprecationWarning, match="tigra.models.classifier.accuracy now"):
        from tigra.training import accuracy
    assert Conv is tigra.Conv and accuracy is tigra.accuracy
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        from tigra.layers import nothing  # noqa: F401


def test_only_six_modules_of_kernels_import_numba_and_nothing_inside_uses_a_deep_learning_library():
    allowed = {
        PACKAGE / "kernels" / f"{name}.py"
        for name in (
            "decorator",
            "compiling/cache",
            "compiling/columns",
            "compiling/parts",
            "compiling/registers",
            "compiling/vectors",
        )
    }
    for path in FILES:
        outside = {name.split(".")[0] for name in imported(path)}
        assert not outside & {"numba", "llvmlite"} or path in allowed
        assert not outside & {"torch", "tensorflow", "jax", "autograd"}
        assert not outside & {"sklearn", "joblib"} or room_of(path) == "sklearn"
        assert not outside & {"onnx", "onnxruntime"}, "they are optional: use tigra.onnx.export.needed"


def test_the_library_never_prints_and_never_draws_global_random_numbers():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called != "print" or path == VERBOSE, path
                assert not called.startswith("np.random.") or called.startswith("np.random.default_rng"), path


def test_every_public_name_exists_has_a_docstring_and_is_listed_once():
    assert len(set(tigra.__all__)) == len(tigra.__all__) and tigra.__all__ == sorted(tigra.__all__)
    for name in tigra.__all__:
        value = getattr(tigra, name)
        assert not callable(value) or value.__doc__, f"{name} has no docstring"
