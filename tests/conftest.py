"""Fixtures shared by the tests."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tigra

FIRST = [  # the tests of these come first, in this order
    *("test_hygiene.py", "documents/test_site.py", "datasets", "records", "images"),  # these need no kernels, or few
    *("graph", "kernels", "layers", "models", "training", "theory", "baselines"),
]


def pytest_collection_modifyitems(items):
    """What needs no kernels comes first, while they are compiled; then the rooms that the others build upon."""
    tests = Path(__file__).parent

    def place(item):
        path = item.path.relative_to(tests).as_posix()
        return next((number for number, start in enumerate(FIRST) if path.startswith(start)), len(FIRST))

    items.sort(key=place)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Run the whole suite in two processes, where pytest-xdist is installed: half of it waits for other programs."""
    options = config.option
    is_whole = not (getattr(options, "file_or_dir", True) or options.collectonly or hasattr(config, "workerinput"))
    if is_whole and getattr(options, "numprocesses", 0) is None and (os.cpu_count() or 1) > 1:
        options.numprocesses, options.dist, options.loadscopereorder = 2, "loadfile", False


def pytest_sessionstart(session):
    """Have kernels compiled beside the first tests: half of a first run is compilation."""
    session.warm_up = None
    options, is_worker = session.config.option, hasattr(session.config, "workerinput")
    if (os.cpu_count() or 1) > 1 and not (is_worker or options.collectonly or options.file_or_dir):
        session.warm_up = subprocess.Popen(  # in the folder of this repository, whose kernels the tests will use
            [sys.executable, "-m", "tests.warm_up"],
            cwd=Path(__file__).parent.parent,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def pytest_sessionfinish(session):
    """Leave nothing behind that still runs."""
    if getattr(session, "warm_up", None):
        session.warm_up.terminate()
        session.warm_up.wait()


@pytest.fixture(scope="session")
def mnist_012():
    return tigra.load_dataset("mnist-012")


@pytest.fixture(scope="session")
def small_splits(mnist_012):
    """48 training and 24 validation digits, 14x14: enough to learn from in a second."""

    def small(split, n):
        return tigra.Split(split.images[:n, ::2, ::2], split.labels[:n])

    return tigra.Splits(
        name="small",
        train=small(mnist_012.train, 48),
        valid=small(mnist_012.valid, 24),
        test=small(mnist_012.test, 24),
        test_upright=small(mnist_012.test_upright, 24),
        class_names=["0", "1", "2"],
        transform=mnist_012.transform,
    )


@pytest.fixture
def small_network():
    """A function that builds a network for `small_splits`."""

    def build(seed=0, **options):
        return tigra.build_network(
            "SC[2, 2]-DP[60]-SC[3, 2]-DP[30]-S[3]-FC[8]", (14, 14), 3, seed=seed, diagonal_weight=0.25, **options
        )

    return build


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Tests have a cache folder of their own, and leave the user's alone."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("TIGRA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
