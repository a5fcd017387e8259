"""Colour: whether pictures have any, and the three maps in which a network sees it."""

from __future__ import annotations

import warnings

import numpy as np
from PIL import Image

from tigra.files.regular import open_regular
from tigra.options import Limits

LUMA = 0.299, 0.587, 0.114  # grey from red, green and blue, as Pillow converts
# Luminance, red against green, and blue against yellow. Grey images have zeros in the last two maps.
OPPONENTS = np.array([LUMA, (0.5, -0.5, 0.0), (-0.25, -0.25, 0.5)])
SIDE = 64  # pixels, at which the colour of a picture is looked at
COLOURFUL = 40  # of 255: difference of the channels beyond the noise of JPEG and the tint of old paper
LEAST_SHARE = 0.01  # of the pixels


def opponent_maps(images: np.ndarray) -> np.ndarray:
    """Return colour images (n, height, width, 3) as maps (n, 3, height, width): luminance and two opponent colours.

    Parameters
    ----------
    images : array of shape (n, height, width, 3)
        Red, green and blue.

    Returns
    -------
    array of shape (n, 3, height, width)
        Luminance, (red - green) / 2, and blue / 2 - (red + green) / 4.

    Examples
    --------
    >>> opponent_maps(np.array([[[[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]]])).round(3)
    array([[[[ 1.   ,  0.299]],
    <BLANKLINE>
            [[ 0.   ,  0.5  ]],
    <BLANKLINE>
            [[ 0.   , -0.25 ]]]])
    """
    red, green, blue = (images[..., channel] for channel in range(3))
    maps = [sum(float(w) * c for w, c in zip(row, (red, green, blue), strict=True)) for row in OPPONENTS]
    return np.stack(maps, axis=1).astype(images.dtype, copy=False)


def has_colour(path) -> bool | None:
    """Whether a picture file shows colours; None if it cannot be read.

    Parameters
    ----------
    path : path
        A picture file. It is read at a reduced size where the format allows that.

    Returns
    -------
    bool or None
        True if the channels of at least a hundredth of the pixels differ clearly.
    """
    from tigra.images.pictures import picture_formats

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with open_regular(path) as file, Image.open(file, formats=picture_formats()) as picture:
                if picture.width * picture.height > Limits.now().max_pixels:
                    return None
                picture.draft("RGB", (SIDE, SIDE))
                if picture.mode.startswith(("I", "F", "L", "1")) and picture.mode != "LAB":
                    return False
                seen = picture.convert("RGBA").resize((SIDE, SIDE), Image.Resampling.NEAREST)
    except Exception:  # `read_image` will report the error
        return None
    *colour, alpha = np.moveaxis(np.asarray(seen, dtype=np.int16), 2, 0)
    differs = (np.max(colour, axis=0) - np.min(colour, axis=0) > COLOURFUL) & (alpha > 0)
    return bool(differs.mean() >= LEAST_SHARE)
