"""Cache of scattering features on disk, so that each image is scattered once.

For each kind of scattering, one SQLite file in the cache folder maps the hash of an image's pixels to its
features. So another split or fold of the same images finds them all. Features are saved as they are
computed, so a stopped run loses nothing. Each row has a checksum, which covers the kind of scattering and the
image, too. A damaged or read-only cache only costs time. It can be deleted at any time.
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

FORMAT = 1  # increase when features change, so that old ones are not used
AT_ONCE = 64  # images between two progress reports
PATIENCE = 5.0  # seconds to wait while another process writes
PASSING = "locked", "full", "unable to open", "disk I/O", "out of memory", "interrupted"  # errors that are no damage


def scattering_features(
    scattering: Scattering,
    images,
    threads: int = 1,
    cache: Path | None = None,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    check: Callable = lambda images, numbers: images,
) -> np.ndarray:
    """Return features (n, F) of images (n, height, width), an array or LazyImages.

    Parameters
    ----------
    scattering : Scattering
        The transform.
    images : array or LazyImages, shape (n, height, width)
        The images.
    threads : int
        Number of worker threads; the result does not depend on it.
    cache : Path, optional
        Cache folder.
    on_progress : callable
        Called with (description, number done, total).
    check : callable
        Applied to images and their indices; may raise an error.
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
    """Return the hash of the pixels of an image, independent of their dtype."""
    return hashlib.blake2b(np.ascontiguousarray(image, "<f8").data, digest_size=16).digest()


class FeatureCache:
    """Features by image; always empty without a usable folder."""

    def __init__(self, scattering: Scattering, folder: Path | None):
        self.length, self.dtype = scattering.n_features, scattering.dtype.newbyteorder("<")
        self.database: sqlite3.Connection | None = None
        if folder is None:
            return
        s = scattering
        self.kind = f"{FORMAT} {s.order} {s.octaves} {s.shape} {s.dtype} {s.oversampling} scipy {scipy.__version__}"
        self.path = Path(folder) / "scattering" / f"{hashlib.sha256(self.kind.encode()).hexdigest()[:32]}.sqlite"
        self._open()

    def _open(self) -> None:
        """Open or create the file; replace it if it is damaged."""
        for _ in range(2):
            with self._or_anew(), contextlib.suppress(OSError):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.database = _opened(self.path)
            if self.database is not None or os.path.exists(self.path):  # open, or not to be touched
                return

    @contextlib.contextmanager
    def _or_anew(self):
        """Ignore errors; delete a damaged file, so that it only costs time once."""
        try:
            yield
        except Exception as error:  # damage also shows as UnicodeDecodeError, OverflowError and others
            if self._is_passing(error):
                return
            self.close()
            self.database = None
            for ending in ("-journal", "-wal", "-shm", ""):  # a journal would be applied to the next file
                with contextlib.suppress(OSError):
                    os.unlink(f"{self.path}{ending}")

    def _is_passing(self, error: Exception) -> bool:
        """Whether the file is locked, full or read-only, and may be whole."""
        if isinstance(error, sqlite3.OperationalError) and "readonly" in str(error):  # damage can look like that
            return not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK))
        return isinstance(error, sqlite3.OperationalError) and any(words in str(error) for words in PASSING)

    def rows(self, keys: list[bytes]) -> dict[bytes, np.ndarray]:
        """Return the features of the images that are in the cache."""
        if self.database is None:
            return {}
        places = ", ".join("?" * len(keys))
        with self._or_anew():
            rows = self.database.execute(f"SELECT image, row, crc FROM features WHERE image IN ({places})", keys)
            return {key: self._array(row) for key, row, crc in rows if self._is_whole(key, row, crc)}
        if self.database is None:
            self._open()
        return {}

    def keep(self, rows: dict[bytes, np.ndarray]) -> None:
        """Save features."""
        if self.database is None or not rows:
            return
        packed = [(key, np.ascontiguousarray(row, self.dtype).tobytes()) for key, row in rows.items()]
        values = [(key, row, self._checksum(key, row)) for key, row in packed]
        with self._or_anew(), self.database:
            self.database.executemany("INSERT OR REPLACE INTO features VALUES (?, ?, ?)", values)
        if self.database is None:  # it was damaged
            self._open()

    def close(self) -> None:
        """Close the file."""
        if self.database is not None:
            self.database.close()

    def _checksum(self, key: bytes, row: bytes) -> int:
        return zlib.crc32(self.kind.encode() + key + row)

    def _is_whole(self, key, row, crc) -> bool:
        n_bytes = self.length * self.dtype.itemsize
        is_ours = isinstance(row, bytes) and len(row) == n_bytes and self._checksum(key, row) == crc
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
