"""From the X of scikit-learn to images: rows of pixels, grey images or colour images."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from tigra.errors import TigraError, UsageError
from tigra.graph import check_shape
from tigra.images.colour import LUMA

FLOATS = [np.float64, np.float32]  # other types become the first


@contextlib.contextmanager
def value_errors() -> Iterator[None]:
    """Turn tigra's errors into ValueError, which scikit-learn expects."""
    try:
        yield
    except TigraError as error:
        raise ValueError(str(error)) from error


def read_rows(estimator: Any, X: Any, y: Any = "no_validation", reset: bool = False) -> Any:
    """Check X, and y if there is one.

    Parameters
    ----------
    estimator : BaseEstimator
        Gets `n_features_in_` and `image_shape_` if `reset` is True; otherwise X must agree with them.
    X : array-like (n, pixels), (n, height, width) or (n, height, width, 3)
        The images.
    y : array-like (n,)
        Their classes, by default none.
    reset : bool
        True in `fit`.

    Returns
    -------
    array (n, pixels), or the pair of it and y
        Pixels as float32 or float64, and the classes.
    """
    shape = tuple(X.shape) if hasattr(X, "shape") else np.asarray(X).shape
    if len(shape) in (3, 4):
        X = np.asarray(X).reshape(shape[0], math.prod(shape[1:]))
    if len(shape) == 4 and shape[3] != 3:
        raise UsageError(f"Colour images have shape (n, height, width, 3), got {shape}; grey ones (n, height, width).")
    checked = validate_data(estimator, X, y, reset=reset, dtype=FLOATS)
    if reset:
        estimator.image_shape_ = _image_shape(shape, estimator.n_features_in_, _given(estimator.image_shape))
    elif len(shape) > 2 and shape[1:] != estimator.image_shape_:
        raise UsageError(f"Expected images of shape {estimator.image_shape_}, as in fit, got {shape[1:]}; resize them.")
    return checked


def _given(image_shape: Any) -> tuple[int, ...] | None:
    """Return the parameter `image_shape` as a tuple or None."""
    try:
        return None if image_shape is None else tuple(image_shape)
    except TypeError as error:
        raise UsageError(f"image_shape must be (height, width) or (height, width, 3), got {image_shape!r}.") from error


def _image_shape(shape: tuple[int, ...], n_pixels: int, given: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return (height, width) or (height, width, 3) from the shape of X and the parameter `image_shape`."""
    if len(shape) > 2:
        if given not in (None, shape[1:]):
            raise UsageError(f"image_shape is {given}, but X has images of shape {shape[1:]}; leave it out.")
        return shape[1:]
    if given is not None:
        check_shape(given[:2])
        if given[2:] not in ((), (3,)) or math.prod(given) != n_pixels:
            raise UsageError(
                f"image_shape must be (height, width) or (height, width, 3) with {n_pixels} numbers in all, as in X,"
                f" got {given}."
            )
        return given
    side = math.isqrt(n_pixels)
    if side * side == n_pixels:
        return side, side
    warnings.warn(
        f"X has {n_pixels} features, which is no square number: each image is taken as one row of pixels. Give"
        " image_shape=(height, width), or X as (n, height, width).",
        stacklevel=4,
    )
    return 1, n_pixels


def as_images(rows: np.ndarray, image_shape: tuple[int, ...]) -> np.ndarray:
    """Return grey images (n, height, width) from rows of pixels (n, pixels).

    Examples
    --------
    >>> as_images(np.array([[10.0, 0.0, 0.0, 0.0, 10.0, 0.0]]), (1, 2, 3))  # a red and a green pixel
    array([[[2.99, 5.87]]])
    """
    images = rows.reshape(len(rows), *image_shape)
    return images if images.ndim == 3 else images.astype(np.float64) @ LUMA
