"""Who takes part: tigra, its version 0.1, and what else one would try on a few pictures without a GPU.

All get the same pictures, one thread, and fixed settings. Those with copies also learn from five copies of every
training picture, each turned by an angle of its own.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.practice.sets import PictureSet, turned_by_interpolation
from tigra.datasets import load_dataset
from tigra.datasets.npz.files import ArrayImages
from tigra.datasets.splits import Split
from tigra.errors import UsageError
from tigra.experiments.methods import find_method
from tigra.experiments.runs import Watch, perform
from tigra.models.classifier import accuracy
from tigra.seeding import generator
from tigra.training.views import Views

COPIES = 5
FEW = 10  # pictures that are enough to compile everything
OLD_SCRIPT = Path(__file__).with_name("version_0_1.py")


class Conditions(NamedTuple):
    """What a measurement needs besides the pictures.

    Attributes
    ----------
    seed : int
        Seed of everything random.
    is_dark_on_light : bool
        Whether the pictures are dark objects on a light background, which version 0.1 has to be told.
    old_python : str or None
        Python of an environment that has tigra 0.1.
    watch : Watch
        For stopping.
    """

    seed: int
    is_dark_on_light: bool = False
    old_python: str | None = None
    watch: Watch = Watch()


Measure = Callable[[PictureSet, Conditions], dict[str, Any]]


def measured(name: str, pictures: PictureSet, conditions: Conditions) -> dict[str, Any]:
    """Train and test a contender on one thread: accuracies in percent, and seconds of CPU time to train."""
    with threadpool_limits(1):
        found = CONTENDERS[name].measure(pictures, conditions)
    return {key: round(value, 2) if isinstance(value, float) else value for key, value in found.items()}


def absence(name: str, old_python: str | None = None) -> str | None:
    """Return why a contender cannot take part, and what to do; None if it can."""
    needs = CONTENDERS[name].needs
    if needs == "tigra 0.1":
        return None if old_python else "give the Python of an environment that has it with --version-0-1"
    if needs and importlib.util.find_spec(needs) is None:
        package = {"sklearn": "scikit-learn"}.get(needs, needs)
        return f"{package} is not installed; install it with: pip install {package}"
    return None


# --- tigra ----------------------------------------------------------------------------------------------------


def _tigra(pictures: PictureSet, conditions: Conditions, recipe: str = "best", views=1, **options) -> dict[str, Any]:
    """The recipe for folders and files of arrays, as `tigra train FILE.npz` uses it; tested with one or more views."""
    method = find_method("tigranet")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pictures.npz")
        np.savez(path, **_arrays(pictures))
        splits = load_dataset(path, seed=conditions.seed, **options)
        chosen = method.recipe(path, recipe)
        few = Split(splits.train.images[:FEW], splits.train.labels[:FEW])
        perform(method.start(replace(splits, train=few, valid=few), chosen.with_changes({"epochs": 1})))  # compiles
        started = time.process_time()
        run = method.start(splits, chosen, conditions.seed)
        perform(run, watch=conditions.watch)
        seconds = time.process_time() - started
        everything = np.arange(len(pictures.test_labels))
        tests = {
            test: ArrayImages(getattr(pictures, test), everything, splits.image_shape) for test in ("upright", "turned")
        }
        model = Views(run.model, views)
        found: dict[str, Any] = {
            test: 100 * accuracy(model, (images[:], pictures.test_labels)) for test, images in tests.items()
        }
    facts = run.facts
    return found | {
        "seconds": seconds,
        "epochs": facts["epochs"],
        "best_epoch": facts["best_epoch"],
        "protocol": splits.protocol,
        "recipe": chosen.to_json(),
    }


def _arrays(pictures: PictureSet) -> dict[str, np.ndarray]:
    """The pictures in the layout of MedMNIST."""
    return {
        "train_images": pictures.train,
        "train_labels": pictures.train_labels,
        "test_images": pictures.upright,
        "test_labels": pictures.test_labels,
        "class_names": np.array(pictures.class_names),
    }


def _tigra_0_1(pictures: PictureSet, conditions: Conditions) -> dict[str, Any]:
    """The recipe for folders of version 0.1, in its own environment; --invert where its README says so."""
    assert conditions.old_python is not None
    with tempfile.TemporaryDirectory() as folder:
        arrays = os.path.join(folder, "pictures.npz")
        np.savez(arrays, **_arrays(pictures), turned=pictures.turned)
        words = [conditions.old_python, str(OLD_SCRIPT), arrays, str(conditions.seed)]
        words += ["--invert"] if conditions.is_dark_on_light else []
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise UsageError(f"{conditions.old_python} does not run tigra 0.1 ({last[0]}); give another --version-0-1.")
    return json.loads(done.stdout)


# --- peers ----------------------------------------------------------------------------------------------------


def _peer(make: Callable[[PictureSet, Conditions], Any], copies: int = 0) -> Measure:
    """A contender with `fit` and `predict`; it gets levels in [0, 1]."""

    def measure(pictures: PictureSet, conditions: Conditions) -> dict[str, Any]:
        started = time.process_time()
        images, labels = _with_copies(pictures, copies, conditions.seed)
        model = make(pictures, conditions)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the MLP ends after its last epoch, and says that it could go on
            model.fit(images / 255.0, labels)
        seconds = time.process_time() - started
        tests = {"upright": pictures.upright, "turned": pictures.turned}
        found: dict[str, Any] = {
            name: 100 * float((model.predict(some / 255.0) == pictures.test_labels).mean())
            for name, some in tests.items()
        }
        return found | {"seconds": seconds}

    return measure


def _with_copies(pictures: PictureSet, copies: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The training pictures and, behind them, turned copies."""
    rng = generator(seed, "copies")
    turned = [turned_by_interpolation(pictures.train, rng) for _ in range(copies)]
    return np.concatenate([pictures.train, *turned]), np.tile(pictures.train_labels, 1 + copies)


