"""Attack on memory and time: pictures, models, folders and options of hostile sizes.

Each try makes a thing that asks for much and gives it to tigra, within 5 seconds of processor time and 1 GB of memory.
It may be refused, with one of tigra's own errors, or done.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

import tigra
from benchmarks.attack.cage import Cage
from benchmarks.attack.outcome import Outcome, Progress, repeat
from tigra.errors import TigraError
from tigra.images.pictures import picture_size, read_image
from tigra.models.build import Plan
from tigra.options import BuildOptions

LARGEST_FILE = 2**22  # bytes of the parameters of a hostile model
COLOURS = {0: 1, 2: 3, 4: 2, 6: 4}  # of PNG: colour type -> bytes of a pixel


def attack(seconds: float, seed: int, progress: Progress) -> Outcome:
    """Try hostile sizes for some seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["TIGRA_CACHE"], before = str(folder / "cache"), os.environ.get("TIGRA_CACHE")
        try:
            warm_up()
            with Cage(lambda number: attempt(number, folder)) as cage:
                return repeat(cage.call, seconds, seed, progress, "resources")
        finally:
            if before is None:
                del os.environ["TIGRA_CACHE"]
            else:
                os.environ["TIGRA_CACHE"] = before


def warm_up() -> None:
    """Compile the kernels of all networks that are tried, which is not what the tries measure."""
    for dtype in ("float32", "float64"):
        for options in ({}, {"boundary": "free"}, {"mixing": "full"}, {"mixing": "products", "diffusion": 1}):
            text = "SC[2, 1]-DP[3]-SC[2, 1]-DP[3]-S[1]-FC[2]"
            tigra.build_network(text, (8, 8), 2, dtype=dtype, **options).predict(np.ones((1, 8, 8)))
        for text in ("OC[2, 1]-GC[2]-OC[2, 1]-S[1]", "C[4]-C[4]", "HRC[1, 4]", "ST[6]"):
            tigra.build_network(text, (8, 8), 2, dtype=dtype).predict(np.ones((1, 8, 8)))


def attempt(seed: int, folder: Path) -> None:
    """Give tigra one hostile thing; expect nothing but TigraError."""
    rng, kind = np.random.default_rng(seed), KINDS[seed % len(KINDS)]
    place = folder / "try"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    try:
        kind(rng, place)
    except TigraError:
        pass
    except Exception as error:
        raise AssertionError(f"{kind.__name__}: {type(error).__name__}: {error}") from error


def _large(rng: np.random.Generator, most: float) -> int:
    """A whole number from 1 to `most`; every order of magnitude is equally likely."""
    return int(np.exp(rng.uniform(0, np.log(most))))


# --- pictures ---------------------------------------------------------------------------------------------


def picture(rng: np.random.Generator, place: Path) -> None:
    """A PNG file of a few kilobytes with up to 50 million pixels; or a header that claims more."""
    height, width, colour = _large(rng, 7000), _large(rng, 7000), int(rng.choice(list(COLOURS)))
    is_whole = bool(rng.integers(4))
    if not is_whole:
        height, width = _large(rng, 2**31), _large(rng, 2**31)
    _write_png(place / "large.png", height, width, colour, is_whole)
    picture_size(place / "large.png")
    read_image(place / "large.png", (_large(rng, 1000), _large(rng, 1000)))


def _write_png(path: Path, height: int, width: int, colour: int, is_whole: bool) -> None:
    """Write a black picture; the rows are compressed one by one, so that this takes no memory."""
    compress, row = zlib.compressobj(1), bytes(1 + width * COLOURS[colour]) if is_whole else b"\0"
    data = b"".join(compress.compress(row) for _ in range(height if is_whole else 1)) + compress.flush()
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for name, content in ((b"IHDR", header), (b"IDAT", data), (b"IEND", b"")):
            file.write(struct.pack(">I", len(content)) + name + content)
            file.write(struct.pack(">I", zlib.crc32(name + content)))


def claims(rng: np.random.Generator, place: Path) -> None:
    """Short files of other formats whose headers claim any size."""
    height, width = _large(rng, 2**31 - 1), _large(rng, 2**31 - 1)
    files = {
        "x.ppm": f"P6 {width} {height} 255\n".encode(),
        "x.pfm": f"Pf\n{width} {height}\n-1.0\n".encode(),
        "x.bmp": b"BM" + struct.pack("<IHHIIiiHHIIiiII", 99, 0, 0, 54, 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0),
        "x.gif": b"GIF89a" + struct.pack("<HHBBB", width % 65536, height % 65536, 0, 0, 0),
        "x.qoi": b"qoif" + struct.pack(">II", width, height) + b"\4\0",
        "x.tga": struct.pack("<BBBHHBHHHHBB", 0, 0, 10, 0, 0, 0, 0, 0, width % 65536, height % 65536, 24, 0),
    }
    name = str(rng.choice(list(files)))
    (place / name).write_bytes(files[name] + rng.bytes(int(rng.integers(200))))
    picture_size(place / name)
    read_image(place / name, (8, 8))


