"""Data sets in one .npz file: `train_images, train_labels[, val_..., test_...]`, as MedMNIST and others have them.

Images are (n, height, width), or (n, height, width, 3) in colour, of 8 or 16 bits or real numbers in [0, 1]. Labels are
whole numbers or names. Files are not trusted: types, shapes and sizes are checked before an array is created, and
nothing is unpickled.
"""

from __future__ import annotations

import math
import os
import zipfile
from typing import IO

import numpy as np

from tigra.errors import DatasetError
from tigra.files.regular import open_regular
from tigra.files.room import check_memory
from tigra.images.background import border_grey, on_black
from tigra.images.colour import COLOURFUL, LEAST_SHARE, LUMA
from tigra.images.pictures import GREY_LEVELS
from tigra.images.sizes import as_planes, from_planes, resize
from tigra.images.store import LazyImages
from tigra.option_fields import short

ENDING = ".npz"
PART_NAMES = {"train": ("train",), "valid": ("val", "valid"), "test": ("test",)}
LARGEST_VALUE = {"b": 1, "u1": 255, "u2": GREY_LEVELS, "f2": 1, "f4": 1, "f8": 1}  # of a pixel, by type
COPIES = 2  # of the arrays that memory must hold
COLOUR_SHARE = 0.1  # of the images must have colour
N_LISTED = 6  # arrays named in a message
N_COLOURS = 500  # images that are looked at for colour


def is_array_file(name) -> bool:
    """Whether a data set is a file of arrays."""
    return isinstance(name, (str, os.PathLike)) and os.fspath(name).endswith(ENDING) and os.path.isfile(name)


