"""Pictures that are drawn on the spot: letters, shapes and textures, upright or turned.

A turned picture is drawn turned, so that no pixel has to be invented for its corners. Angles are in degrees,
counter-clockwise. Everything is drawn larger and reduced, and random numbers come from the generator that is given.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from tigra.errors import UsageError

SIDE, ENLARGED = 32, 4  # pixels of a picture, and how much larger it is drawn

# --- letters --------------------------------------------------------------------------------------------------

LETTERS = "ABEFGJKPRT"  # none looks like another one that is turned
STYLES = "", "-Bold", "-Oblique", "-BoldOblique"
ITALICS = "", "-Bold", "-Italic", "-BoldItalic"
TRAINING_FONTS = (
    *(f"DejaVuSans{style}" for style in STYLES),
    *(f"DejaVuSerif{style}" for style in ITALICS),
    *(f"STIXGeneral{style}" for style in ("", "Bol", "Italic", "BolIta")),
)
TEST_FONTS = (*(f"DejaVuSansMono{style}" for style in STYLES), "cmb10", "cmr10", "cmss10", "cmti10", "cmtt10")


def draw_letter(letter: str, font: str, angle: float, rng: np.random.Generator) -> np.ndarray:
    """Dark ink on light paper, slightly stretched, sheared and moved."""
    side = SIDE * ENLARGED
    page = Image.new("L", (side, side), 0)
    left, top, right, bottom = _font(font).getbbox(letter)
    corner = (side - right - left) / 2, (side - bottom - top) / 2
    ImageDraw.Draw(page).text(corner, letter, fill=255, font=_font(font))
    height, width = rng.uniform(0.88, 1.08, 2)
    matrix = np.array([[width, rng.uniform(-0.12, 0.12)], [0, height]])
    moved = _turned(page, matrix, angle, ENLARGED * rng.uniform(-1.5, 1.5, 2))
    paper, ink = rng.uniform(190, 255), rng.uniform(0, 70)
    return _reduced(paper + (ink - paper) * moved / 255)


@cache
def _font(name: str) -> ImageFont.FreeTypeFont:
    try:
        import matplotlib
    except ImportError:
        raise UsageError("Letters need the fonts of matplotlib; install it with: pip install matplotlib") from None
    path = Path(matplotlib.get_data_path(), "fonts", "ttf", f"{name}.ttf")
    if not path.is_file():
        raise UsageError(f"matplotlib has no font {name}; install another version with: pip install -U matplotlib")
    return ImageFont.truetype(str(path), round(0.62 * SIDE * ENLARGED))


def _turned(page: Image.Image, matrix: np.ndarray, angle: float, shift) -> np.ndarray:
    """A page under a linear map and a rotation about its centre, then shifted, as real numbers."""
    turn = np.deg2rad(angle)
    rotation = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])  # y points down
    back = np.linalg.inv(rotation @ matrix)
    centre = np.array(page.size) / 2
    start = centre - back @ (centre + shift)
    data = (*back[0], start[0], *back[1], start[1])
    moved = page.transform(page.size, Image.Transform.AFFINE, data, Image.Resampling.BICUBIC)
    return np.asarray(moved, np.float64)


def _reduced(levels: np.ndarray) -> np.ndarray:
    """Means of blocks of pixels, as 8-bit grey levels."""
    side = len(levels) // ENLARGED
    means = levels.reshape(side, ENLARGED, side, ENLARGED).mean(axis=(1, 3))
    return np.clip(np.rint(means), 0, 255).astype(np.uint8)


# --- shapes ---------------------------------------------------------------------------------------------------


def _regular(corners: int, inner: float = 1.0) -> list[tuple[float, float]]:
    """A regular polygon, or a star if every other corner is nearer to the centre."""
    radii = [1.0, inner] if inner < 1 else [1.0]
    n_points = corners * len(radii)
    turns = [2 * np.pi * number / n_points - np.pi / 2 for number in range(n_points)]
    return [(radii[n % len(radii)] * np.cos(t), radii[n % len(radii)] * np.sin(t)) for n, t in enumerate(turns)]


_FLAG = [(-0.6, -0.8), (0.6, -0.8), (0.6, -0.1), (-0.1, -0.1), (-0.1, 0.8), (-0.6, 0.8)]
_CROSS = [(-0.3, -0.9), (0.3, -0.9), (0.3, -0.3), (0.9, -0.3), (0.9, 0.3), (0.3, 0.3)]
_ARC = [(np.cos(t), np.sin(t)) for t in np.linspace(0.15 * np.pi, 1.85 * np.pi, 40)]
_BITE = [(0.75 * np.cos(t) + 0.3, 0.75 * np.sin(t)) for t in np.linspace(1.75 * np.pi, 0.25 * np.pi, 40)]
SHAPES = {
    "triangle": _regular(3),
    "square": _regular(4),
    "star": _regular(5, 0.45),
    "cross": _CROSS + [(-x, -y) for x, y in _CROSS],
    "flag": _FLAG,
    "flag mirrored": [(-x, y) for x, y in _FLAG],
    "crescent": _ARC + _BITE,
    "half disc": [(np.cos(t), np.sin(t) - 0.4) for t in np.linspace(0, np.pi, 40)],
}


def draw_shape(name: str, angle: float, rng: np.random.Generator) -> np.ndarray:
    """A filled shape, lighter or darker than a grey background, with noise."""
    side = SIDE * ENLARGED
    page = Image.new("L", (side, side), 0)
    points = np.array(SHAPES[name]) * rng.uniform(0.85, 1.15, 2)
    points *= 0.42 * side * rng.uniform(0.65, 0.95) / np.hypot(*points.T).max()
    ImageDraw.Draw(page).polygon([(x, y) for x, y in points + side / 2], fill=255)
    moved = _turned(page, np.eye(2), angle + rng.uniform(-8, 8), ENLARGED * rng.uniform(-1.5, 1.5, 2))
    background = rng.uniform(0, 255)
    contrast = rng.uniform(70, 130) * (1 if background < 128 else -1)
    return _noisy(background + contrast * moved / 255, 6, rng)


def _noisy(levels: np.ndarray, deviation: float, rng: np.random.Generator) -> np.ndarray:
    """Reduced grey levels with noise."""
    reduced = _reduced(levels).astype(np.float64)
    return np.clip(np.rint(reduced + rng.normal(0, deviation, reduced.shape)), 0, 255).astype(np.uint8)


# --- textures -------------------------------------------------------------------------------------------------
# Functions of places (u, v) in pixels, and of a period; values about from -1 to 1.

Texture = Callable[[np.ndarray, np.ndarray, float], np.ndarray]


def _wave(u: np.ndarray, period: float) -> np.ndarray:
    return np.sin(2 * np.pi * u / period)


def _bricks(u: np.ndarray, v: np.ndarray, period: float) -> np.ndarray:
    row = np.floor(v / period)
    in_row, in_brick = v / period - row, (u / (2 * period) + 0.5 * (row % 2)) % 1
    return np.where((in_row < 0.2) | (in_brick < 0.1), -1.0, 0.6)


def _zigzag(u: np.ndarray, v: np.ndarray, period: float) -> np.ndarray:
    return _wave(v + 2 * period * np.abs((u / (2 * period)) % 1 - 0.5), period)


def _dots(u: np.ndarray, v: np.ndarray, period: float) -> np.ndarray:
    row = np.round(v / period)
    across = (u / period + 0.5 * (row % 2) + 0.5) % 1 - 0.5
    return np.where(np.hypot(across, v / period - row) < 0.3, 1.0, -0.6)


def _slanted(u: np.ndarray, v: np.ndarray, period: float) -> np.ndarray:
    """Rows of short strokes that lean to one side: not its own mirror image."""
    across, down = u / period % 1 - 0.5, v / (1.4 * period) % 1 - 0.5
    return np.where((np.abs(across - 0.6 * down) < 0.16) & (np.abs(down) < 0.38), 1.0, -0.5)


TEXTURES: dict[str, tuple[Texture, float]] = {  # and their usual period in pixels
    "narrow stripes": (lambda u, v, period: _wave(u, period), 4.5),
    "wide stripes": (lambda u, v, period: _wave(u, period), 8.5),
    "checks": (lambda u, v, period: np.sign(_wave(u, period) * _wave(v, period)), 9.0),
    "bricks": (_bricks, 5.0),
    "zigzag": (_zigzag, 6.0),
    "dots": (_dots, 6.5),
    "strokes": (_slanted, 6.0),
    "strokes mirrored": (lambda u, v, period: _slanted(-u, v, period), 6.0),
}


def draw_texture(name: str, angle: float, rng: np.random.Generator) -> np.ndarray:
    """A texture that fills the picture, of random place, period, brightness and contrast, with noise."""
    function, period = TEXTURES[name]
    places = (np.arange(SIDE * ENLARGED) + 0.5) / ENLARGED - SIDE / 2
    x, y = np.meshgrid(places, places)
    turn = np.deg2rad(angle + rng.uniform(-5, 5))
    u, v = np.cos(turn) * x - np.sin(turn) * y, np.sin(turn) * x + np.cos(turn) * y
    down, right = rng.uniform(0, 100, 2)
    values = function(u + right, v + down, period * rng.uniform(0.85, 1.15))
    return _noisy(rng.uniform(100, 155) + rng.uniform(40, 90) * values, 10, rng)
