"""Some pictures of every set as one PNG file: a row for each set, training pictures left, turned ones right."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from benchmarks.practice.sets import SETS, Counts, make

SIDE, ACROSS, GAP = 64, 8, 6  # pixels of a picture on the sheet, pictures of a part, pixels between parts
ALIKE = "digits-100", "digits-500"  # look like digits-20


def sheet(data_dir: str | None = None) -> bytes:
    """Draw the sheet; sets whose data are missing raise DatasetError."""
    rows = [_row(name, data_dir) for name in SETS if name not in ALIKE]
    gap = np.full((GAP, *rows[0].shape[1:]), 255, np.uint8)
    parts = [part for row in rows for part in (row, gap)][:-1]
    file = io.BytesIO()
    Image.fromarray(np.concatenate(parts)).save(file, "PNG", optimize=True)
    return file.getvalue()


def _row(name: str, data_dir: str | None) -> np.ndarray:
    pictures = make(name, 0, data_dir, Counts(2, 2))
    n_classes = len(pictures.class_names)
    places = 2 * np.linspace(0, n_classes - 1, ACROSS).round().astype(int)
    left, right = (np.concatenate([_enlarged(part[place]) for place in places], axis=1) for part in pictures[0:4:3])
    return np.concatenate([left, np.full((SIDE, GAP, 3), 255, np.uint8), right], axis=1)


def _enlarged(picture: np.ndarray) -> np.ndarray:
    return np.asarray(Image.fromarray(picture).convert("RGB").resize((SIDE, SIDE), Image.Resampling.BICUBIC))
