"""The paper's claim on real digits: isometries of the grid move maps and sets, and nothing else.

Everything is in float64, where scores may differ by the rounding of sums over nodes alone; the
active sets must map onto each other exactly.
"""

import numpy as np
import pytest

import tigra
from tigra.layers import DynamicPool

ARCHITECTURE = "SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]"
HOPS = 3 + 3 + 10  # of both filters and of the highest Chebyshev order
BLUR = 4  # pixels that a Gaussian of sigma 1 reaches

ISOMETRIES = {
    "90 degrees": lambda x: np.rot90(x, 1, axes=(1, 2)),
    "180 degrees": lambda x: np.rot90(x, 2, axes=(1, 2)),
    "270 degrees": lambda x: np.rot90(x, 3, axes=(1, 2)),
    "mirror image": lambda x: x[:, :, ::-1],
    "upside down": lambda x: x[:, ::-1, :],
    "transposition": lambda x: x.transpose(0, 2, 1),
}
SHIFTS = {"right": (0, 5), "down and left": (3, -4), "far up": (-6, 1)}

VARIANTS = {
    "paper's graph": {},
    "recipe": {"diagonal_weight": 0.25, "smoothing": 1.0},
    "free boundary": {"boundary": "free", "diagonal_weight": 0.3},
    "4 neighbours": {"neighbours": 4},
    "union": {"active_set": "union", "diagonal_weight": 0.25, "smoothing": 1.0},
    "full mixing": {"mixing": "full", "diagonal_weight": 0.25},
    "all beyond the paper": {
        "mixing": "gradients", "active_set": "all", "diagonal_weight": 0.25, "smoothing": 0.3, "deviation_floor": 0.01,
        "log_offset": 0.03, "background": "border", "diffusion": 1,
    },
}  # fmt: skip


def run(network, images):
    """Scores (n, C), and the active sets after each pooling as masks (K, n, H, W)."""
    signal, sets = network.signal(network.prepare(images)), []
    for layer in network.layers:
        signal = layer.forward(signal)
        if isinstance(layer, DynamicPool):
            maps = signal.active.transpose(0, 2, 1)
            sets.append(maps.reshape(len(maps), len(images), *network.image_shape))
    return signal.T, sets


def build(digits, shape, **options):
    """A network with random, well-scaled filters, whose statistics are standardised on the digits."""
    network = tigra.build_network(ARCHITECTURE, shape, 3, seed=1, dtype="float64", **options)
    rng = np.random.default_rng(2)
    for layer in network.layers:
        if "alpha" in layer.params:
            layer.params["alpha"] += 0.3 * rng.standard_normal(layer.params["alpha"].shape)
    network.calibrate(digits)
    return network


@pytest.mark.parametrize("variant", VARIANTS)
def test_rotated_and_mirrored_digits_get_the_same_scores_and_the_moved_active_sets(variant, mnist_012):
    digits = mnist_012.test_upright.images[:40]
    network = build(digits, (28, 28), **VARIANTS[variant])
    scores, sets = run(network, digits)
    assert np.abs(scores - scores.mean(axis=0)).max() > 0.1, "the scores must tell digits apart"
    for name, move in ISOMETRIES.items():
        moved_scores, moved_sets = run(network, np.ascontiguousarray(move(digits)))
        np.testing.assert_allclose(moved_scores, scores, atol=1e-9, rtol=0, err_msg=name)
        for before, after in zip(sets, moved_sets, strict=True):
            expected = np.array([move(maps) for maps in before])
            assert np.array_equal(after, expected), f"{name}: an active set changed"


@pytest.mark.slow
@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "free boundary"])
def test_shifted_digits_get_the_same_scores_and_the_shifted_active_sets(variant, mnist_012):
    margin = HOPS + BLUR + 6  # so wide that no response to a shifted digit reaches the border
    digits = np.pad(mnist_012.test_upright.images[:20], ((0, 0), (margin, margin), (margin, margin)))
    network = build(digits, digits.shape[1:], **VARIANTS[variant])
    scores, sets = run(network, digits)
    for name, shift in SHIFTS.items():
        moved_scores, moved_sets = run(network, np.roll(digits, shift, axis=(1, 2)))
        np.testing.assert_allclose(moved_scores, scores, atol=1e-9, rtol=0, err_msg=name)
        for before, after in zip(sets, moved_sets, strict=True):
            assert np.array_equal(after, np.roll(before, shift, axis=(2, 3))), f"{name}: an active set changed"


def test_digits_have_the_ties_that_make_the_rule_necessary(mnist_012):
    """Without ties the tests above would pass under any rule: with 'lowest index wins' they fail."""
    digits = mnist_012.test_upright.images[:40]
    network = build(digits, (28, 28))
    z = network.layers[0].forward(network.signal(network.prepare(digits))).values
    largest_first = -np.sort(-z, axis=1)
    assert np.mean(largest_first[:, 299] == largest_first[:, 300]) > 0.1

    def lowest_index_wins(signal):
        z = signal.values
        order = np.argsort(-z, axis=1, kind="stable")
        active = np.zeros(z.shape, bool)
        np.put_along_axis(active, order[:, :300], True, axis=1)
        return tigra.GraphSignal(z * active, active)

    network.layers[1].forward = lowest_index_wins
    turned = np.ascontiguousarray(np.rot90(digits, 1, axes=(1, 2)))
    assert np.abs(run(network, turned)[0] - run(network, digits)[0]).max() > 1e-6


def test_the_features_of_a_blank_image_and_of_a_plateau_are_defined(mnist_012):
    network = build(mnist_012.test_upright.images[:10], (28, 28))
    plateau = np.zeros((2, 28, 28))
    plateau[1, 5:25, 5:25] = 1.0  # 400 equal pixels, more than DP[300] may keep
    assert np.isfinite(network.features(plateau)).all()
    assert np.abs(network.features(plateau)[1]).max() > 0
