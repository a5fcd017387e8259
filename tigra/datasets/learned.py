"""Which pictures a model was trained on, in a form that is small enough for a model file, so that none is tested.

A picture is known by the first 8 bytes of the BLAKE2b hash of its decoded pixels: 16-bit levels at one size, the
source's own for MNIST and the size of the network's images for all others. Names, formats and folders do not matter. A
picture that was scaled, compressed or edited counts as another one. 50,000 digits take 400 kB. The chance that one of
10,000 other pictures is taken for one of them is 3e-11.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tigra.images.pictures import GREY_LEVELS
from tigra.images.stored_pixels import pixel_digest

N_DIGITS = 16  # hexadecimal ones: 8 bytes
AT_ONCE = 1024  # images


class Learned:
    """Pictures of training and validation.

    Parameters
    ----------
    numbers : array of uint64
        One for each picture, in any order.
    shape : (int, int) or (int, int, 3)
        Height and width at which the pictures were decoded, and 3 if in colour.
    """

    def __init__(self, numbers, shape: tuple[int, ...]):
        self.numbers = np.unique(np.asarray(numbers, np.uint64))
        self.shape = tuple(int(size) for size in shape)

    @classmethod
    def of_digests(cls, digests: Iterable[str], shape: tuple[int, ...]) -> Learned:
        """From hashes of pixels, as in `tigra.images.store.ImageStore`."""
        return cls([int(digest[:N_DIGITS], 16) for digest in digests], shape)

    @classmethod
    def of_images(cls, *parts) -> Learned:
        """From grey or colour images in [0, 1], or bytes from 0 to 255; arrays or LazyImages."""
        return cls.of_digests([digest for images in parts for digest in image_digests(images)], parts[0].shape[1:])

    def contains(self, digests: Sequence[str]) -> np.ndarray:
        """Whether each of the pictures with these hashes was learned."""
        return np.isin(np.array([int(digest[:N_DIGITS], 16) for digest in digests], np.uint64), self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def __eq__(self, other) -> bool:
        return isinstance(other, Learned) and (
            self.shape == other.shape and np.array_equal(self.numbers, other.numbers)
        )

    __hash__ = None  # type: ignore[assignment]


def image_digests(images) -> list[str]:
    """Return the hash of each image, as of a decoded picture."""
    starts = range(0, len(images), AT_ONCE)
    return [pixel_digest(levels) for start in starts for levels in _levels(images[start : start + AT_ONCE])]


def _levels(images: np.ndarray) -> np.ndarray:
    """Return images as 16-bit grey levels, as pictures are decoded."""
    if images.dtype == np.uint8:
        return images.astype("<u2") * np.uint16(GREY_LEVELS // 255)
    return np.rint(np.clip(images, 0, 1).astype(np.float64) * GREY_LEVELS).astype("<u2")
