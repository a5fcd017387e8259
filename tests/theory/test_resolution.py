"""The resolution experiment: its numbers against the plain formula, its two claims, and its command."""

import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image
from scipy import ndimage
from tigra_cli.main import main

from tigra.errors import UsageError
from tigra.graph import grid_graph
from tigra.images.transforms import downsample
from tigra.theory import resolution
from tigra.theory.resolution import (
    ANGLES,
    FACTORS,
    SHIFTS,
    Protocol,
    band_limited_images,
    image_gaps,
    random_filters,
    run,
    summary,
)

SIDE = 264  # pixels: little more than the least


@pytest.fixture(scope="module")
def images():
    return band_limited_images(2, SIDE, seed=3)


@pytest.fixture(scope="module")
def gaps(images):
    return list(run(images, threads=2))


def tigra(*arguments, expect=0):
    result = CliRunner().invoke(main, ["equivariance", *map(str, arguments)])
    assert result.exit_code == expect, f"{result.output}\n{result.exception!r}"
    return result


def test_gap_grows_with_t_and_shifts_of_filters_and_cross_products_lie_below_rotations(gaps):
    for kind, curves in summary(gaps).items():
        rotations, shifts = ([point.mean for point in curves[name]] for name in ("rotation", "shift"))
        assert np.all(np.diff(rotations) > 0) and np.all(np.diff(shifts) > 0)
        assert np.all(np.array(shifts) < rotations) or kind == "dot"


def test_gap_is_the_mean_over_filters_of_the_printed_difference_with_absolute_values(images):
    """[eq:dist] one filter at a time, with dense loops over filters and SciPy's rotation and shift."""
    image, alpha, t = images[0], random_filters(1)[:3], 6
    y = downsample(image[None], t)[0]
    laplacian = grid_graph(y.shape).laplacian
    rows, columns = np.indices(y.shape) - (np.array(y.shape)[:, None, None] - 1) / 2
    nodes = np.hypot(rows, columns) <= SIDE // 6 / 2 - resolution.MARGIN

    def filtered(image, coefficients):
        total, power = 0, image.ravel()
        for coefficient in coefficients:
            total, power = total + coefficient * power, laplacian @ power
        return total.reshape(image.shape)

    def mean_gap(move):
        differences = [move(filtered(move(y, 1), a), -1) - filtered(y, a) for a in alpha]
        return np.mean([np.abs(difference[nodes]).mean() for difference in differences])

    expected = [
        [mean_gap(lambda z, sign, a=angle: ndimage.rotate(z, sign * a, reshape=False)) for angle in ANGLES],
        [mean_gap(lambda z, sign, s=shift: ndimage.shift(z, 2 * [sign * s])) for shift in SHIFTS],
    ]
    found = image_gaps(image, alpha)[0, FACTORS.index(t)]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_gap_of_products_is_the_same_difference_divided_by_their_mean_size(images, gaps):
    """With NumPy's gradients of slices and SciPy's rotation and shift."""
    t, side = 6, SIDE // 6
    y = downsample(images[0][None], t)[0]
    laplacian = grid_graph(y.shape, diagonal_weight=0.25).laplacian
    places = np.arange(side) - (side - 1) / 2
    nodes = np.hypot(places[:, None], places) <= side / 2 - resolution.MARGIN

    def gradients(image):
        x = np.pad(image, 1)
        rows = x[1:-1] + (x[:-2] + x[2:]) / 4  # three rows, then differences of columns
        columns = x[:, 1:-1] + (x[:, :-2] + x[:, 2:]) / 4
        return (rows[:, 2:] - rows[:, :-2]) / 3, (columns[2:] - columns[:-2]) / 3

    def products(image):
        a, b = gradients(image), gradients((laplacian @ image.ravel()).reshape(image.shape))
        return np.array([a[0] * b[0] + a[1] * b[1], a[0] * b[1] - a[1] * b[0]])

    def relative(move):
        back, still = [move(p, -1) for p in products(move(y, 1))], products(y)
        return [np.abs((b - s)[nodes]).mean() / np.abs(s[nodes]).mean() for b, s in zip(back, still, strict=True)]

    rotations = [relative(lambda z, sign, a=angle: ndimage.rotate(z, sign * a, reshape=False)) for angle in ANGLES]
    shifts = [relative(lambda z, sign, s=shift: ndimage.shift(z, 2 * [sign * s])) for shift in SHIFTS]
    expected = np.array([rotations, shifts]).transpose(2, 0, 1)
    np.testing.assert_allclose(gaps[0][1:, FACTORS.index(t)], expected, rtol=1e-6)


