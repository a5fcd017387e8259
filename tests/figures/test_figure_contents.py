"""What figures show, read back from what was drawn, of a network that was moved away from its start."""

import numpy as np
import pytest

import tigra
from tigra import figures
from tigra.figures import animation
from tigra.figures.canvas import new_figure
from tigra.figures.exhibit import exhibit
from tigra.figures.inspection import chebyshev_signals, filter_banks, full_turn, in_training_units, steps
from tigra.figures.oriented.mirroring import mirror_changes, products
from tigra.graph.orientation import cross, dot
from tigra.images.transforms import rotate
from tigra.theory.fourier import polynomial_response

pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'tigra[figures]'")
pytestmark = pytest.mark.slow
ARCHITECTURE = "SC[2, 2]-DP[60]-SC[3, 2]-DP[30]-S[3]-FC[8]"
NAMES = ["nought", "one", "two"]


def start():
    return tigra.build_network(ARCHITECTURE, (14, 14), 3, margin=1)


@pytest.fixture(scope="module")
def moved(small_splits):
    """No two things that figures could mix up are equal: learned and start, upright and rotated, true and predicted."""
    network, rng = start(), np.random.default_rng(1)
    network.calibrate(small_splits.train.images)
    for layer in network.layers:
        for values in layer.params.values():
            values += 0.3 * rng.standard_normal(values.shape).astype(values.dtype)
    network.class_names = NAMES
    shown = exhibit(network, small_splits)
    assert (shown.predicted != shown.predicted_upright).any() and (shown.confusion != shown.confusion.T).any()
    return shown


def table(figure, n_rows, n_columns):
    """The images of a sheet of tiles, row by row from the top, each row from the left."""
    (axes,) = figure.axes
    placed = [(-round(y1, 3), round(x0, 3), image) for image in axes.images for x0, _, _, y1 in [image.get_extent()]]
    in_order = [image for *_, image in sorted(placed, key=lambda entry: entry[:2])]
    return [in_order[row * n_columns : (row + 1) * n_columns] for row in range(n_rows)]


def word_on(image):
    """What stands in the lower right corner of a tile."""
    _, x1, y0, _ = image.get_extent()
    (word,) = [
        text.get_text() for text in image.axes.texts if np.allclose(text.get_position(), (x1 - 0.025, y0 + 0.025))
    ]
    return word


def test_the_confusion_matrix_has_true_classes_in_rows_and_predicted_ones_in_columns(moved):
    axes = figures.draw(moved, "confusion")[0].axes[0]
    predicted, labels = moved.network.predict(moved.test.images), moved.test.labels
    for text in axes.texts:
        column, row = text.get_position()
        assert int(text.get_text()) == ((labels == row) & (predicted == column)).sum()
    assert len(axes.texts) == 9 and (axes.get_xlabel(), axes.get_ylabel()) == ("predicted", "true")
    for axis in (axes.xaxis, axes.yaxis):
        assert [label.get_text() for label in axis.get_ticklabels()] == NAMES and list(axis.get_ticklocs()) == [0, 1, 2]
    shares = [[((labels == r) & (predicted == c)).sum() / (labels == r).sum() for c in range(3)] for r in range(3)]
    np.testing.assert_allclose(axes.images[0].get_array(), 100 * np.array(shares), atol=1e-12)
    assert axes.yaxis_inverted(), "the first row is on top"


