"""Read picture files as arrays for a network."""

from __future__ import annotations

import contextlib
import ctypes
import io
import logging
import math
import os
import threading
import warnings
from collections.abc import Iterator

import numpy as np
import PIL
from PIL import Image, UnidentifiedImageError, _imaging

from tigra.errors import ImageError, TigraError, UsageError
from tigra.files.regular import open_regular
from tigra.images.background import border_grey, on_black
from tigra.images.sizes import checked_picture_shape
from tigra.options import Limits

# Common formats. EPS and similar ones are left out because Pillow would start other programs to read them.
FORMATS = (
    "PNG", "JPEG", "MPO", "GIF", "BMP", "DIB", "TIFF", "WEBP", "AVIF", "JPEG2000", "PPM", "PFM", "TGA",
    "PCX", "DCX", "ICO", "ICNS", "SGI", "XBM", "XPM", "MSP", "IM", "DDS", "QOI", "PSD", "SUN",
)  # fmt: skip
logging.getLogger("PIL").addHandler(logging.NullHandler())  # our errors say the same
HEIC = ".heic", ".heif"
GREY_LEVELS = 65535  # 16 bits: exact for 8-bit and 16-bit pictures
WHOLE = 2**24  # pixels up to which a picture is scaled at once, larger ones strip by strip
STRIP = 2**20  # pixels in a strip, so that only the decoded picture itself takes much memory
AT_ONCE = 2**26  # pixels that all threads together may decode at a time; a larger picture is decoded alone
IN_FLOATS = 4  # pixels of a decoded picture that take as much memory as a pixel of the result
HEAVY = dict.fromkeys(("WEBP", "AVIF", "JPEG2000"), 3)  # their decoders take this many times the usual memory
BLOCK = 2**26  # bytes; glibc returns blocks from 32 MB on
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}  # by the orientation in EXIF data
ORIENTATION = 0x0112
FRAMES = "black", "border", "to black"


