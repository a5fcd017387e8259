"""The reading order is the import order, and the package's surface is what it says."""

import ast
from pathlib import Path

import pytest

import tigra

PACKAGE = Path(tigra.__file__).parent
READING_ORDER = """
    version errors kernels transforms images image_store archives sources download
    splits protocols file_digests picture_files folders datasets contact_sheet
    graph grid_kernels polynomials workspace fused
    spectral isometries smooth_images equivariance resolution
    plane_kernels harmonic_kernels
    layers.base layers.spectral_conv layers.paired_conv layers.dynamic_pool layers.statistics layers.dense
    layers.planes layers.conv layers.spatial_transformer layers.harmonic_conv layers.modulus layers
    loss workers classifier network passes notation plane_kinds architecture recipes methods
    optim settings jitter training
    morlet scattering feature_cache affine_pca deepscat fitting atomic_files model_file
    packaged runs invariance nearest tables run_records reproduction check_cases gradcheck
    inspection exhibit figures.canvas figures.tiles figures.maps figures.spectrum figures.invariance
    figures.learning figures.animation figures.page figures
""".split()


def path_of(module):
    path = PACKAGE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def internal_imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "tigra":
            yield node.module.removeprefix("tigra").removeprefix(".")
        if isinstance(node, ast.Import):
            yield from (alias.name.removeprefix("tigra.") for alias in node.names if alias.name.startswith("tigra"))


def outside_imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)


@pytest.mark.parametrize("module", READING_ORDER)
def test_imports_point_up_the_reading_order(module):
    above = set(READING_ORDER[: READING_ORDER.index(module)])
    assert set(internal_imports(path_of(module))) <= above


def test_the_reading_order_names_every_module():
    found = {path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".") for path in PACKAGE.rglob("*.py")}
    assert {name.removesuffix(".__init__") for name in found} - {"__init__"} == set(READING_ORDER)


def test_the_packages_docstring_tells_the_reading_order():
    words = tigra.__doc__.split("above it:")[1].replace(",", " ").split()
    places = [words.index(m if m != "layers" else "layers.base") for m in READING_ORDER if not m.startswith("layers.")]
    assert places == sorted(places)


def test_only_kernels_imports_numba_and_nothing_inside_uses_a_deep_learning_library():
    for path in PACKAGE.rglob("*.py"):
        outside = set(outside_imports(path))
        assert "numba" not in outside or path.name == "kernels.py"
        assert not outside & {"torch", "tensorflow", "jax", "sklearn", "autograd"}


def test_the_library_never_prints_and_never_draws_global_random_numbers():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called != "print", path
                assert not called.startswith("np.random.") or called.startswith("np.random.default_rng"), path


def test_every_public_name_exists_has_a_docstring_and_is_listed_once():
    assert len(set(tigra.__all__)) == len(tigra.__all__) and tigra.__all__ == sorted(tigra.__all__)
    for name in tigra.__all__:
        value = getattr(tigra, name)
        assert not callable(value) or value.__doc__, f"{name} has no docstring"