def test_dashed_lines_are_start_values_and_solid_ones_what_was_learned(moved):
    figure, _ = figures.draw(moved, "filters")
    for axes, place in zip(figure.axes, (0, 2), strict=True):
        lines = [line for line in axes.get_lines() if len(line.get_xdata()) > 2]
        assert [line.get_linestyle() for line in lines] == ["-", "--"] * (len(lines) // 2)
        for network, drawn in ((moved.network, lines[::2]), (start(), lines[1::2])):
            expected = polynomial_response(network.layers[place].params["alpha"], lines[0].get_xdata())
            np.testing.assert_allclose([line.get_ydata() for line in drawn], expected, atol=1e-12)
        assert np.abs(lines[0].get_ydata() - lines[1].get_ydata()).max() > 0.01


def test_every_test_image_has_the_class_that_is_named_for_it(moved):
    figure, _ = figures.draw(moved, "labels")
    upright, tested = (moved.network.predict(split.images) for split in (moved.upright, moved.test))
    blocks = table(figure, 4, 10)  # two full ones: upright, as tested, upright, as tested
    for rows, split, predicted in ((blocks[::2], moved.upright, upright), (blocks[1::2], moved.test, tested)):
        tiles = [tile for row in rows for tile in row]
        assert len(tiles) == 20
        for number, tile in enumerate(tiles):
            np.testing.assert_array_equal(tile.get_array(), split.images[number])
            name, is_right = NAMES[predicted[number]], predicted[number] == split.labels[number]
            assert word_on(tile) == (name if is_right else f"✗ {name}")


def test_pooled_maps_are_drawn_on_their_active_nodes_only(moved):
    figure, _ = figures.draw(moved, "pooling")
    numbers = moved.one_of_each_class(4)
    taken = [step for step in steps(moved.network, moved.test.images[numbers], 2) if step.name.startswith("DP")]
    rows = table(figure, 3, 7)
    for first, step in ((1, taken[0]), (4, taken[1])):
        for row in range(3):
            for place in range(2):
                tile = rows[row][first + place]
                np.testing.assert_array_equal(np.ma.getmaskarray(tile.get_array()), ~step.active[row, place])
                on = step.active[row, place]
                np.testing.assert_array_equal(tile.get_array().data[on], step.values[row, place][on])
                assert word_on(tile) == str(on.sum())
            assert word_on(rows[row][first + 2]) == str((step.counts[row] > 0).sum())


def test_in_the_active_sets_white_means_none_and_no_count_is_grey(moved):
    figure, caption = figures.draw(moved, "pooling")
    numbers = moved.one_of_each_class(4)
    taken = [step for step in steps(moved.network, moved.test.images[numbers], 2) if step.name.startswith("DP")]
    *rows, scales = table(figure, 4, 7)
    for column, step in ((3, taken[0]), (6, taken[1])):
        for row, counts in enumerate(step.counts):
            drawn = rows[row][column].get_array()
            np.testing.assert_array_equal(np.ma.getmaskarray(drawn), counts == 0)
            np.testing.assert_array_equal(drawn.filled(0), counts)
    for scale, n_maps in zip(scales, (2, 3), strict=True):
        np.testing.assert_array_equal(scale.get_array().filled(0), [range(n_maps + 1)])
        none, *some = scale.to_rgba(scale.get_array())[0, :, :3]
        assert (none == 1).all() and min(np.ptp(colour) for colour in some) > 0.2
    assert "none (white)" in caption and [text.get_text() for text in figure.axes[0].texts].count("maps") == 2


def test_rows_of_rotations_are_maps_of_the_rotated_images(moved):
    figure, _ = figures.draw(moved, "rotations")
    turned = rotate(np.repeat(moved.subject_image[None], 8, axis=0), np.arange(0, 360, 45))
    predicted, truth = moved.network.predict(turned), moved.upright.labels[moved.subject]
    (image,) = table(figure, 1, 8)
    for tile, label in zip(image, predicted, strict=True):
        assert word_on(tile) == ("" if label == truth else "✗ ") + NAMES[label]
    first = next(step for step in steps(moved.network, turned) if step.name.startswith("SC"))
    tiles = [tile for tile in figure.axes[0].images if tile not in image and tile.get_array().shape == (16, 16)]
    np.testing.assert_array_equal([tile.get_array() for tile in tiles[:8]], first.values[:, 0])


def test_moments_of_the_turned_image_are_its_own(moved):
    figure, _ = figures.draw(moved, "statistics")
    upright = chebyshev_signals(moved.network, moved.subject_image)
    turned = chebyshev_signals(moved.network, rotate(moved.subject_image[None], 30.0)[0])
    for moment, axes in enumerate(figure.subfigs[1].axes):
        *lines, _ = axes.get_lines()  # the last is for the legend
        assert [line.get_linestyle() for line in lines] == ["-", "--"] * 3
        for drawn, expected in ((lines[::2], upright), (lines[1::2], turned)):
            values = np.array([line.get_ydata() for line in drawn])
            np.testing.assert_allclose(values, expected.moments[:, :, moment], rtol=1e-12)
        assert np.abs(lines[0].get_ydata() / lines[1].get_ydata() - 1).max() > 1e-4


def test_probabilities_over_a_turn_are_those_of_the_turned_images(moved):
    figure, _ = figures.draw(moved, "turn")
    expected = full_turn(moved.network, moved.subject_image)
    lines = [line for line in figure.axes[2].get_lines() if len(line.get_xdata()) > 2]
    np.testing.assert_allclose([line.get_ydata() for line in lines], expected.probabilities.T, atol=1e-12)
    assert [line.get_label() for line in lines] == NAMES and np.ptp(expected.probabilities, axis=0).max() > 1e-3


def test_everything_in_the_animation_moves(moved, monkeypatch):
    made = []
    monkeypatch.setattr(animation, "new_figure", lambda *a, **k: made.append(new_figure(*a, **k)) or made[-1])
    turned = full_turn(moved.network, moved.subject_image, n_angles=8)
    pooled = [step for step in steps(moved.network, turned.images[:-1], 1) if step.name.startswith("DP")]
    shown = animation.panels(moved.network, turned.images[:-1])
    panels = []
    with figures.drawing():
        for frame, pixels in enumerate(animation._frames(moved, turned, shown)):
            image, *maps, bars = made[0].axes
            np.testing.assert_allclose([bar.get_width() for bar in bars.patches], turned.probabilities[frame])
            np.testing.assert_array_equal(image.images[0].get_array()[1:-1, 1:-1], turned.images[frame])
            for axes, step in zip(maps, pooled, strict=True):
                drawn = axes.images[0].get_array()
                np.testing.assert_array_equal(np.ma.getmaskarray(drawn), ~step.active[frame, 0])
                np.testing.assert_array_equal(drawn.data, step.values[frame, 0])
            box = bars.get_window_extent()
            panels.append(pixels[:, int(box.x0) : int(box.x1)])
            assert image.get_title() == f"{45 * frame}°"
    assert [axes.get_title() for axes in maps] == [
        f"active nodes after\nlayer {i}, {step.name}" for i, step in enumerate(pooled, start=1)
    ]
    assert np.ptp(turned.probabilities, axis=0).max() > 0.02 and (panels[0] != panels[1]).any()


# --- left and right ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def oriented(small_splits):
    """An oriented network with start values, its second layer on a coarse grid."""
    options = {"margin": 1, "diffusion": 1, "batch_norm": True, "diagonal_weight": 0.25, "dtype": "float64"}
    return exhibit(tigra.build_network("OC[3, 2]-GC[2]-OC[4, 2]-S[1]", (14, 14), 3, **options), small_splits)


def test_dot_is_mirrored_and_cross_also_changes_its_sign(oriented):
    figure, _ = figures.draw(oriented, "orientation")
    shown = oriented.upright.images[oriented.one_of_each_class(4)]
    expected = products(oriented.network, shown)
    for row, tiles in enumerate(table(figure, 3, 8)):
        image, dots, crosses, chiral, of_mirror, its_dots, its_crosses, its_chiral = (
            tile.get_array() for tile in tiles
        )
        np.testing.assert_array_equal(image[1:-1, 1:-1], shown[row])
        np.testing.assert_array_equal(of_mirror, image[:, ::-1])
        np.testing.assert_array_equal(dots, expected.dots[row, 0])
        np.testing.assert_array_equal(crosses, expected.crosses[row, 0])
        np.testing.assert_array_equal(its_dots, dots[:, ::-1])
        np.testing.assert_array_equal(its_crosses, -crosses[:, ::-1])
        assert crosses.max() > 0 > crosses.min() and np.abs(its_chiral - chiral[:, ::-1]).max() > 1e-6
        assert chiral.shape == (8, 8) and tiles[2].get_cmap().name == "RdBu_r"
        heights = {round(tile.get_extent()[3] - tile.get_extent()[2], 9) for tile in tiles}
        assert len(heights) == 1, "coarse maps are drawn as large as the others"


def test_products_are_those_of_the_gradients_of_the_pair(oriented):
    network, images = oriented.network, oriented.upright.images[:2]
    graph, y = network.graph, network.signal(network.prepare(images)).values
    both = np.concatenate([y, (graph.laplacian @ y[0])[None]])
    a, b = (np.tensordot(mixing, both, 1) for mixing in network.layers[0].params["pairs"])
    found = products(network, images)
    for drawn, product in ((found.dots, dot(graph, a, b)), (found.crosses, cross(graph, a, b))):
        np.testing.assert_allclose(drawn[:, 0].reshape(2, -1), product[0].T, atol=1e-14)
    assert products(start(), images) is None


def test_without_weights_for_cross_products_mirroring_changes_nothing(oriented):
    network, images = oriented.network.replica(), oriented.upright.images[:4]
    for change in mirror_changes(network, images):
        assert change.changes.max() > 1e-6
    twin = network.with_parameters(network.learned)
    for layer in twin.layers:
        if isinstance(layer, tigra.layers.OrientedConv):
            layer.params["alpha"][:, -layer.n_pairs :] = 0
    assert [change.name for change in mirror_changes(twin, images)] == ["OC[3, 2]", "OC[4, 2]"]
    for change in mirror_changes(twin, images):
        assert change.changes.max() < 1e-20


def test_maps_of_an_oriented_network_are_those_after_normalisation_on_their_own_grid(oriented):
    network, images = oriented.network, oriented.upright.images[:2]
    taken = steps(network, np.concatenate([images, np.rot90(images, axes=(1, 2))]), most_maps=None)
    assert [(step.name, step.values.shape[2:]) for step in taken] == [
        ("image", (16, 16)), ("OC[3, 2]", (16, 16)), ("GC[2]", (8, 8)), ("OC[4, 2]", (8, 8))
    ]  # fmt: skip
    signal = network.replica().forward(network.signal(network.prepare(images)), until=5)
    np.testing.assert_allclose(taken[-1].values[:2].reshape(2, 4, 64), signal.values.transpose(2, 0, 1), atol=1e-12)
    np.testing.assert_allclose(taken[-1].values[2:], np.rot90(taken[-1].values[:2], axes=(2, 3)), atol=1e-12)
    bank = filter_banks(network)[1]
    assert bank.is_sum and bank.is_oriented and bank.graph.shape == (8, 8)
    sums = network.layers[3].params["alpha"][:, :9].reshape(4, 3, 3).sum(axis=2)
    np.testing.assert_allclose(bank.learned, polynomial_response(sums, bank.frequencies), atol=1e-12)


def test_features_of_batch_normalisation_are_in_training_units_once_it_has_seen_a_batch(oriented):
    network, images = oriented.network.replica(), oriented.upright.images
    network = network.with_parameters(network.learned)
    features = network.features(images)
    assert not in_training_units(network, features)[1]
    norm = next(layer for layer in network.layers if isinstance(layer, tigra.layers.FeatureNorm))
    norm.observe(norm.measure(features.T))
    scaled, is_in_deviations = in_training_units(network, features)
    assert is_in_deviations
    np.testing.assert_allclose(scaled, (features - features.mean(0)) / np.sqrt(features.var(0) + 1e-5), atol=1e-9)
