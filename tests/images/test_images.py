"""Picture files of many kinds become grey arrays of the model's size."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from tigra import ImageError, UsageError, read_image
from tigra.images import pictures
from tigra.images.pictures import picture_size
from tigra.images.transforms import resize


@pytest.fixture
def ramp():
    """An 8x8 picture, dark at the left, light at the right."""
    return np.tile(np.arange(8, dtype=np.uint8) * 32, (8, 1))


def test_grey_pictures_come_out_as_they_are(tmp_path, ramp):
    Image.fromarray(ramp).save(tmp_path / "grey.png")
    np.testing.assert_allclose(read_image(tmp_path / "grey.png", (8, 8)), ramp / 255.0, rtol=1e-12)
    np.testing.assert_allclose(read_image(tmp_path / "grey.png", (8, 8), invert=True), 1 - ramp / 255.0, atol=1e-12)


@pytest.mark.parametrize(
    "mode, suffix", [("RGB", "png"), ("RGBA", "png"), ("LA", "png"), ("P", "png"), ("P", "gif"), ("RGB", "bmp")]
)
def test_colour_palette_and_alpha_become_grey(tmp_path, ramp, mode, suffix):
    path = tmp_path / f"picture.{suffix}"
    colour = Image.fromarray(ramp).convert("RGB")
    (colour.quantize(16) if mode == "P" else colour.convert(mode)).save(path)
    np.testing.assert_allclose(read_image(path, (8, 8)), ramp / 255.0, atol=1e-12)


def test_sixteen_bit_pictures_use_their_whole_range(tmp_path, ramp):
    Image.fromarray(ramp.astype(np.uint16) * 257).save(tmp_path / "deep.png")
    np.testing.assert_allclose(read_image(tmp_path / "deep.png", (8, 8)), ramp / 255.0, atol=1e-4)


def test_transparent_pixels_are_white(tmp_path):
    Image.new("RGBA", (4, 4), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    assert np.all(read_image(tmp_path / "clear.png", (4, 4)) == 1)


def test_camera_orientation_is_obeyed(tmp_path, ramp):
    exif = Image.Exif()
    exif[0x0112] = 3  # turned by 180 degrees
    Image.fromarray(ramp).save(tmp_path / "turned.png", exif=exif)
    np.testing.assert_allclose(read_image(tmp_path / "turned.png", (8, 8)), ramp[::-1, ::-1] / 255.0, rtol=1e-12)


def test_first_frame_of_an_animation_counts(tmp_path):
    frames = [Image.new("L", (4, 4), level) for level in (255, 0)]
    frames[0].save(tmp_path / "moving.gif", save_all=True, append_images=frames[1:])
    assert read_image(tmp_path / "moving.gif", (4, 4)).min() > 0.99


def test_other_sizes_are_fitted_not_stretched(tmp_path):
    Image.new("L", (40, 20), 255).save(tmp_path / "wide.png")
    fitted = read_image(tmp_path / "wide.png", (10, 10))
    assert fitted.shape == (10, 10)
    np.testing.assert_allclose(fitted[3:7], 1, atol=1e-6)  # float32 inside Pillow
    assert np.all(fitted[:2] == 0) and np.all(fitted[8:] == 0)


@pytest.mark.parametrize("size", [(1, 1), (1, 300), (3000, 2)])
def test_tiny_and_long_pictures_work(tmp_path, size):
    Image.new("L", size, 128).save(tmp_path / "odd.png")
    assert np.isfinite(read_image(tmp_path / "odd.png", (9, 9))).all()


def test_text_truncated_missing_and_folders_are_refused_in_one_sentence(tmp_path, ramp):
    (tmp_path / "note.png").write_text("not a picture")
    (tmp_path / "phone.HEIC").write_text("not a picture that Pillow knows")
    Image.fromarray(np.tile(ramp, (20, 20))).save(tmp_path / "whole.jpg")
    (tmp_path / "half.jpg").write_bytes((tmp_path / "whole.jpg").read_bytes()[:400])
    for name, message in {
        "note.png": "not a picture",
        "phone.HEIC": "is a HEIC picture, which cannot be read; convert it to JPEG",
        "half.jpg": "half.jpg",
        "none.png": "No such file",
        "": "Cannot read",
    }.items():
        with pytest.raises(ImageError, match=message) as caught:
            read_image(tmp_path / name, (8, 8))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value, message", [(np.nan, "NaN"), (np.inf, "infinite"), (200.0, r"scale them to \[0, 1\]")])
def test_real_valued_pictures_must_be_finite_and_in_range(tmp_path, value, message):
    pixels = np.zeros((4, 4), np.float32)
    pixels[1, 1] = value
    Image.fromarray(pixels).save(tmp_path / "real.tiff")
    with pytest.raises(ImageError, match=message):
        read_image(tmp_path / "real.tiff", (4, 4))


def test_pictures_beyond_the_limit_are_refused_unless_it_is_raised(tmp_path, monkeypatch):
    Image.new("L", (200, 200)).save(tmp_path / "large.png")
    monkeypatch.setenv("TIGRA_MAX_PIXELS", "39999")
    with pytest.raises(ImageError, match=r"large.png is too large: it has 200x200 pixels.*TIGRA_MAX_PIXELS to 40000"):
        read_image(tmp_path / "large.png", (8, 8))
    monkeypatch.setenv("TIGRA_MAX_PIXELS", "40000")
    assert read_image(tmp_path / "large.png", (8, 8)).shape == (8, 8)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10_000)  # Pillow itself refuses twice as many
    with pytest.raises(ImageError, match="too large"):
        read_image(tmp_path / "large.png", (8, 8))
    monkeypatch.undo()
    monkeypatch.setenv("TIGRA_MAX_PIXELS", "many")
    with pytest.raises(UsageError, match="TIGRA_MAX_PIXELS must be a whole number of pixels"):
        read_image(tmp_path / "large.png", (8, 8))


@pytest.mark.parametrize("mode", ["L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_large_pictures_are_converted_strip_by_strip(tmp_path, monkeypatch, mode):
    rng = np.random.default_rng(0)
    if mode == "I;16":
        picture = Image.fromarray(rng.integers(0, 65536, (60, 41)).astype(np.uint16))
    else:
        picture = Image.fromarray(rng.integers(0, 256, (60, 41, 4)).astype(np.uint8))
        picture = picture.convert("RGB").quantize(16) if mode == "P" else picture.convert(mode)
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    picture.save(tmp_path / "large.png", exif=exif, **({"transparency": 3} if mode == "P" else {}))
    at_once = read_image(tmp_path / "large.png", (20, 30))
    monkeypatch.setattr(pictures, "STRIP", 200)
    np.testing.assert_array_equal(read_image(tmp_path / "large.png", (20, 30)), at_once)
    monkeypatch.setattr(pictures, "WHOLE", 100)
    np.testing.assert_allclose(read_image(tmp_path / "large.png", (20, 30)), at_once, atol=1.1 / pictures.GREY_LEVELS)


def test_large_pictures_are_decoded_one_at_a_time(tmp_path, monkeypatch):
    Image.new("L", (40, 40), 255).save(tmp_path / "large.png")
    together, most = [], []

    def upright(picture, mode):
        together.append(1)
        most.append(len(together))
        time.sleep(0.01)
        together.pop()
        return picture.copy()

    monkeypatch.setattr(pictures, "_upright", upright)
    for limit, expected in ((1600 * 4, 4), (1600, 1), (100, 1)):
        monkeypatch.setattr(pictures, "AT_ONCE", limit)
        most.clear()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: read_image(tmp_path / "large.png", (4, 4)), range(8)))
        assert max(most) <= expected and len(most) == 8


def test_libtiff_writes_nothing_to_the_terminal(tmp_path, capfd):
    Image.new("L", (60, 60), 90).save(tmp_path / "whole.tiff", compression="tiff_lzw")
    content = bytearray((tmp_path / "whole.tiff").read_bytes())
    start = content.index(b"\x80")  # the first code of LZW, after the header
    content[start : start + 20] = bytes(20)
    (tmp_path / "broken.tiff").write_bytes(content)
    with pytest.raises(ImageError, match="damaged"):
        read_image(tmp_path / "broken.tiff", (8, 8))
    assert capfd.readouterr() == ("", "")


def test_pictures_are_scaled_by_means_of_all_their_pixels(tmp_path, rng):
    """As `tigra.images.transforms.resize` does it; picking single pixels would differ."""
    pixels = rng.integers(0, 256, (64, 64), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "large.png")
    expected = resize(pixels[None] / 255.0, (20, 20))[0]
    np.testing.assert_allclose(read_image(tmp_path / "large.png", (20, 20)), expected, atol=2e-5)  # 16-bit levels


def test_the_size_of_a_picture_is_that_after_turning_it_as_the_camera_says(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("L", (30, 20)).save(tmp_path / "lying.jpg", exif=exif)
    Image.new("L", (30, 20)).save(tmp_path / "plain.jpg")
    (tmp_path / "note.jpg").write_text("text")
    sizes = [picture_size(tmp_path / f"{name}.jpg") for name in ("lying", "plain", "note", "none")]
    assert sizes == [(30, 20), (20, 30), None, None]
    assert read_image(tmp_path / "lying.jpg", (30, 20)).shape == (30, 20)


def test_formats_that_start_other_programs_are_not_read(tmp_path):
    (tmp_path / "figure.eps").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n")
    with pytest.raises(ImageError, match="not a picture"):
        read_image(tmp_path / "figure.eps", (8, 8))


def test_a_lack_of_memory_is_not_called_damage(tmp_path, ramp, monkeypatch):
    Image.fromarray(ramp).save(tmp_path / "grey.png")
    monkeypatch.setattr("tigra.images.pictures._upright", lambda *_: (_ for _ in ()).throw(MemoryError()))
    with pytest.raises(MemoryError):
        read_image(tmp_path / "grey.png", (8, 8))


def test_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(ImageError, match="not a regular file"):
        read_image(tmp_path / "pipe.png", (8, 8))
    assert picture_size(tmp_path / "pipe.png") is None