def _svm(features: Callable[[np.ndarray], np.ndarray]):
    """A support vector machine with Gaussian kernel on standardised features."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler
    from sklearn.svm import SVC

    return make_pipeline(FunctionTransformer(features), StandardScaler(), SVC(C=10.0, cache_size=400))


def _hog_svm(pictures: PictureSet, conditions: Conditions):
    from benchmarks.peers.hog import hog_features

    return _svm(hog_features)


def _lbp_svm(pictures: PictureSet, conditions: Conditions):
    from benchmarks.peers.lbp import lbp_features

    return _svm(lbp_features)


def _flat(images: np.ndarray) -> np.ndarray:
    return images.reshape(len(images), -1)


def _mlp(pictures: PictureSet, conditions: Conditions):
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    network = MLPClassifier((256,), alpha=1e-3, max_iter=60, random_state=conditions.seed)
    return make_pipeline(FunctionTransformer(_flat), StandardScaler(), network)


def _convnet(pictures: PictureSet, conditions: Conditions):
    from benchmarks.peers.torch_convnet import TorchConvNet

    return TorchConvNet(pictures.train.shape[1:], len(pictures.class_names), conditions.seed)


class Contender(NamedTuple):
    """Words for the table, the package it needs, how it is measured, and whether it sees turned training pictures."""

    words: str
    needs: str
    measure: Measure
    is_turned: bool = False


def _of_peers() -> dict[str, Contender]:
    peers = {
        "hog-svm": ("HOG + SVM", "sklearn", _hog_svm),
        "lbp-svm": ("LBP + SVM", "sklearn", _lbp_svm),
        "mlp": ("MLP on pixels", "sklearn", _mlp),
        "convnet": ("ConvNet (PyTorch)", "torch", _convnet),
    }
    found = {name: Contender(words, needs, _peer(make)) for name, (words, needs, make) in peers.items()}
    return found | {
        f"{name}-copies": Contender(f"{words}, five turned copies", needs, _peer(make, COPIES), is_turned=True)
        for name, (words, needs, make) in peers.items()
    }


CONTENDERS: dict[str, Contender] = {
    "tigra-0.1": Contender("tigra 0.1", "tigra 0.1", _tigra_0_1),
    "tigra": Contender("tigra", "", _tigra),
    "tigra-views": Contender("tigra, `--views 2`", "", lambda *all: _tigra(*all, views=2)),
    "tigra-turned": Contender(
        "tigra, `--train-rotations random`", "", lambda *all: _tigra(*all, train_rotations="random"), is_turned=True
    ),
    "tigra-achiral": Contender("tigra, `--recipe achiral`", "", lambda *all: _tigra(*all, recipe="achiral")),
    **_of_peers(),
}