@pytest.mark.slow
def test_nothing_from_the_border_reaches_the_disc_but_the_whole_frame_feels_it():
    flat, alpha = np.full((SIDE, SIDE), 0.7), random_filters()
    inner, whole = (image_gaps(flat, alpha, Protocol(frame=frame)) for frame in ("inner", "whole"))
    assert (
        inner.max() < 1e-6 and not inner[1:].any()
    )  # a flat image has no gap but that of its border; the spline's tail is below 1e-6
    assert whole[0].min() > 1e-3


def test_threads_change_no_number_and_the_seed_changes_filters_and_images(images, gaps):
    np.testing.assert_array_equal(gaps, list(run(iter(images), threads=1)))
    assert not np.array_equal(random_filters(0), random_filters(1))
    assert not np.array_equal(band_limited_images(1, 64, 0), band_limited_images(1, 64, 1))
    assert np.abs(random_filters(0)).max() <= 1 and random_filters(0).shape == (20, 5)


def test_random_images_are_band_limited_and_in_range(images):
    assert images.min() == 0 and images.max() == 1
    spectrum = np.abs(np.fft.fft2(images - images.mean(axis=(1, 2), keepdims=True)))
    frequency = np.hypot(np.fft.fftfreq(SIDE)[:, None], np.fft.fftfreq(SIDE))
    assert spectrum[:, frequency > 1 / 16 + 1e-9].max() < 1e-9 * spectrum.max()


def test_amplitudes_of_random_images_fall_like_one_over_frequency(images):
    spectrum = np.abs(np.fft.fft2(images))
    frequency = np.hypot(np.fft.fftfreq(SIDE)[:, None], np.fft.fftfreq(SIDE))
    band = (frequency > 0) & (frequency <= 1 / 16)
    slope = np.polyfit(np.log(frequency[band]), np.log(spectrum[:, band]).mean(axis=0), 1)[0]
    assert slope == pytest.approx(-1, abs=0.2)  # four times its standard error


def test_disc_is_the_same_part_of_the_scene_at_every_t():
    for t in FACTORS:  # SIDE // 6 = 44 pixels at t = 6, 16 of them off each side: a radius of 6, or 36 / t
        side = SIDE // t
        places = np.arange(side) - (side - 1) / 2
        distances = np.hypot(places[:, None], places)
        np.testing.assert_array_equal(resolution._disc((SIDE, SIDE), t), distances <= 36 / t)


def test_summary_has_the_spread_over_images_and_the_mean_of_each_movement():
    gaps = np.zeros((2, 3, len(FACTORS), 2, 4))
    gaps[0, 1, :, 0], gaps[1, 1, :, 0] = [0, 1, 2, 3], [2, 3, 4, 5]  # rotations: images of 1.5 and 3.5
    gaps[:, :, 2] *= 10
    for point in summary(gaps)["dot"]["rotation"]:
        scale = 10 if point.factor == FACTORS[2] else 1
        assert (point.mean, point.spread) == (2.5 * scale, 1.0 * scale)
        assert point.each == {angle: scale * (1.0 + i) for i, angle in enumerate(ANGLES)}
    assert all(point.mean == point.spread == 0 for point in summary(gaps)["dot"]["shift"])
    assert all(point.mean == 0 for kind in ("filters", "cross") for point in summary(gaps)[kind]["rotation"])


def test_images_that_are_too_small_and_unknown_frames_are_refused(images):
    with pytest.raises(UsageError, match="at least 240 pixels"):
        image_gaps(np.zeros((300, 239)), random_filters())
    with pytest.raises(UsageError, match="inner"):
        image_gaps(images[0], random_filters(), Protocol(frame="outer"))


# --- the command --------------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch, images, gaps):
    """The command without --images, on small images that have been measured."""
    monkeypatch.setattr(resolution, "band_limited_images", lambda n, seed: images)
    monkeypatch.setattr(resolution, "run", lambda *_: iter(gaps))


@pytest.mark.slow
def test_command_prints_a_table_and_writes_numbers_and_figures(quick, tmp_path):
    pytest.importorskip("matplotlib", reason="figures need the extra 'figures'")
    result = tigra("--out", tmp_path / "a" / "b")
    lines = result.stdout.splitlines()
    assert lines[0] == "2 band-limited random images of 264x264 pixels, 20 filters of degree 4, seed 0"
    assert "nodes that no border reaches; cubic interpolation" in lines[1]
    assert lines[2].split() == ["t", "rotations", "shifts"] and [line[0] for line in lines[3:8]] == list("23456")
    assert lines[8] == "the gap grows at every step of t for rotations and shifts"
    assert lines[9] == "shifts lie below rotations at every t"
    assert "in % of the mean absolute product" in lines[10] and lines[11].split(", ")[-1].strip() == "shifts"
    assert [line[0] for line in lines[12:17]] == list("23456")
    written = json.loads((tmp_path / "a" / "b" / "equivariance.json").read_text())
    printed = json.loads(tigra("--out", tmp_path / "a" / "b", "--json").stdout)
    assert written == printed
    assert [point["t"] for point in printed["points"]] == list(FACTORS)
    for part in (printed["points"][0], printed["points"][0]["dot"], printed["points"][0]["cross"]):
        assert set(part["rotation"]["by_degrees"]) == {"10", "20", "30", "45"} and part["shift"]["mean"] > 0
    with Image.open(tmp_path / "a" / "b" / "equivariance.png") as picture:
        assert min(picture.size) > 500
    svg = (tmp_path / "a" / "b" / "equivariance.svg").read_bytes()
    assert b"Figure 11, fig:rotationresult" in svg  # matplotlib keeps each text as a comment
    assert svg.startswith(b"<?xml")
    tigra("--out", tmp_path / "c")
    assert (tmp_path / "c" / "equivariance.svg").read_bytes() == svg  # the same numbers, the same bytes


