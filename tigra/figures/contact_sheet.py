"""A contact sheet of a data set: classes in rows; training, upright and transformed test images side by side."""

from __future__ import annotations

import unicodedata

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from tigra.datasets.splits import Splits

SMALLEST_CELL = 48  # pixels; smaller images are enlarged by a whole number
GAP, BLOCK_GAP, HEAD = 2, 14, 28  # pixels between images, between blocks, above them
LONGEST_NAME = 18  # characters of a class name
MOST_CLASSES = 40  # rows


def contact_sheet(splits: Splits, columns: int = 6) -> Image.Image:
    """Draw sample images of a data set, with one row per class.

    Parameters
    ----------
    splits : Splits
        The data set.
    columns : int
        Number of images per class in each block. The blocks are training images, test images and, if the
        protocol transforms them, the same test images transformed.

    Returns
    -------
    PIL.Image.Image
    """
    blocks = {"train": splits.train, "test": splits.test_upright}
    if splits.transform:
        blocks = {"train": splits.train, "test, upright": splits.test_upright, "test, transformed": splits.test}
    font, is_plain = _font()
    class_names = [_shortened(name if not is_plain else _plain(name)) for name in splits.class_names[:MOST_CLASSES]]
    height, width = splits.image_shape[:2]
    scale = max(1, -(-SMALLEST_CELL // max(height, width)))
    left = GAP * 4 + max(int(font.getlength(name)) for name in class_names)
    block_width = columns * (width * scale + GAP) + BLOCK_GAP
    row_height = height * scale + GAP
    sheet = Image.new("L", (left + len(blocks) * block_width, HEAD + len(class_names) * row_height + GAP), 255)
    draw = ImageDraw.Draw(sheet)
    for row, name in enumerate(class_names):
        draw.text((GAP * 2, HEAD + row * row_height + (row_height - 18) // 2), name, fill=0, font=font)
    for place, (title, split) in enumerate(blocks.items()):
        start = left + place * block_width
        draw.text((start, 6), title, fill=0, font=font)
        for row in range(len(class_names)):
            places = np.flatnonzero(np.asarray(split.labels) == row)
            spread = places[np.unique(np.linspace(0, len(places) - 1, columns).astype(int))] if len(places) else places
            for column, image in enumerate(split.images[spread]):
                corner = start + column * (width * scale + GAP), HEAD + row * row_height
                sheet.paste(_enlarged(image, scale), corner)
    return sheet


def _font() -> tuple:
    """Return (font, whether it only has ASCII letters): DejaVu Sans if installed, else the default of Pillow."""
    try:
        return ImageFont.truetype("DejaVuSans.ttf", 14), False
    except OSError:
        return ImageFont.load_default(size=14), True


def _plain(name: str) -> str:
    """Return a name in ASCII letters, with ? for others.

    >>> _plain("Äpfel"), _plain("猫")
    ('Apfel', '?')
    """
    letters = unicodedata.normalize("NFKD", name)
    return "".join(c if c.isascii() else "?" for c in letters if not unicodedata.combining(c))


def _shortened(name: str) -> str:
    """Return a long name without its middle, as names often differ at the end."""
    half = (LONGEST_NAME - 3) // 2
    return name if len(name) <= LONGEST_NAME else f"{name[:half]}...{name[-half:]}"


def _enlarged(image: np.ndarray, scale: int) -> Image.Image:
    pixels = np.rint(255 * np.clip(image, 0, 1)).astype(np.uint8)
    return Image.fromarray(np.kron(pixels, np.ones((scale, scale), np.uint8)))
