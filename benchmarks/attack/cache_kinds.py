"""The kinds of cache under attack: how to fill one, to use it, and to damage it with knowledge of its format."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sqlite3
from pathlib import Path
from unittest import mock

import numpy as np
from PIL import Image

from tigra.baselines.deepscat.feature_cache import FeatureCache, image_key, scattering_features
from tigra.baselines.deepscat.scattering import Scattering
from tigra.datasets.folders import load_folder

CLASSES, N_PICTURES, SIDE = ("cat", "dog"), 8, 8


def _one_of(choices, rng: np.random.Generator):
    return choices[int(rng.integers(len(choices)))]


class Pictures:
    """Decoded pictures of a folder; another store has the same pictures, inverted."""

    part = "images"

    def __init__(self, folder: Path):
        self.folder, self.cache, self.whole = folder, folder / "cache", folder / "whole"
        self.damaged = self.cache / self.part
        for place, name in enumerate(("first", "second")):
            _draw(folder / name, place)
        self.expected = None
        self.expected = self.use()

    def use(self):
        """Load the folder, and what tempts; return pixels and labels."""
        with (
            mock.patch.dict(os.environ, TIGRA_CACHE=str(self.cache)),
            mock.patch("tigra.files.digests.SETTLED", -(10**18)),  # digests of files this new are not kept else
        ):
            if self.expected is None:
                load_folder(self.folder / "first", size=(SIDE, SIDE), invert=True)
                load_folder(self.folder / "second", size=(SIDE, SIDE))
            splits = load_folder(self.folder / "first", size=(SIDE, SIDE))
            parts = splits.train, splits.valid, splits.test
            return [np.asarray(part.images[:]) for part in parts], [part.labels for part in parts]

    def damage(self, rng: np.random.Generator) -> str:
        """Damage an index or the pixels of a store."""
        store = _one_of(sorted((self.cache / "images").iterdir()), rng)
        if rng.random() < 0.5:
            return _damage_json(store / "index.json", rng)
        path, header, row = store / "pixels.npy", 128, 2 * SIDE**2
        content = bytearray(path.read_bytes())
        first, second = rng.permutation((len(content) - header) // row)[:2] * row + header
        if rng.random() < 0.5:
            content[first : first + row] = bytes(row)
            path.write_bytes(content)
            return "a picture zeroed"
        one, other = content[first : first + row], content[second : second + row]
        content[first : first + row], content[second : second + row] = other, one
        path.write_bytes(content)
        return "two pictures swapped"


class Digests(Pictures):
    """Remembered digests of picture files; the others are those of a folder with the same names."""

    part = "folders"

    def damage(self, rng: np.random.Generator) -> str:
        """Damage the remembered digests of a folder."""
        return _damage_json(_one_of(sorted((self.cache / "folders").iterdir()), rng), rng)


def _draw(folder: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for name in CLASSES:
        (folder / name).mkdir(parents=True)
        for number in range(N_PICTURES):
            Image.fromarray(rng.integers(0, 256, (SIDE, SIDE), np.uint8)).save(folder / name / f"{number}.png")


def _damage_json(path: Path, rng: np.random.Generator) -> str:
    """Swap, rename, retype or delete an entry, somewhere inside; the checksum stays as it was."""
    content = json.loads(path.read_text(encoding="utf-8"))
    place = content
    while (inside := [value for value in _values(place) if isinstance(value, (dict, list)) and value]) and (
        place is content or rng.random() < 0.6
    ):
        place = _one_of(inside, rng)
    keys = list(place) if isinstance(place, dict) else list(range(len(place)))
    key, other = _one_of(keys, rng), _one_of(keys, rng)
    what = _one_of(["swapped", "retyped", "deleted", "renamed"], rng)
    if what == "swapped":
        place[key], place[other] = place[other], place[key]
    elif what == "deleted":
        del place[key]
    elif what == "renamed" and isinstance(place, dict):
        place[f"{key}x"] = place.pop(key)
    else:
        place[key] = _one_of([5, None, [], {}, "", -1.5, True, [[1]], "0" * 64, 10**30], rng)
    path.write_text(json.dumps(content) + "\n", encoding="utf-8")  # else just as tigra writes it
    return f"an entry of {path.parent.name}/{path.name} {what}"


def _values(place) -> list:
    return list(place.values()) if isinstance(place, dict) else list(place)


class Features:
    """Features of DeepScat; the other file has those of another scattering."""

    def __init__(self, folder: Path):
        self.cache, self.whole = folder / "cache", folder / "whole"
        self.damaged = self.cache
        self.images = np.random.default_rng(0).random((6, 2 * SIDE, 2 * SIDE))
        self.scattering, other = (Scattering(1, 2, (2 * SIDE, 2 * SIDE), oversampling=n) for n in (1, 2))
        self.expected = scattering_features(self.scattering, self.images)
        if (self.expected == scattering_features(other, self.images, cache=self.cache)).all(axis=1).any():
            raise RuntimeError("The other features must differ, or none of them is wrong.")

    def use(self):
        """Return the features of the images."""
        return scattering_features(self.scattering, self.images, cache=self.cache)

    def damage(self, rng: np.random.Generator) -> str:
        """Change the rows or the schema with SQL."""
        keys = [image_key(image) for image in self.images]
        first, second = (keys[int(place)] for place in rng.permutation(len(keys))[:2])
        statements = _one_of(STATEMENTS, rng)
        values = {"first": first, "second": second, "noise": rng.bytes(int(rng.integers(100)))}
        with contextlib.closing(FeatureCache(self.scattering, self.cache)) as cache:
            path = cache.path
        with contextlib.closing(sqlite3.connect(path)) as database:
            for statement in statements:
                database.execute(statement, values)
            database.commit()
        return "; ".join(statements)


STATEMENTS: list[tuple[str, ...]] = [
    (
        "UPDATE features SET image = x'00' WHERE image = :first",
        "UPDATE features SET image = :first WHERE image = :second",
        "UPDATE features SET image = :second WHERE image = x'00'",
    ),
    (
        "UPDATE features SET row = (SELECT row FROM features WHERE image = :first)",
        "UPDATE features SET crc = (SELECT crc FROM features WHERE image = :first)",
    ),
    ("UPDATE features SET row = :noise",),
    ("UPDATE features SET row = 'text' WHERE image = :first",),
    ("UPDATE features SET row = CAST(x'ff' || :noise AS TEXT)",),
    ("UPDATE features SET row = 5, crc = 'five'",),
    ("UPDATE features SET crc = crc + 1",),
    ("UPDATE features SET crc = 1e300",),
    ("DELETE FROM features WHERE image = :first",),
    ("DROP TABLE features",),
    ("ALTER TABLE features RENAME TO others",),
    ("ALTER TABLE features RENAME COLUMN crc TO sum",),
    ("ALTER TABLE features ADD COLUMN more",),
    ("DROP TABLE features", "CREATE TABLE features (image, row, crc)"),
    ("DROP TABLE features", "CREATE VIEW features AS SELECT 1 AS image, 2 AS row, 3 AS crc"),
    (
        "DELETE FROM features",
        "CREATE TRIGGER never BEFORE INSERT ON features BEGIN SELECT RAISE(ABORT, 'no'); END",
    ),
    ("PRAGMA user_version = 7",),
    ("PRAGMA journal_mode = WAL",),
]

SOURCE = """
from tigra.kernels.decorator import kernel

@kernel
def twice(x):
    return 2 * x

@kernel
def twice_and_one(x):
    return twice(x) + 1
"""


class Kernels:
    """Two compiled functions, one for two types."""

    expected = (4, 3.0, 5)

    def __init__(self, folder: Path):
        self.cache, self.whole, self.source = folder / "__pycache__", folder / "whole", folder / "doubling.py"
        self.damaged = self.cache
        folder.mkdir()
        self.source.write_text(SOURCE)

    def use(self):
        """Import the module as a new process would, and call its kernels."""
        spec = importlib.util.spec_from_file_location("doubling", self.source)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        with mock.patch("numba.core.config.CACHE_DIR", ""):
            spec.loader.exec_module(module)
        return module.twice(2), module.twice(1.5), module.twice_and_one(2)

    def damage(self, rng: np.random.Generator) -> str:
        """Give one entry the content of another one of the same kind."""
        ending = _one_of([".nbi", ".nbc"], rng)
        files = sorted(self.cache.glob(f"*{ending}"))
        source, target = (files[int(place)] for place in rng.permutation(len(files))[:2])
        target.write_bytes(source.read_bytes())
        return f"{source.name} as {target.name}"