def test_command_measures_a_folder_and_says_what_it_leaves_out(tmp_path, images):
    for number, image in enumerate(images):
        Image.fromarray((255 * image[: 244 + 10 * number]).astype(np.uint8)).save(tmp_path / f"{number}.png")
    Image.fromarray(np.zeros((50, 50), np.uint8)).save(tmp_path / "small.png")
    (tmp_path / "note.txt").write_text("no picture")
    result = tigra("--images", tmp_path, "--json")
    content = json.loads(result.stdout)
    assert content["images"] == 2 and content["frame"] == "inner" and content["shifts_below_rotations"]
    assert "1 files are not pictures" in result.stderr and "1 pictures have fewer than 240" in result.stderr


@pytest.mark.parametrize(
    "rotations, shifts, sentence",
    [
        (True, True, "the gap grows at every step of t for rotations and shifts"),
        (True, False, "the gap grows at every step of t for rotations, but NOT for shifts"),
        (False, True, "the gap grows at every step of t for shifts, but NOT for rotations"),
        (False, False, "the gap does NOT grow at every step of t, neither for rotations nor for shifts"),
    ],
)
def test_command_speaks_of_both_curves(quick, monkeypatch, rotations, shifts, sentence):
    gaps = np.ones((1, 3, len(FACTORS), 2, 4))
    for number, grows in enumerate((rotations, shifts)):
        gaps[:, 0, :, number] *= np.arange(1.0, 6)[:, None] if grows else 1
    monkeypatch.setattr(resolution, "run", lambda *_: iter(gaps))
    assert sentence in tigra().stdout.splitlines()


def damage(path, how):
    """A JPEG or PNG that breaks off in the middle, or a TIFF whose grey levels go beyond 1."""
    image = np.random.default_rng(0).random((SIDE, SIDE)).astype(np.float32)
    if how == "bright.tiff":
        Image.fromarray(1000 * image).save(path / how)
        return
    Image.fromarray((255 * image).astype(np.uint8)).save(path / how)
    content = (path / how).read_bytes()
    (path / how).write_bytes(content[: len(content) // 2])


DAMAGED = ["a-cut.jpg", "bright.tiff", "z-cut.png"]  # before and after the sound one


def test_damaged_pictures_are_named_and_left_out_and_the_others_measured(tmp_path, images):
    Image.fromarray((255 * images[0]).astype(np.uint8)).save(tmp_path / "good.png")
    for name in DAMAGED:
        damage(tmp_path, name)
    result = tigra("--images", tmp_path, "--json")
    content = json.loads(result.stdout)
    assert content["images"] == 1 and len(content["notes"]) == 3
    for name in DAMAGED:
        assert any(name in note for note in content["notes"]) and f"{name}" in result.stderr
    assert "no pictures" not in result.stderr


def test_only_damaged_pictures_are_an_error_that_leaves_no_folder(tmp_path):
    (tmp_path / "pictures").mkdir()
    for name in DAMAGED:
        damage(tmp_path / "pictures", name)
    result = tigra("--images", tmp_path / "pictures", "--out", tmp_path / "out", expect=1)
    assert all(name in result.stderr for name in DAMAGED) and "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


def test_command_refuses_folders_without_pictures_and_missing_matplotlib(tmp_path, quick, monkeypatch):
    assert "no readable picture of at least 240x240" in tigra("--images", tmp_path, expect=1).stderr
    assert "does not exist" in tigra("--images", tmp_path / "nowhere", expect=2).stderr
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'tigra[figures]'" in tigra("--out", tmp_path / "x", expect=2).stderr
    assert not (tmp_path / "x").exists()


def test_a_stopped_run_keeps_what_was_measured(monkeypatch, quick, gaps):
    def interrupted(*_):
        yield gaps[0]
        raise KeyboardInterrupt

    monkeypatch.setattr(resolution, "run", interrupted)
    result = tigra(expect=130)
    assert "stopped after 1 of 2 images" in result.stderr and result.stdout.startswith("1 band-limited")
