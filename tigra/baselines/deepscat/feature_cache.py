"""Scattering features of images, kept on disk by what the images show: each image is scattered once.

One SQLite file in the cache folder for each kind of scattering maps the hash of an image's pixels to its features.
So another split of the same images, or another fold, finds all of them. Features are written as they are
made: a run that is stopped has lost nothing. A cache that is damaged or cannot be written costs time, no
more; it can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy

from tigra.baselines.deepscat.scattering import Scattering
from tigra.models.workers import Workers

FORMAT = 1  # to be raised when features are computed in another way, so that old ones are not used
AT_ONCE = 64  # images between two looks at the progress
PATIENCE = 5.0  # seconds to wait for another process that writes


def scattering_features(
    scattering: Scattering,
    images,
    threads: int = 1,
    cache: Path | None = None,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    check: Callable = lambda images, numbers: images,
) -> np.ndarray:
    """Features (n, F) of images (n, height, width), an array or LazyImages.

    threads : worker threads; each image is worked on by one of them, so the result does not depend on them
    cache : folder in which features are looked for and kept, or None
    on_progress : called with (what is done, how many, of how many)
    check : applied to some images and their numbers, may complain
    """
    found = np.empty((len(images), scattering.n_features), scattering.dtype)
    with contextlib.closing(FeatureCache(scattering, cache)) as known, Workers(threads) as workers:
        for start in range(0, len(images), AT_ONCE):
            numbers = np.arange(len(images))[start : start + AT_ONCE]
            part = check(np.asarray(images[start : start + AT_ONCE]), numbers)
            keys = [image_key(image) for image in part]
            rows = known.rows(keys)
            new = [place for place, key in enumerate(keys) if key not in rows]
            if new:
                scattering.prepare()
            made = list(workers.map(scattering.features, part[new]))
            rows |= {keys[place]: row for place, row in zip(new, made, strict=True)}
            known.keep({keys[place]: rows[keys[place]] for place in new})
            found[numbers] = [rows[key] for key in keys]
            on_progress("scattering images", int(numbers[-1]) + 1, len(images))
    return found


def image_key(image: np.ndarray) -> bytes:
    """Hash of the pixels of an image, whatever their precision."""
    return hashlib.blake2b(np.ascontiguousarray(image, "<f8").data, digest_size=16).digest()


class FeatureCache:
    """Rows of features by image; without a folder, or where it cannot be used, always empty."""

    def __init__(self, scattering: Scattering, folder: Path | None):
        self.length, self.dtype = scattering.n_features, scattering.dtype.newbyteorder("<")
        self.database: sqlite3.Connection | None = None
        if folder is None:
            return
        s = scattering
        kind = f"{FORMAT} {s.order} {s.octaves} {s.shape} {s.dtype} {s.oversampling} scipy {scipy.__version__}"
        self.path = Path(folder) / "scattering" / f"{hashlib.sha256(kind.encode()).hexdigest()[:32]}.sqlite"
        self._open()

    def _open(self) -> None:
        """Open the file, or make it; one that is damaged is made anew."""
        for _ in range(2):
            with self._or_anew(), contextlib.suppress(OSError):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.database = _opened(self.path)
            if self.database is not None or os.path.exists(self.path):  # there, or left alone
                return

    @contextlib.contextmanager
    def _or_anew(self):
        """Let errors of the data base pass; a file that is damaged goes, so that it costs time once only."""
        try:
            yield
        except sqlite3.OperationalError:  # locked, full or read-only: leave it alone
            pass
        except sqlite3.DatabaseError:
            self.close()
            self.database = None
            with contextlib.suppress(OSError):
                self.path.unlink()

    def rows(self, keys: list[bytes]) -> dict[bytes, np.ndarray]:
        """The features of those images that are known."""
        if self.database is None:
            return {}
        places = ", ".join("?" * len(keys))
        with self._or_anew():
            rows = self.database.execute(f"SELECT image, row, crc FROM features WHERE image IN ({places})", keys)
            return {key: self._array(row) for key, row, crc in rows if self._is_whole(row, crc)}
        if self.database is None:
            self._open()
        return {}

    def keep(self, rows: dict[bytes, np.ndarray]) -> None:
        """Write features for the next time."""
        if self.database is None or not rows:
            return
        packed = [(key, np.ascontiguousarray(row, self.dtype).tobytes()) for key, row in rows.items()]
        values = [(key, row, zlib.crc32(row)) for key, row in packed]
        with self._or_anew(), self.database:
            self.database.executemany("INSERT OR REPLACE INTO features VALUES (?, ?, ?)", values)
        if self.database is None:  # it was damaged
            self._open()

    def close(self) -> None:
        """Let go of the file."""
        if self.database is not None:
            self.database.close()

    def _is_whole(self, row, crc) -> bool:
        n_bytes = self.length * self.dtype.itemsize
        is_ours = isinstance(row, bytes) and len(row) == n_bytes and zlib.crc32(row) == crc
        return is_ours and bool(np.isfinite(self._array(row)).all())

    def _array(self, row: bytes) -> np.ndarray:
        return np.frombuffer(row, self.dtype)


def _opened(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=PATIENCE)
    try:
        with database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS features (image BLOB PRIMARY KEY, row BLOB NOT NULL, crc INTEGER NOT NULL)"
            )
            columns = [column[1] for column in database.execute("PRAGMA table_info(features)")]
        if columns != ["image", "row", "crc"]:
            raise sqlite3.DatabaseError("features of another kind")
    except BaseException:
        database.close()
        raise
    return database
