"""Attack by files: damaged and forged models, idx files, pictures, archives and records.

Each is read as tigra's commands read it. Anything may be refused, with one of tigra's own errors; nothing else may
come out, within 5 seconds of processor time and 1 GB of memory.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image
from scipy import sparse

import tigra
from benchmarks.attack.cage import Cage
from benchmarks.attack.forgeries import forged_idx, forged_json, forged_png, forged_tar, forged_zip
from benchmarks.attack.mutations import mutated
from benchmarks.attack.outcome import Outcome, Progress, repeat
from tigra.baselines.deepscat.fitting import fit_deepscat
from tigra.datasets import sources
from tigra.datasets.archives import read_members
from tigra.errors import TigraError
from tigra.experiments.reproduction import Experiment
from tigra.experiments.resuming import resume
from tigra.experiments.tables import TABLES
from tigra.images.pictures import picture_size, read_image
from tigra.model_file import load_model
from tigra.options import FitOptions
from tigra.training import Training

ARCHITECTURE = "SC[2, 1]-DP[20]-S[2]-FC[4]"
FORMATS = "PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM"
LARGEST_IMAGE = 2**20  # pixels of an image that a forged model is asked to label


class Sample(NamedTuple):
    """An intact file, how it is forged, if there is a way, and how it is read."""

    name: str
    content: bytes
    forge: Callable[[bytes, np.random.Generator], bytes] | None
    read: Callable[[Path], None]


def attack(seconds: float, seed: int, progress: Progress) -> Outcome:
    """Read mutated files for some seconds."""
    with tempfile.TemporaryDirectory() as folder:
        prey = samples(Path(folder))
        for sample in prey:  # compiles kernels, too
            _read(sample, sample.content, Path(folder))
        with Cage(lambda number: attempt(prey, number, Path(folder))) as cage:
            return repeat(cage.call, seconds, seed, progress, "files")


def attempt(prey: list[Sample], seed: int, folder: Path) -> None:
    """Damage one file, read it, and expect nothing but TigraError."""
    rng = np.random.default_rng(seed)
    sample = prey[seed % len(prey)]
    content = sample.content
    if sample.forge and rng.integers(2):
        content = sample.forge(content, rng)
    if content == sample.content or rng.integers(8) == 0:
        content = mutated(content, rng)
    try:
        _read(sample, content, folder)
    except TigraError as error:
        if not str(error).isprintable():
            raise AssertionError(f"{sample.name}: control characters in the message {str(error)!r}") from error
    except Exception as error:
        raise AssertionError(f"{sample.name}: {type(error).__name__}: {error}") from error


def _read(sample: Sample, content: bytes, folder: Path) -> None:
    path = folder / sample.name
    path.write_bytes(content)
    sample.read(path)


def samples(folder: Path) -> list[Sample]:
    """Return intact files of every kind that tigra reads."""
    splits = _splits()
    found = [
        Sample(name, data, forged_zip, lambda path: _read_model(path, splits)) for name, data in _models(splits, folder)
    ]
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte.gz"):
        found.append(Sample(name, _idx(name), None if name.endswith("gz") else forged_idx, _read_idx))
    for kind in FORMATS:
        found.append(
            Sample(f"picture.{kind.lower()}", _picture(kind), forged_png if kind == "PNG" else None, _read_picture)
        )
    found.append(Sample("pictures.tgz", _tar(), forged_tar, _read_archive))
    found.append(Sample("pictures.zip", _zip(), None, _read_archive))
    return [*found, _record(folder)]


# --- models ---------------------------------------------------------------------------------------------


def _splits() -> tigra.Splits:
    rng = np.random.default_rng(0)
    parts = [tigra.Split(rng.random((12, 8, 8)), np.arange(12) % 3) for _ in range(3)]
    return tigra.Splits("noise", parts[0], parts[1], parts[2], parts[2], ["a", "b", "c"], None)


def _models(splits: tigra.Splits, folder: Path):
    """Yield (name, content) of an unfinished network, one on a graph of its own, and DeepScat."""
    network = tigra.build_network(ARCHITECTURE, (8, 8), 3)
    network.class_names = splits.class_names
    training = Training(network, splits, FitOptions(epochs=2, batch_size=4))
    next(training.run())
    facts = {"dataset": "noise", "dataset_options": {"seed": 0}, "protocol": "noise", "accuracy": {"valid": 0.5}}
    tigra.save(training.best_network(), folder / "m.npz", facts, training.snapshot())
    yield "unfinished.npz", (folder / "m.npz").read_bytes()
    ring = sparse.diags_array([1.0, 1.0, 1.0, 1.0], offsets=[-1, 1, -63, 63], shape=(64, 64)).tocsr()
    own = tigra.build_network(ARCHITECTURE, (8, 8), 3, graph=tigra.Graph(ring))
    own.calibrate(splits.train.images)
    tigra.save(own, folder / "m.npz", facts)
    yield "graph.npz", (folder / "m.npz").read_bytes()
    scat, _ = fit_deepscat(splits, "W[1, 1]-PCA[1]")
    tigra.save(scat, folder / "m.npz", facts)
    yield "deepscat.npz", (folder / "m.npz").read_bytes()


def _read_model(path: Path, splits: tigra.Splits) -> None:
    """Load a model, label one image with it, and try to resume its run."""
    model = load_model(path)
    height, width = model.network.image_shape
    if height * width <= LARGEST_IMAGE:
        model.network.predict(np.zeros((1, height, width)))
    if model.resume is not None:
        resume(model, splits, path)


# --- data -----------------------------------------------------------------------------------------------


def _idx(name: str) -> bytes:
    shape = (6, 28, 28) if "images" in name else (6,)
    content = bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + bytes(int(np.prod(shape)))
    return gzip.compress(content, mtime=0) if name.endswith(".gz") else content


def _read_idx(path: Path) -> None:
    """Read the file as if its sum were MNIST's, since else all but the sum would go untested."""
    name = path.name.removesuffix(".gz")
    content = sources.read_gzip(path, sources.LARGEST_IDX)
    published, sources.MNIST_SHA256[name] = sources.MNIST_SHA256[name], hashlib.sha256(content).hexdigest()
    try:
        sources.read_idx(path)
    finally:
        sources.MNIST_SHA256[name] = published


