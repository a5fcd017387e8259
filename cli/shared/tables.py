"""Tables of any length, written row by row: CSV files, and arrays of features in .npz files."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from tigra.files.atomic import replacing
from tigra.files.csv_rows import csv_row

from .output import say


def write_table(path: str, lines: Iterable[list]) -> None:
    """Write rows to a CSV file, which appears when it is complete or at Ctrl-C, or print them if path is "-"."""
    with contextlib.ExitStack() as stack:
        file = None if path == "-" else stack.enter_context(replacing(path))
        for cells in lines:
            if file is None:
                say(csv_row(cells, end="\n"), nl=False)
            else:
                file.write(csv_row(cells).encode("utf-8", "backslashreplace"))


class FeatureArchive:
    """An .npz file of features: `features`, `names` (of the columns), `paths`, `error_paths` and `errors`.

    Features go to a temporary file first, because an array begins with its number of rows. `numpy.load` reads all
    arrays without pickle.
    """

    def __init__(self, spool, names: list[str]):
        self.spool, self.names, self.dtype = spool, names, np.dtype(np.float32)
        self.paths: list[str] = []
        self.bad: list[tuple[str, str]] = []

    def add(self, paths: list[str], errors: list[str], features: np.ndarray) -> None:
        """Append the features of some pictures, and the errors of others."""
        if len(features):
            self.dtype = features.dtype
            self.spool.write(np.ascontiguousarray(features).data)
        for path, error in zip(paths, errors, strict=True):
            if error:
                self.bad.append((path, error))
            else:
                self.paths.append(path)

    def write(self, file) -> None:
        """Write all arrays."""
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            with archive.open("features.npy", "w", force_zip64=True) as member:
                shape = len(self.paths), len(self.names)
                header = {"descr": self.dtype.str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(member, header)
                self.spool.seek(0)
                shutil.copyfileobj(self.spool, member)
            texts = {"names": self.names, "paths": self.paths}
            texts |= {"error_paths": [path for path, _ in self.bad], "errors": [error for _, error in self.bad]}
            for name, entries in texts.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    array = np.array([text.encode("utf-8", "replace").decode() for text in entries], dtype=np.str_)
                    np.lib.format.write_array(member, array, (1, 0), allow_pickle=False)


@contextlib.contextmanager
def feature_archive(path, names: list[str]) -> Iterator[FeatureArchive]:
    """Open an .npz file of features; it appears at the end of the block, after Ctrl-C with what there is so far."""
    with replacing(path) as file, tempfile.TemporaryFile(dir=Path(path).resolve().parent) as spool:
        archive = FeatureArchive(spool, names)
        try:
            yield archive
        except KeyboardInterrupt:
            archive.write(file)
            raise
        archive.write(file)