def read_image(path, shape: tuple[int, ...], invert: bool = False, background: str = "black") -> np.ndarray:
    """Read a picture file as grey levels or colours in [0, 1].

    Parameters
    ----------
    path : path
        A picture in any common format that Pillow can open.
    shape : (int, int) or (int, int, 3)
        Height and width of the result; the third number asks for colour: red, green and blue.
    invert : bool
        Invert the grey levels.
    background : {"black", "border", "to black"}
        What surrounds a picture of another aspect ratio: black, or the median of its border pixels. "to black" also
        subtracts this median from pictures whose border is not black, and takes the absolute value: then dark objects
        on a light background become light objects on black.

    Returns
    -------
    array of shape `shape`
        Levels, whole multiples of 1/65535.

    Notes
    -----
    Without a third number in `shape`, colours are converted to grey. Transparent pixels become white. The
    orientation in EXIF data is applied. Of an animation, the first frame is read. A picture of another size is
    scaled with its aspect ratio kept, and centred, because stretching is not an isometry. Pictures of up to 90
    million pixels are read (30 million in WebP, AVIF and JPEG 2000), see `tigra.options.Limits`.
    """
    try:
        with open_regular(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Pillow, about unusual metadata
            return decode_image(file, path, shape, invert, background)
    except OSError as error:
        raise ImageError(f"Cannot read {path}: {error.strerror or error}.") from error


def decode_image(file, name, shape: tuple[int, ...], invert: bool = False, background: str = "black") -> np.ndarray:
    """Read a picture from an open file or bytes, as `read_image` does; `name` is for messages."""
    shape = checked_picture_shape(shape)
    if background not in FRAMES:
        raise UsageError(f"background must be one of {', '.join(FRAMES)}, got {background!r}.")
    try:
        with (
            Image.open(io.BytesIO(file) if isinstance(file, bytes) else file, formats=picture_formats()) as picture,
            _IN_FLIGHT.pixels(_checked_size(picture, name) + IN_FLOATS * math.prod(shape)),
            contextlib.closing(picture),  # releases its memory
        ):
            upright = _upright(picture, "L" if len(shape) == 2 else "RGB")
            planes = [_fitted(band, shape[:2], name, invert, background) for band in upright.split()]
            return _rounded(_stacked(planes, shape, background))
    except (MemoryError, TigraError):  # out of memory: not the fault of the picture
        raise
    except Image.DecompressionBombError as error:  # twice Pillow's own limit
        raise ImageError(f"{name} is too large for Pillow to open safely; scale it down first.") from error
    except UnidentifiedImageError as error:
        raise ImageError(_unknown(str(name))) from error
    except OSError as error:
        if error.strerror is not None:
            raise ImageError(f"Cannot read {name}: {error.strerror}.") from error
        raise ImageError(f"{name} is damaged and cannot be read ({error}).") from error
    except Exception as error:  # decoders of Pillow raise almost anything on damaged files
        raise ImageError(f"{name} is damaged and cannot be read ({type(error).__name__}).") from error


def _unknown(name: str) -> str:
    """Return the message for a file that Pillow does not know; telephones write HEIC."""
    if name.lower().endswith(HEIC):
        return f"{name} is a HEIC picture, which cannot be read; convert it to JPEG."
    return f"{name} is not a picture that can be read; give a PNG or JPEG file, for example."


def _rounded(grey: np.ndarray) -> np.ndarray:
    """Return whole multiples of 1 / GREY_LEVELS."""
    levels = np.clip(grey, 0.0, 1.0).astype(np.float64)
    levels *= GREY_LEVELS
    return np.divide(np.rint(levels, out=levels), GREY_LEVELS, out=levels)


def _checked_size(picture: Image.Image, name) -> int:
    """Return the number of pixels, weighted by the memory that the format takes; raise ImageError if too many."""
    weight, most = HEAVY.get(picture.format or "", 1), Limits.now().max_pixels
    if weight * picture.width * picture.height > most:
        of_format = f" for {picture.format}" if weight > 1 else ""
        raise ImageError(
            f"{name} is too large: it has {picture.width}x{picture.height} pixels, the limit is {most // weight:,}"
            f"{of_format}; scale it down, or set TIGRA_MAX_PIXELS to {weight * picture.width * picture.height}."
        )
    return weight * picture.width * picture.height


def picture_size(path) -> tuple[int, int] | None:
    """Return (height, width) of a picture after EXIF rotation, even if it is damaged; None if it is no picture."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with open_regular(path) as file, Image.open(file, formats=picture_formats()) as picture:
                size = picture.size[::-1]
                if picture.width * picture.height <= Limits.now().max_pixels:
                    with contextlib.suppress(Exception):  # for a PNG this reads all pixels, which may fail
                        return size[::-1] if picture.getexif().get(ORIENTATION, 1) in (5, 6, 7, 8) else size
                return size
    except Exception:  # `read_image` will report the error
        return None


class _InFlight:
    """Keeps the number of pixels that threads decode at the same time below AT_ONCE."""

    def __init__(self) -> None:
        self.n_pixels, self.changed = 0, threading.Condition()

    @contextlib.contextmanager
    def pixels(self, n: int) -> Iterator[None]:
        """Wait until there is room for n more pixels, or nothing else is decoded."""
        with self.changed:
            self.changed.wait_for(lambda: self.n_pixels == 0 or self.n_pixels + n <= AT_ONCE)
            self.n_pixels += n
        try:
            yield
        finally:
            with self.changed:
                self.n_pixels -= n
                self.changed.notify_all()


_IN_FLIGHT = _InFlight()


def reader_version() -> str:
    """Return the version of Pillow and the formats it can read, which determine the decoded pixels."""
    return f"Pillow {PIL.__version__}: {' '.join(picture_formats())}"


def _return_memory() -> None:
    """Let Pillow allocate large pictures in blocks that the C library returns to the system when they are freed.

    Smaller blocks are kept, by each thread on its own: three threads kept 1.3 GB after one picture each.
    """
    if "PILLOW_BLOCK_SIZE" not in os.environ:
        with contextlib.suppress(AttributeError, ValueError):
            _imaging.set_block_size(BLOCK)


def picture_formats() -> list[str]:
    """Return the formats that are read, by their names in Pillow."""
    Image.init()  # loads the readers of Pillow, once
    return [name for name in FORMATS if name in Image.OPEN]


def _silence_libtiff() -> None:
    """Keep libtiff from writing its errors to the terminal; ours say the same.

    `dlsym` also searches the libraries that Pillow's core was linked with. Where libtiff was linked in without its
    names, as on Windows, it is not found and stays as it is.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        core = ctypes.CDLL(_imaging.__file__)
        for name in ("TIFFSetErrorHandler", "TIFFSetWarningHandler"):
            set_handler = getattr(core, name)
            set_handler.argtypes, set_handler.restype = [ctypes.c_void_p], ctypes.c_void_p
            set_handler(None)


_return_memory()
_silence_libtiff()


def _upright(picture: Image.Image, mode: str) -> Image.Image:
    """Return a picture in mode "L" or "RGB", upright; grey levels of more than 8 bits stay as they are."""
    picture.load()  # a TIFF file is turned here, and its orientation removed
    orientation = picture.getexif().get(ORIENTATION, 1)
    if picture.mode.startswith("I") or picture.mode == "F":  # 16-bit grey; Pillow also opens it as 32-bit integers
        converted = picture
    else:
        converted = Image.new(mode, picture.size)
        for box in _strips(picture.size):
            converted.paste(_opaque(picture.crop(box)).convert(mode), box)
    return converted.transpose(TURNS[orientation]) if orientation in TURNS else converted


def _opaque(strip: Image.Image) -> Image.Image:
    """Return a part of a picture, with white in place of transparency."""
    if "A" not in strip.getbands() and "transparency" not in strip.info:
        return strip
    strip = strip.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", strip.size, "white"), strip)


def _stacked(planes: list[np.ndarray], shape: tuple[int, ...], background: str) -> np.ndarray:
    """Return the channels as an image of this shape; a single one is grey."""
    image = planes[0] if len(shape) == 2 else np.stack(planes * (3 // len(planes)), axis=2)
    return on_black(image[None])[0] if background == "to black" else image


def _strips(size: tuple[int, int]) -> Iterator[tuple[int, int, int, int]]:
    """Yield boxes (left, top, right, bottom) of whole rows that cover a picture from top to bottom."""
    width, height = size
    rows = max(1, STRIP // width)
    for top in range(0, height, rows):
        yield 0, top, width, min(top + rows, height)


def _fitted(grey: Image.Image, shape: tuple[int, ...], name, invert: bool, background: str) -> np.ndarray:
    """Return the levels of one band in [0, 1], scaled to `shape` with the aspect ratio kept."""
    height, width = shape
    scale = min(height / grey.height, width / grey.width)
    rows, columns = (max(1, round(scale * size)) for size in grey.size[::-1])
    if grey.width * grey.height <= WHOLE:
        strips, between = [(0, 0, *grey.size)], rows
    else:  # along the rows first, which agrees with scaling at once up to rounding
        strips, between = list(_strips(grey.size)), 0
    parts, ranges = [], []
    for box in strips:
        values = _levels(grey.crop(box))
        ranges.append((values.min(), values.max()))
        strip = Image.fromarray(1 - values if invert else values)
        parts.append(np.asarray(strip.resize((columns, between or strip.height), Image.Resampling.BILINEAR)))
    _check_levels(np.min(ranges), np.max(ranges), name)
    scaled = np.asarray(Image.fromarray(np.concatenate(parts)).resize((columns, rows), Image.Resampling.BILINEAR))
    fitted = np.full(shape, 0 if background == "black" else border_grey(scaled[None])[0], np.float32)
    top, left = (height - rows) // 2, (width - columns) // 2
    fitted[top : top + rows, left : left + columns] = scaled
    return fitted


def _levels(strip: Image.Image) -> np.ndarray:
    """Return the pixels as real numbers, 0 for black and 1 for white."""
    values = np.asarray(strip, dtype=np.float32)
    return values if strip.mode == "F" else values / np.float32(255.0 if strip.mode == "L" else GREY_LEVELS)


def _check_levels(low, high, name) -> None:
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ImageError(f"{name} has NaN or infinite pixels; save it with finite grey levels.")
    if low < 0 or high > 1:
        raise ImageError(f"{name} has pixels from {low:g} to {high:g}; scale them to [0, 1], or save 8 or 16 bits.")