def _picture(kind: str) -> bytes:
    row, column = np.mgrid[:20, :24]
    pixels = np.stack([row * 12, column * 10, row * column % 256], axis=-1).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, kind)
    return stream.getvalue()


def _read_picture(path: Path) -> None:
    picture_size(path)
    read_image(path, (16, 16))


def _tar() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for number in range(5):
            info = tarfile.TarInfo(f"apple1/apple1-000-00{number}.png")
            info.size = len(_picture("PNG"))
            archive.addfile(info, io.BytesIO(_picture("PNG")))
    return gzip.compress(stream.getvalue(), mtime=0)


def _zip() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(5):
            archive.writestr(zipfile.ZipInfo(f"apple1/apple1-000-00{number}.png"), _picture("PNG"))
    return stream.getvalue()


def _read_archive(path: Path) -> None:
    for _ in read_members(path, lambda name: True):
        pass


# --- records --------------------------------------------------------------------------------------------


def _record(folder: Path) -> Sample:
    """A record of `tigra reproduce`, which is read to print a table."""
    table = TABLES["mnist-012"]
    experiment = Experiment(table, folder, finished=True)
    row = experiment.rows[0]
    tests = {name: [0.9, 0.95] for name in table.tests[row.dataset]}
    record = {
        "row": row.key,
        "number": 0,
        "settings": experiment.settings(row, 0),
        "protocol": "upright",
        "seconds": 1.5,
        "epochs": 2,
        "parameters": 9,
        "accuracy": {"train": 0.9, "valid": 0.9, "test_upright": 0.9, "test": tests},
    }

    def read(path: Path) -> None:
        experiment.markdown()
        experiment.left_out()
        experiment.n_threads()

    return Sample(experiment.path(row, 0).name, json.dumps(record).encode(), forged_json, read)
