"""Read picture files as arrays for a network."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import warnings

import numpy as np
import PIL
from PIL import Image, ImageOps, UnidentifiedImageError

from tigra.errors import ImageError
from tigra.images.transforms import checked_shape

# Common formats. EPS and similar ones are left out because Pillow would start other programs to read them.
FORMATS = (
    "PNG", "JPEG", "MPO", "GIF", "BMP", "DIB", "TIFF", "WEBP", "AVIF", "JPEG2000", "PPM", "PFM", "TGA",
    "PCX", "DCX", "ICO", "ICNS", "SGI", "XBM", "XPM", "MSP", "IM", "DDS", "QOI", "PSD", "SUN",
)  # fmt: skip
logging.getLogger("PIL").addHandler(logging.NullHandler())  # our errors say the same
GREY_LEVELS = 65535  # 16 bits: exact for 8-bit and 16-bit pictures


def read_image(path, shape: tuple[int, int], invert: bool = False) -> np.ndarray:
    """Read a picture file as grey levels in [0, 1].

    Parameters
    ----------
    path : path
        A picture in any common format that Pillow can open.
    shape : (int, int)
        Height and width of the result.
    invert : bool
        Invert the grey levels: for dark objects on a light background if the network was trained on light
        objects on a dark background.

    Returns
    -------
    array of shape `shape`
        Grey levels, whole multiples of 1/65535.

    Notes
    -----
    Colours are converted to grey, and transparent pixels become white. The orientation in EXIF data is
    applied. Of an animation, the first frame is read. A picture of another size is scaled with its aspect
    ratio kept, and centred on black, because stretching is not an isometry.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        raise ImageError(f"Cannot read {path}: it is not a regular file.")
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Pillow, about unusual metadata
            return decode_image(file, path, shape, invert)
    except OSError as error:
        raise ImageError(f"Cannot read {path}: {error.strerror or error}.") from error


def decode_image(file, name, shape: tuple[int, int], invert: bool = False) -> np.ndarray:
    """Read a picture from an open file or bytes, as `read_image` does; `name` is for messages."""
    shape = checked_shape(shape)
    try:
        with Image.open(io.BytesIO(file) if isinstance(file, bytes) else file, formats=_formats()) as picture:
            if picture.width * picture.height > (Image.MAX_IMAGE_PIXELS or np.inf):
                raise Image.DecompressionBombError
            grey = _grey(ImageOps.exif_transpose(picture))
    except MemoryError:  # not the fault of the picture
        raise
    except Image.DecompressionBombError as error:
        raise ImageError(f"{name} is too large to open safely; scale it down first.") from error
    except UnidentifiedImageError as error:
        raise ImageError(f"{name} is not a picture that can be read; give a PNG or JPEG file, for example.") from error
    except OSError as error:
        if error.strerror is not None:
            raise ImageError(f"Cannot read {name}: {error.strerror}.") from error
        raise ImageError(f"{name} is damaged and cannot be read ({error}).") from error
    except Exception as error:  # decoders of Pillow raise almost anything on damaged files
        raise ImageError(f"{name} is damaged and cannot be read ({type(error).__name__}).") from error
    low, high = grey.min(), grey.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ImageError(f"{name} has NaN or infinite pixels; save it with finite grey levels.")
    if low < 0 or high > 1:
        raise ImageError(f"{name} has pixels from {low:g} to {high:g}; scale them to [0, 1], or save 8 or 16 bits.")
    fitted = _fitted(1 - grey if invert else grey, shape)
    return np.rint(np.clip(fitted, 0.0, 1.0).astype(np.float64) * GREY_LEVELS) / GREY_LEVELS


def picture_size(path) -> tuple[int, int] | None:
    """Return (height, width) of a picture after EXIF rotation, even if it is damaged; None if it is no picture."""
    try:
        if not os.path.isfile(path):  # opening a pipe would block
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path, formats=_formats()) as picture:
                size = picture.size[::-1]
                with contextlib.suppress(Exception):  # for a PNG this reads all pixels, which may fail
                    if picture.getexif().get(0x0112, 1) in (5, 6, 7, 8):  # orientation: rotated by 90 degrees
                        return size[::-1]
                return size
    except Exception:  # `read_image` will report the error
        return None


def reader_version() -> str:
    """Return the version of Pillow and the formats it can read, which determine the decoded pixels."""
    return f"Pillow {PIL.__version__}: {' '.join(_formats())}"


def _formats() -> list[str]:
    Image.init()  # loads the readers of Pillow, once
    return [name for name in FORMATS if name in Image.OPEN]


def _grey(picture: Image.Image) -> np.ndarray:
    """Return the pixels of a picture as real numbers, 0 for black and 1 for white."""
    if picture.mode.startswith("I"):  # 16-bit grey; Pillow also opens it as 32-bit integers
        return np.asarray(picture, dtype=np.float32) / np.float32(65535.0)
    if picture.mode == "F":
        return np.asarray(picture)
    if "A" in picture.getbands() or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    return np.asarray(picture.convert("L"), dtype=np.float32) / np.float32(255.0)


def _fitted(grey: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    if grey.shape == tuple(shape):
        return grey
    height, width = shape
    scale = min(height / grey.shape[0], width / grey.shape[1])
    rows, columns = (max(1, round(scale * size)) for size in grey.shape)
    top, left = (height - rows) // 2, (width - columns) // 2
    fitted = np.zeros(shape, np.float32)
    scaled = Image.fromarray(grey).resize((columns, rows), Image.Resampling.BILINEAR)
    fitted[top : top + rows, left : left + columns] = np.asarray(scaled)
    return fitted
