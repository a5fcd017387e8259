"""MNIST and ETH-80 in small, as files; fixtures under which they count as the true ones."""

import functools
import gzip
import hashlib
import io
import struct
import tarfile

import numpy as np
import pytest
from PIL import Image

from tigra.datasets import sources

NUMBERS = {kind: range(1, 11) for kind in sources.ETH80_CLASSES} | {"car": (1, 2, 3, 5, 6, 7, 9, 11, 12, 14)}
ALL_VIEWS = tuple(f"{row:03d}-{column:03d}" for row in (0, 35, 90) for column in range(0, 360, 25))[:41]
VIEWS = ALL_VIEWS[:3]


def idx_bytes(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def fake_mnist():
    """{file name without .gz: content}: 40 training and 20 test images of noise."""
    rng = np.random.default_rng(0)
    files = {}
    for prefix, n in (("train", 40), ("t10k", 20)):
        files[f"{prefix}-images-idx3-ubyte"] = idx_bytes(rng.integers(0, 256, (n, 28, 28), dtype=np.uint8))
        files[f"{prefix}-labels-idx1-ubyte"] = idx_bytes(rng.integers(0, 10, n, dtype=np.uint8))
    return files


@functools.cache
def fake_eth80(views):
    """{name: content} of 8 x 10 x len(views) pictures of 4x4 pixels, all different."""
    files = {}
    for kind, numbers in NUMBERS.items():
        for number in numbers:
            for view in views:
                buffer = io.BytesIO()
                pixels = np.frombuffer(hashlib.md5(f"{kind}{number}-{view}".encode()).digest(), np.uint8)
                Image.fromarray(pixels.reshape(4, 4)).save(buffer, "PNG", compress_level=1)
                files[f"{kind}{number}/{kind}{number}-{view}.png"] = buffer.getvalue()
    return files


def write_folder(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def write_tar(path, files, mode="w:gz", prefix="./"):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode, **({"compresslevel": 1} if mode == "w:gz" else {})) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(prefix + name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """The test sees none of the user's own files, and no pictures that other tests decoded."""
    monkeypatch.setenv("TIGRA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TIGRA_DATA", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def mnist(monkeypatch):
    """The files of a small MNIST, which counts as the true one."""
    files = fake_mnist()
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    monkeypatch.setattr(sources, "MNIST_SHA256", sums)
    return files


@pytest.fixture
def eth80(monkeypatch):
    """The files of a small ETH-80, 3 views of each object, which counts as the true one."""
    monkeypatch.setattr(sources, "N_VIEWS", len(VIEWS))
    return dict(fake_eth80(VIEWS))


def packed(files):
    return {f"{name}.gz": gzip.compress(content, mtime=0) for name, content in files.items()}
