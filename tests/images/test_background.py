"""The background of pictures: found, continued when they are moved or framed, and subtracted."""

import numpy as np
import pytest
from PIL import Image

from tigra import read_image
from tigra.errors import ShapeError, UsageError
from tigra.images.background import border_grey, find_background, less_border, on_black
from tigra.images.colour import has_colour, opponent_maps
from tigra.images.store import TurnedImages
from tigra.images.transforms import random_shifts, rotate, translate


@pytest.fixture
def dark_on_light(rng):
    """Pictures with a light border of different colours and a dark thing inside."""
    images = np.broadcast_to(rng.uniform(0.6, 0.9, (5, 1, 1, 3)), (5, 12, 12, 3)).copy()
    images[:, 4:9, 3:8] = rng.uniform(0, 0.3, (5, 5, 5, 3))
    return images


@pytest.mark.parametrize("interpolation", ["cubic", "linear"])
def test_moved_pictures_continue_their_background(dark_on_light, interpolation, rng):
    images, angles = dark_on_light, np.array([0.0, 45, 90, 200, 359])
    turned = rotate(images, angles, interpolation, background="border")
    shifted = random_shifts(images, rng, 3, whole=False, interpolation=interpolation, background="border")
    for moved in (turned, shifted, translate(images, (2, -2), background="border")):
        corners = moved[:, [0, 0, -1, -1], [0, -1, 0, -1]]
        np.testing.assert_allclose(corners, np.repeat(border_grey(images)[:, None], 4, axis=1), atol=0.05)
        assert moved.min() > -1e-12 and moved.max() < 1 + 1e-12
    np.testing.assert_array_equal(turned[2], np.rot90(images[2]))
    np.testing.assert_array_equal(TurnedImages(images, angles, interpolation, "border")[:], turned)
    by_channel = [rotate(images[..., c], angles, interpolation, background="border") for c in range(3)]
    np.testing.assert_array_equal(turned, np.stack(by_channel, axis=3))
    assert rotate(images, 45, interpolation)[:, 0, 0].max() == 0, "black enters unless the background is asked for"


def test_the_background_is_found_and_subtracted(dark_on_light):
    assert find_background(dark_on_light) == "border"
    assert find_background(less_border(dark_on_light)) == "black"
    assert find_background(np.full((3, 5, 5, 3), 0.7)) == "black", "nothing would be left of plain pictures"
    black = on_black(dark_on_light)
    assert border_grey(black).max() == 0 and black[:, 4:9, 3:8].min() > 0.2
    np.testing.assert_array_equal(on_black(black), black)
    with pytest.raises(UsageError, match="background must be 'black' or 'border', got 'white'"):
        rotate(dark_on_light, 45, background="white")
    with pytest.raises(ShapeError, match="or \\(n, height, width, 3\\)"):
        rotate(np.zeros((2, 4, 4, 2)), 45)


def test_pictures_of_any_aspect_are_framed_with_their_background(tmp_path):
    picture = Image.new("RGB", (40, 10), (200, 100, 50))
    picture.paste((0, 0, 0), (10, 3, 30, 7))
    picture.save(tmp_path / "wide.png")
    read = read_image(tmp_path / "wide.png", (20, 20, 3), background="border")
    np.testing.assert_allclose(read[[0, 0, -1], [0, -1, 0]], np.array([[200, 100, 50]] * 3) / 255, atol=1e-4)
    assert read_image(tmp_path / "wide.png", (20, 20)).min(axis=1).tolist()[0] == 0
    grey = read_image(tmp_path / "wide.png", (20, 20), background="to black")
    assert grey[0].max() == 0 and grey[10, 10] > 0.2, "dark on light becomes light on black"
    with pytest.raises(UsageError, match="one of black, border, to black"):
        read_image(tmp_path / "wide.png", (20, 20), background="grey")
    with pytest.raises(UsageError, match="Colour images have shape"):
        read_image(tmp_path / "wide.png", (20, 20, 4))


def test_pictures_have_colour_if_their_channels_differ(tmp_path, rng):
    grey = rng.integers(0, 256, (30, 30), dtype=np.uint8)
    Image.fromarray(grey).save(tmp_path / "grey.jpg")
    Image.fromarray(grey).convert("RGB").save(tmp_path / "grey_rgb.jpg")
    Image.fromarray(grey).convert("RGBA").save(tmp_path / "grey_rgba.png")
    Image.fromarray(np.stack([grey, grey, 255 - grey], axis=2)).save(tmp_path / "colour.jpg")
    (tmp_path / "text.png").write_text("no picture")
    found = {path.stem: has_colour(path) for path in tmp_path.iterdir()}
    assert found == {"grey": False, "grey_rgb": False, "grey_rgba": False, "colour": True, "text": None}
    read = read_image(tmp_path / "grey.jpg", (30, 30, 3))
    np.testing.assert_array_equal(read[..., 0], read_image(tmp_path / "grey.jpg", (30, 30)))
    assert np.abs(opponent_maps(read[None])[:, 1:]).max() < 1e-12