class ArrayImages(LazyImages):
    """Rows of an array of pixels as images of one shape in [0, 1], in colour or grey, framed with their background.

    Parameters
    ----------
    pixels : array of shape (n, height, width) or (n, height, width, 3)
        Pixels as in the file.
    rows : array of int
        The rows to use.
    shape : (int, int) or (int, int, 3)
        Shape of the images.
    background : {"border", "black", "to black"}
        What surrounds images of another aspect ratio, as for `tigra.read_image`.
    """

    def __init__(self, pixels: np.ndarray, rows, shape: tuple[int, ...], background: str = "border"):
        self.pixels, self.rows, self.background = pixels, np.asarray(rows), background
        super().__init__((len(self.rows), *shape))

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the images with these indices."""
        images = self.pixels[self.rows[rows]] / np.float64(LARGEST_VALUE[_kind(self.pixels.dtype)])
        if images.ndim == 4 and len(self.shape) == 3:
            images = images @ np.array(LUMA)
        elif images.ndim == 3 and len(self.shape) == 4:
            images = np.repeat(images[..., None], 3, axis=3)
        images = images if images.shape[1:] == self.shape[1:] else self._scaled(images)
        return on_black(images) if self.background == "to black" else images

    def _scaled(self, images: np.ndarray) -> np.ndarray:
        """Return the images at the wanted size, with their aspect ratio kept."""
        (height, width), old = self.shape[1:3], images.shape[1:3]
        scale = min(height / old[0], width / old[1])
        new = tuple(max(1, round(scale * size)) for size in old)
        framed = np.zeros((len(images), *self.shape[1:]))
        if not len(images):
            return framed
        scaled = from_planes(resize(as_planes(images), new), images)
        if self.background != "black":
            framed += border_grey(scaled)[:, None, None]
        top, left = (height - new[0]) // 2, (width - new[1]) // 2
        framed[:, top : top + new[0], left : left + new[1]] = scaled
        return framed


def _kind(dtype: np.dtype) -> str:
    return "b" if dtype.kind == "b" else f"{dtype.kind}{dtype.itemsize}"


# --- reading ---------------------------------------------------------------------------------------------------


def read_arrays(path, names) -> dict[str, np.ndarray]:
    """Return the arrays with these names, as far as the file has them; raise DatasetError for a bad file.

    Parameters
    ----------
    path : path
        An .npz file, compressed or not.
    names : iterable of str
        Names of arrays.

    Returns
    -------
    dict of str to array
        The arrays.
    """
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            wanted = {name: members[name] for name in names if name in members}
            n_bytes = COPIES * sum(info.file_size for info in wanted.values())
            check_memory(n_bytes, f"The arrays of {path}", "save fewer or smaller images")
            arrays = {}
            for name, info in wanted.items():
                with archive.open(info) as member:
                    arrays[name] = _array(member, info.file_size, f"{path}, {name}")
            return arrays
    except (DatasetError, MemoryError):
        raise
    except OSError as error:
        if error.strerror:
            raise DatasetError(f"Cannot read {path}: {error.strerror}.") from error
        raise _damaged(path) from error
    except Exception as error:  # a zip file from outside can make its readers fail in many ways
        raise _damaged(path) from error


def _damaged(path) -> DatasetError:
    return DatasetError(f"{path} is damaged or not an .npz file; save it again with numpy.savez_compressed.")


def _array(member: IO[bytes], file_size: int, what: str) -> np.ndarray:
    """Read one array; its header must describe exactly the bytes that follow."""
    version = np.lib.format.read_magic(member)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran_order, dtype = read_header(member)
    if dtype.hasobject or dtype.kind not in "biufU":
        raise DatasetError(f"{what} has the type {short(str(dtype))}; save numbers, or labels as strings.")
    n_bytes = math.prod(shape) * dtype.itemsize
    if member.tell() + n_bytes != file_size:
        raise DatasetError(f"{what} has another size than its header says; save the file again.")
    content = member.read()  # to the end, where the checksum is compared
    return np.frombuffer(content, dtype).reshape(shape, order="F" if fortran_order else "C")


def read_images(path, name: str, pixels: np.ndarray) -> np.ndarray:
    """Check an array of images; returns (n, height, width) or (n, height, width, 3)."""
    if pixels.ndim == 4 and pixels.shape[3] == 1:
        pixels = pixels[..., 0]
    is_image = pixels.ndim == 3 or (pixels.ndim == 4 and pixels.shape[3] == 3)
    if not is_image or 0 in pixels.shape:
        raise DatasetError(
            f"{path}, {name} has the shape {pixels.shape}; expected images (n, height, width), or (n, height, width, 3)"
            f" in colour{_shape_hint(pixels.shape)}."
        )
    if _kind(pixels.dtype) not in LARGEST_VALUE:
        raise DatasetError(f"{path}, {name} has the type {pixels.dtype}; save uint8, uint16 or real numbers in [0, 1].")
    if pixels.dtype.kind == "f":
        low, high = float(pixels.min()), float(pixels.max())
        if not np.isfinite([low, high]).all():
            image = int(np.flatnonzero(~np.isfinite(pixels).reshape(len(pixels), -1).all(axis=1))[0])
            raise DatasetError(
                f"{path}, {name} has pixels that are not finite numbers, the first in image {image}; leave out such"
                " images, or replace the pixels."
            )
        if low < 0 or high > 1:
            raise DatasetError(f"{path}, {name} has pixels from {low:g} to {high:g}; scale them to [0, 1].")
    return pixels


def _shape_hint(shape: tuple[int, ...]) -> str:
    """Return what to do about a wrong shape, if it is a usual one.

    >>> _shape_hint((60, 3, 28, 28)), _shape_hint((60, 28, 28, 4)), _shape_hint((60, 784))
    ('; move the channels to the end with numpy.moveaxis(images, 1, -1)', '; leave out the fourth channel', '')
    """
    if len(shape) == 4 and shape[1] in (1, 3):
        return "; move the channels to the end with numpy.moveaxis(images, 1, -1)"
    return "; leave out the fourth channel" if len(shape) == 4 and shape[3] == 4 else ""


def lacking(path, wanted: str) -> DatasetError:
    """Return the error for a file, already read, that lacks arrays; it says which ones there are."""
    with open_regular(path) as file, zipfile.ZipFile(file) as archive:
        names = [short(name.removesuffix(".npy")) for name in archive.namelist()]
    if "'meta.json'" in names:
        return DatasetError(f"{path} is a model, not a data set; give a folder of pictures, or a file of arrays.")
    there = ", ".join(names[:N_LISTED]) + (" and more" if len(names) > N_LISTED else "")
    return DatasetError(f"{path} has no {wanted}, only {there or 'nothing'}; save the arrays under these names.")


def read_labels(path, name: str, labels: np.ndarray, n_images: int) -> np.ndarray:
    """Check an array of labels; returns (n,) whole numbers or names."""
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (n_images,) or labels.dtype.kind not in "biuU":
        raise DatasetError(
            f"{path}, {name} has {labels.dtype} of shape {labels.shape}; expected one whole number or name for each of"
            f" {n_images} images, shape ({n_images},)."
        )
    return labels.astype(np.int64) if labels.dtype.kind in "biu" else labels


def images_have_colour(pixels: np.ndarray) -> bool:
    """Whether at least a tenth of some images show colours, as for pictures of folders."""
    if pixels.ndim == 3:
        return False
    some = pixels[:: -(-len(pixels) // N_COLOURS)].astype(np.float64) / LARGEST_VALUE[_kind(pixels.dtype)]
    differs = (some.max(axis=3) - some.min(axis=3)) > COLOURFUL / 255
    return bool((differs.mean(axis=(1, 2)) >= LEAST_SHARE).mean() >= COLOUR_SHARE)
