"""Picture files as arrays that a network takes."""

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

# What people keep photographs, drawings and measurements in. Not EPS and its kin: Pillow would start
# other programs to read them.
FORMATS = (
    "PNG", "JPEG", "MPO", "GIF", "BMP", "DIB", "TIFF", "WEBP", "AVIF", "JPEG2000", "PPM", "PFM", "TGA",
    "PCX", "DCX", "ICO", "ICNS", "SGI", "XBM", "XPM", "MSP", "IM", "DDS", "QOI", "PSD", "SUN",
)  # fmt: skip
logging.getLogger("PIL").addHandler(logging.NullHandler())  # what it has to say, our errors say
GREY_LEVELS = 65535  # 16 bits: exact for 8-bit and 16-bit pictures


def read_image(path, shape: tuple[int, int], invert: bool = False) -> np.ndarray:
    """The picture in a file, grey, in [0, 1], as an array of `shape` (height, width).

    Any common format that Pillow opens. Colours become grey levels, transparent pixels white (as a
    viewer would show them), the camera's orientation mark is obeyed, of an animation the first frame
    counts. A picture of another size is scaled to fit and centred on black: stretching it would
    not be an isometry. Grey levels are whole multiples of 1/65535.

    invert : for dark ink on light paper, where the network learned light on dark
    """
    if os.path.exists(path) and not os.path.isfile(path):
        raise ImageError(f"Cannot read {path}: it is not an ordinary file.")
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's, about odd metadata
            return decode_image(file, path, shape, invert)
    except OSError as error:
        raise ImageError(f"Cannot read {path}: {error.strerror or error}.") from error


def decode_image(file, name, shape: tuple[int, int], invert: bool = False) -> np.ndarray:
    """As `read_image`, for a picture in an open file or in bytes; `name` is for messages."""
    shape = checked_shape(shape)
    try:
        with Image.open(io.BytesIO(file) if isinstance(file, bytes) else file, formats=_formats()) as picture:
            if picture.width * picture.height > (Image.MAX_IMAGE_PIXELS or np.inf):
                raise Image.DecompressionBombError
            grey = _grey(ImageOps.exif_transpose(picture))
    except MemoryError:  # says nothing about the picture
        raise
    except Image.DecompressionBombError as error:
        raise ImageError(f"{name} is too large a picture to open safely: scale it down first.") from error
    except UnidentifiedImageError as error:
        raise ImageError(f"{name} is not a picture that can be read; give a PNG, JPEG or the like.") from error
    except OSError as error:
        if error.strerror is not None:
            raise ImageError(f"Cannot read {name}: {error.strerror}.") from error
        raise ImageError(f"{name} is damaged and cannot be read ({error}).") from error
    except Exception as error:  # Pillow's decoders raise almost anything on damaged files
        raise ImageError(f"{name} is damaged and cannot be read ({type(error).__name__}).") from error
    low, high = grey.min(), grey.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ImageError(f"{name} has NaN or infinite pixels; save it with ordinary grey levels.")
    if low < 0 or high > 1:
        raise ImageError(f"{name} has pixels from {low:g} to {high:g}; scale them to [0, 1], or save 8 or 16 bits.")
    fitted = _fitted(1 - grey if invert else grey, shape)
    return np.rint(np.clip(fitted, 0.0, 1.0).astype(np.float64) * GREY_LEVELS) / GREY_LEVELS


def picture_size(path) -> tuple[int, int] | None:
    """(height, width) of a picture as it will be read; None if it is no picture. A damaged one still has a size."""
    try:
        if not os.path.isfile(path):  # opening a pipe would wait for ever
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(path, formats=_formats()) as picture:
                size = picture.size[::-1]
                with contextlib.suppress(Exception):  # of a PNG this reads all pixels; reading it again will say so
                    if picture.getexif().get(0x0112, 1) in (5, 6, 7, 8):  # orientation: lying on its side
                        return size[::-1]
                return size
    except Exception:  # whatever is wrong with it, reading it will say so
        return None


def reader_version() -> str:
    """Which pictures can be read here, and by what: the same for the same numbers."""
    return f"Pillow {PIL.__version__}: {' '.join(_formats())}"


def _formats() -> list[str]:
    Image.init()  # loads Pillow's readers, once
    return [name for name in FORMATS if name in Image.OPEN]


def _grey(picture: Image.Image) -> np.ndarray:
    """Pixels of a picture as real numbers, 0 black and 1 white."""
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
