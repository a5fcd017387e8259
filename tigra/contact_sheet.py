"""A data set at a glance: classes in rows; training, upright and transformed test images side by side."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from tigra.splits import Splits

SMALLEST_CELL = 48  # pixels on the sheet; smaller images are enlarged by a whole number
GAP, BLOCK_GAP, HEAD = 2, 14, 28  # pixels between images, between blocks, above them
LONGEST_NAME = 18  # characters of a class name
MOST_CLASSES = 40  # rows


def contact_sheet(splits: Splits, columns: int = 6) -> Image.Image:
    """A picture with a row for each class, and in each block up to `columns` images from its whole range.

    The blocks are training images, test images, and, where the protocol transforms them, the same
    test images transformed.
    """
    blocks = {"train": splits.train, "test": splits.test_upright}
    if splits.transform:
        blocks = {"train": splits.train, "test, upright": splits.test_upright, "test, transformed": splits.test}
    class_names = [_shortened(name) for name in splits.class_names[:MOST_CLASSES]]
    height, width = splits.image_shape
    scale = max(1, -(-SMALLEST_CELL // max(height, width)))
    font = ImageFont.load_default(size=14)
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


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 3] + "..."


def _enlarged(image: np.ndarray, scale: int) -> Image.Image:
    pixels = np.rint(255 * np.clip(image, 0, 1)).astype(np.uint8)
    return Image.fromarray(np.kron(pixels, np.ones((scale, scale), np.uint8)))