# --- models -----------------------------------------------------------------------------------------------


def model(rng: np.random.Generator, place: Path) -> None:
    """A model file with large layers, images, margins and orders, loaded and asked for the label of one image."""
    texts = []
    for _ in range(int(rng.integers(0, 4))):
        texts.append(f"{rng.choice(['SC', 'SC', 'OC'])}[{_large(rng, 2e5)}, {rng.integers(0, 13)}]")
        texts += [f"DP[{_large(rng, 500)}]"] * int(rng.integers(2))
    texts += [f"S[{_large(rng, 1e6)}]"] + [f"FC[{_large(rng, 1e5)}]"] * int(rng.integers(2))
    if rng.integers(4) == 0:
        texts = [str(rng.choice(["C[4]", "HRC[1, 4]", "ST[6]", "DP[1]"]))] * _large(rng, 1e6)
    options = {
        "architecture": "-".join(texts),
        "image_shape": (_large(rng, 3000), _large(rng, 3000)) if rng.integers(2) else (28, 28),
        "n_classes": 1 + _large(rng, 100),
        "margin": _large(rng, 300) if rng.integers(3) == 0 else 0,
        "boundary": str(rng.choice(["padded", "free"])),
        "mixing": str(rng.choice(["vector", "full", "products"])),
        "dtype": str(rng.choice(["float32", "float64"])),
    }
    options |= {"diffusion": int(rng.integers(101))} if options["mixing"] == "products" else {}
    options |= {"smoothing": float(_large(rng, 1000))} if rng.integers(3) == 0 else {}
    _write_model(place / "model.npz", options)
    loaded = tigra.load(place / "model.npz")
    loaded.predict(np.zeros((1, *loaded.image_shape)))


def _write_model(path: Path, options: dict) -> None:
    """Write a model file that fits the options, with parameters of 0 and constants of 1, without tigra's help."""
    chosen = BuildOptions(**options)
    arrays: dict[str, np.ndarray] = {}
    if len(options["architecture"]) < 1000:
        plan = Plan.of(chosen)
        if plan.n_bytes > LARGEST_FILE:
            return  # a large file may ask for much
        network = Plan(plan.options, plan.steps, is_loading=True).network()
        for number, layer in enumerate(network.layers):
            for name, array in layer.params.items():
                arrays[f"layers/{number:02d}.{type(layer).__name__}.{name}"] = np.zeros_like(array)
            for name, array in layer.state.items():
                arrays[f"layers/{number:02d}.{type(layer).__name__}.{name}"] = np.ones_like(array)
    meta = {
        "format": "tigra model",
        "version": 2,
        "kind": "network",
        "options": chosen.to_json(),
        "class_names": [str(label) for label in range(chosen.n_classes)],
        "training": {},
        "resume": None,
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("meta.json", json.dumps(meta))
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, array, (1, 0), allow_pickle=False)


# --- folders and options ------------------------------------------------------------------------------------


def crowd(rng: np.random.Generator, place: Path) -> None:
    """A folder with long names, deep folders, pipes, devices, loops, huge sparse files and many small ones."""
    for label in ("a", "b"):
        inside = place / "own" / label
        inside.mkdir(parents=True)
        for number in range(int(rng.integers(2, 6))):
            Image.fromarray(rng.integers(0, 256, (6, 6), dtype=np.uint8)).save(inside / f"{number}.png")
        os.mkfifo(inside / "pipe.png")
        (inside / "zero.png").symlink_to("/dev/zero")
        (inside / "loop").symlink_to(inside)
        (inside / ("n" * 250)).write_bytes(rng.bytes(20))
        with open(inside / "sparse.png", "wb") as file:
            file.truncate(_large(rng, 2**40))
        for number in range(_large(rng, 300)):
            (inside / f"{number}.txt").touch()
        deep = inside
        for _ in range(_large(rng, 100)):
            deep = deep / "d"
        deep.mkdir(parents=True, exist_ok=True)
        (deep / "0.png").write_bytes((inside / "0.png").read_bytes())
    splits = tigra.load_dataset(place / "own", threads=int(rng.integers(1, 4)))
    assert len(splits.train.labels) < 20


def size(rng: np.random.Generator, place: Path) -> None:
    """Small pictures that are to be enlarged to any size."""
    for label in ("a", "b"):
        (place / "own" / label).mkdir(parents=True)
        for number in range(3):
            pixels = rng.integers(0, 256, (6, 6), dtype=np.uint8)
            Image.fromarray(pixels).save(place / "own" / label / f"{number}.png")
    height, width = _large(rng, 1e5), _large(rng, 1e5)
    if height * width <= 2**24 < 8 * height * width:  # allowed, but takes more time than a try has
        height = max(1, height // 8)
    tigra.load_dataset(place / "own", size=(height, width), threads=2)


KINDS: list[Callable[[np.random.Generator, Path], None]] = [picture, model, claims, model, crowd, model, size, model]
