"""Networks for colour images: three maps come in, classes of equal luminance are told apart."""

import numpy as np
import pytest

import tigra
from tigra.errors import ShapeError, UsageError
from tigra.images.colour import LUMA
from tigra.models.build import Plan
from tigra.options import BuildOptions

SHAPE = 12, 12, 3


@pytest.fixture(scope="module")
def equal_luminance():
    """Discs in two colours of the same luminance, on grey."""
    rng = np.random.default_rng(0)
    colours = np.array([[0.8, 0.3, 0.3], [0.3, 0.3 + 0.5 * LUMA[0] / LUMA[1], 0.3]])
    assert np.ptp(colours @ LUMA) < 1e-12
    labels, images = np.arange(40) % 2, np.full((40, *SHAPE), 0.5)
    for image, label in zip(images, labels, strict=True):
        top, left = rng.integers(1, 7, 2)
        image[top : top + 4, left : left + 4] = colours[label]
    return images, labels


@pytest.mark.slow
def test_equal_luminance_is_told_apart_and_survives_the_model_file(equal_luminance, tmp_path):
    images, labels = equal_luminance
    splits = (images[:28], labels[:28]), (images[28:34], labels[28:34])
    network = tigra.build_network("OC[4, 1]-S[2]-FC[8]", SHAPE, 2, background="border", batch_norm=True)
    list(tigra.fit(network, splits, epochs=12, batch_size=14, jitter=0.3))
    turned = tigra.images.transforms.rotate(images[34:], 30, background="border")
    assert (network.predict(turned) == labels[34:]).all()
    tigra.save(network, tmp_path / "colour.npz")
    again = tigra.load(tmp_path / "colour.npz")
    assert again.image_shape == SHAPE
    np.testing.assert_array_equal(again.scores(turned), network.scores(turned))
    with pytest.raises(ShapeError, match=r"\(n, 12, 12, 3\), got \(6, 12, 12\); the network was made for colour"):
        network.predict(turned[..., 0])


def test_the_maps_are_luminance_and_opponent_colours(equal_luminance):
    images, _ = equal_luminance
    colour, grey = (tigra.build_network("S[1]", shape, 2, dtype="float64", margin=1) for shape in (SHAPE, SHAPE[:2]))
    maps = colour.signal(colour.prepare(images)).values
    assert maps.shape == (3, 14 * 14, 40)
    np.testing.assert_allclose(maps[:1], grey.signal(grey.prepare(images @ LUMA)).values, atol=1e-15)
    red, green = maps[1].max(axis=0), maps[1].min(axis=0)
    assert (red[::2] > 0.2).all() and (green[1::2] < -0.1).all()
    with pytest.raises(ShapeError, match="convert them to grey"):
        grey.predict(images)


def test_a_plan_counts_the_channels():
    plans = [
        Plan.of(BuildOptions(architecture="OC[4, 1]-S[2]", image_shape=shape, n_classes=2))
        for shape in (SHAPE, SHAPE[:2])
    ]
    assert plans[0].n_parameters == plans[0].network().n_parameters > plans[1].n_parameters
    assert plans[0].cost.numbers > plans[1].cost.numbers
    for wrong in ((12, 12, 4), (12, 12, 3, 3), (12,)):
        with pytest.raises(UsageError, match="or \\(height, width, 3\\) for colour"):
            tigra.build_network("S[1]", wrong, 2)
    with pytest.raises(UsageError, match="background='auto' is for recipes"):
        tigra.build_network("S[1]", SHAPE, 2, background="auto")
