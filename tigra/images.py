"""Picture files as arrays that a network takes."""

from __future__ import annotations

import warnings

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from tigra.errors import ImageError, UsageError


def read_image(path, shape: tuple[int, int], invert: bool = False) -> np.ndarray:
    """The picture in a file, grey, in [0, 1], as an array of `shape` (height, width).

    Any format that Pillow opens. Colours become grey levels, transparent pixels white (as a viewer
    would show them), the camera's orientation mark is obeyed, of an animation the first frame
    counts. A picture of another size is scaled to fit and centred on black: stretching it would
    not be an isometry.

    invert : for dark ink on light paper, where the network learned light on dark
    """
    height, width = shape
    if not all(isinstance(size, (int, np.integer)) and size >= 1 for size in (height, width)):
        raise UsageError(f"shape must be (height, width) in pixels, got {shape!r}.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as picture:
                grey = _grey(ImageOps.exif_transpose(picture))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ImageError(f"{path} is too large a picture to open safely: scale it down first.") from error
    except UnidentifiedImageError as error:
        raise ImageError(f"{path} is not a picture that can be read; give a PNG, JPEG or the like.") from error
    except OSError as error:
        raise ImageError(f"Cannot read {path}: {error.strerror or error}.") from error
    except Exception as error:  # Pillow's decoders raise almost anything on damaged files
        raise ImageError(f"{path} is damaged and cannot be read ({type(error).__name__}).") from error
    if not np.isfinite(grey).all():
        raise ImageError(f"{path} has NaN or infinite pixels; save it with ordinary grey levels.")
    if grey.min() < 0 or grey.max() > 1:
        raise ImageError(f"{path} has real-valued pixels from {grey.min():g} to {grey.max():g}; scale them to [0, 1].")
    fitted = _fitted(1 - grey if invert else grey, shape)
    return np.clip(fitted, 0.0, 1.0).astype(np.float64)


def _grey(picture: Image.Image) -> np.ndarray:
    """Pixels of a picture as real numbers, 0 black and 1 white."""
    if picture.mode.startswith("I"):  # 16-bit grey; Pillow also opens it as 32-bit integers
        return np.asarray(picture, dtype=np.float64) / 65535.0
    if picture.mode == "F":
        return np.asarray(picture, dtype=np.float64)
    if "A" in picture.getbands() or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    return np.asarray(picture.convert("L"), dtype=np.float64) / 255.0


def _fitted(grey: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    if grey.shape == tuple(shape):
        return grey
    height, width = shape
    picture = Image.fromarray(grey.astype(np.float32))
    scale = min(height / grey.shape[0], width / grey.shape[1])
    rows, columns = (max(1, round(scale * size)) for size in grey.shape)
    top, left = (height - rows) // 2, (width - columns) // 2
    fitted = np.zeros(shape)
    scaled = picture.resize((columns, rows), Image.Resampling.BILINEAR)
    fitted[top : top + rows, left : left + columns] = np.asarray(scaled)
    return fitted
