"""What users call on a network: images in their order, errors that say what to do."""

import copy
import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tigra
from tigra import ShapeError, UsageError
from tigra.baselines import Flatten
from tigra.images.transforms import smooth


@pytest.fixture(scope="module")
def network():
    return tigra.build_network("SC[2, 2]-DP[20]-S[2]-FC[4]", (5, 6), 3, smoothing=0.5)


@pytest.fixture
def images(rng):
    return rng.uniform(size=(70, 5, 6))


def test_shapes_of_what_users_get(network, images):
    assert network.predict_proba(images).shape == (70, 3)
    assert network.predict(images).shape == (70,)
    assert network.features(images).shape == (70, 2 * 2 * 3)
    np.testing.assert_allclose(network.predict_proba(images).sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(network.predict(images), network.predict_proba(images).argmax(axis=1))


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_predictions_do_not_depend_on_threads(network, images, threads):
    np.testing.assert_array_equal(network.scores(images, threads), network.scores(images))


def test_a_single_image_gets_what_it_gets_among_others(network, images):
    np.testing.assert_allclose(network.scores(images[3:4]), network.scores(images)[3:4], atol=1e-5)  # float32


def test_float32_and_float64_images_give_the_same(network, images):
    single = images.astype(np.float32)
    np.testing.assert_allclose(network.scores(single), network.scores(single.astype(np.float64)), atol=1e-5)  # float32


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda x: x[:, :4], r"\(n, 5, 6\), got \(70, 4, 6\); resize"),
        (lambda x: x[0], "add a first axis"),
        (lambda x: x[:0], "at least one image"),
        (lambda x: [], "at least one image"),
        (lambda x: (255 * x).astype(np.uint8), "divide 8-bit pixels by 255"),
        (lambda x: np.where(np.arange(70)[:, None, None] == 7, np.nan, x), "image 7 has NaN"),
        (lambda x: np.full_like(x, np.inf), "image 0 has NaN or infinite"),
        (lambda x: x.astype(object), "real values"),
        (lambda x: 255 * x, "values up to 25.*divide 8-bit pixels by 255"),
        (lambda x: [x[0], x[1, :3]], "one size|shape"),
        (lambda x: x.astype(complex), "real values"),
        (lambda x: "images", "shape"),
    ],
)
def test_images_that_do_not_fit_are_refused(network, images, spoil, message):
    with pytest.raises(ShapeError, match=message):
        network.predict(spoil(images))


def test_numbers_that_overflow_are_not_taken_for_a_class(network, images):
    with pytest.raises(tigra.TigraError, match="overflow"):
        network.with_parameters(np.full(network.n_parameters, 1e38)).predict(images)


def test_fewer_than_one_thread_is_refused(network, images):
    with pytest.raises(UsageError, match="whole number of at least 1"):
        network.predict(images, threads=0)


def test_parameters_are_one_vector_of_which_layers_hold_views(network):
    sizes = sum(array.size for layer in network.layers for array in layer.params.values())
    assert network.n_parameters == sizes
    for layer in network.layers:
        for name, array in layer.params.items():
            assert array.base is network.parameters and layer.grads[name].base is network.gradients


def test_a_copy_with_other_parameters_leaves_the_network_alone(network, images):
    before = network.scores(images)
    twin = network.with_parameters(np.zeros(network.n_parameters, np.float32))
    assert not twin.scores(images).any()
    np.testing.assert_array_equal(network.scores(images), before)


def test_smoothing_is_a_blur_of_the_images(images):
    options = {"n_classes": 3, "seed": 4, "dtype": "float64"}
    smoothing = tigra.build_network("SC[2, 2]-S[2]", (5, 6), smoothing=0.7, **options)
    plain = tigra.build_network("SC[2, 2]-S[2]", (5, 6), **options)
    np.testing.assert_array_equal(smoothing.features(images), plain.features(smooth(images, 0.7)))


def test_features_are_the_statistics_before_standardising(images):
    network = tigra.build_network("SC[2, 2]-S[2]", (5, 6), 3)
    before = network.features(images)
    network.calibrate(images)
    np.testing.assert_array_equal(network.features(images), before)


def test_a_margin_is_the_image_in_a_frame_of_zeros(images):
    options = {"n_classes": 3, "smoothing": 0.7, "seed": 4}
    framed = tigra.build_network("SC[2, 2]-DP[40]-S[2]-FC[4]", (5, 6), margin=2, **options)
    larger = tigra.build_network("SC[2, 2]-DP[40]-S[2]-FC[4]", (9, 10), **options)
    padded = np.pad(images, ((0, 0), (2, 2), (2, 2)))
    np.testing.assert_array_equal(framed.scores(images), larger.scores(padded))


def test_background_of_any_grey_is_taken_away(images):
    options = {"n_classes": 3, "smoothing": 0.7, "margin": 2, "seed": 4, "dtype": "float64"}
    plain = tigra.build_network("SC[2, 2]-DP[40]-S[2]-FC[4]", (5, 6), **options)
    network = tigra.build_network("SC[2, 2]-DP[40]-S[2]-FC[4]", (5, 6), background="border", **options)
    things = np.pad(np.random.default_rng(3).random((4, 3, 4)), ((0, 0), (1, 1), (1, 1)))
    np.testing.assert_array_equal(network.scores(things), plain.scores(things))
    np.testing.assert_allclose(network.scores(things + 0.25), network.scores(things), atol=1e-12)
    assert np.abs(plain.scores(things + 0.25) - plain.scores(things)).max() > 1e-3
    turned = tigra.build_network("SC[2, 2]-DP[40]-S[2]-FC[4]", (6, 5), background="border", **options)
    np.testing.assert_allclose(turned.scores(np.rot90(things + 0.25, axes=(1, 2))), network.scores(things), atol=1e-12)
    with pytest.raises(UsageError, match="must be one of auto, black, border, window, window-mean, got 'white'"):
        tigra.build_network("S[1]", (5, 6), 3, background="white")


def test_without_statistics_there_are_no_features(network, images):
    bare = tigra.Network(
        [tigra.Dense(np.zeros((3, 2), np.float32), np.zeros(3, np.float32))], network.graph, network.options
    )
    with pytest.raises(UsageError, match="no statistics layer"):
        bare.features(images)


def test_predictions_use_their_arrays_again_and_follow_the_parameters(small_network, mnist_012):
    network, images = small_network(), mnist_012.test.images[:40, ::2, ::2]
    first = network.scores(images, threads=2)
    assert 1 <= len(network._idle) <= 2
    np.testing.assert_array_equal(network.scores(images), first)  # scratch that has only seen the last piece grows here
    memory = [array for spaces in network._idle for space in spaces for array in space._memory.values()]
    np.testing.assert_array_equal(network.scores(images), first)
    again = [array for spaces in network._idle for space in spaces for array in space._memory.values()]
    assert len(again) == len(memory) > 0 and all(array is other for array, other in zip(again, memory, strict=True))
    network.parameters *= 0.5
    assert np.abs(network.scores(images) - first).max() > 1e-3
    assert network.replica()._idle == []


@pytest.mark.parametrize(
    "change",
    [
        lambda network: setattr(network.layers[1], "n_active", 5),
        lambda network: network.layers.__setitem__(1, tigra.DynamicPool(5)),
        lambda network: network.layers.insert(2, tigra.DynamicPool(5)),
        lambda network: network.layers.pop(1),
    ],
)
def test_predictions_follow_the_layers(small_network, mnist_012, change):
    network, images = small_network(dtype="float64"), mnist_012.test.images[:20, ::2, ::2]
    before = network.scores(images)
    change(network)
    after = network.scores(images)
    forward = network.forward(network.signal(network.prepare(images))).T
    np.testing.assert_allclose(after, forward, rtol=1e-12)
    assert np.abs(after - before).max() > 1e-6


def test_scores_do_not_lie_where_those_of_the_next_images_come(images):
    """A last layer whose results stand in its workspace, and 64 images: two parts of one size."""
    planes = tigra.build_network("C[2]-P[2]-FC[4]", (5, 6), 3)
    network = tigra.Network([Flatten()], planes.graph, dict(planes.options) | {"n_classes": 30})
    for threads in (1, 2):
        scores = network.scores(images[:64], threads)
        np.testing.assert_array_equal(scores, images[:64].reshape(64, 30).astype(np.float32))


def test_steady_predictions_fetch_no_large_arrays(mnist_012):
    """Beyond a few maps: the images' own, their sets, and small things."""
    network = tigra.build_network("SC[8, 2]-DP[300]-SC[9, 2]-DP[100]-S[3]", (28, 28), 3)
    images = mnist_012.test.images[:75].astype(np.float32)
    network.scores(images)
    tracemalloc.start()
    try:
        network.scores(images)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * 28 * 28 * 32 * 4  # one layer's output has 8 maps


def test_a_pickled_network_is_as_small_as_before_and_whole(small_network, mnist_012):
    network, images = small_network(), mnist_012.test.images[:70, ::2, ::2]
    new = len(pickle.dumps(network))
    expected = network.scores(images, threads=2)
    network.forward(network.signal(network.prepare(images)))  # leaves caches behind
    assert len(pickle.dumps(network)) < 1.1 * new + 1000
    for twin in (pickle.loads(pickle.dumps(network)), copy.deepcopy(network)):
        np.testing.assert_array_equal(twin.scores(images), expected)
        test_parameters_are_one_vector_of_which_layers_hold_views(twin)
        twin.parameters[:] = 0
        assert not twin.scores(images).any() and twin.class_names == network.class_names
    np.testing.assert_array_equal(network.scores(images), expected)


def test_a_shallow_copy_shares_the_parameters(small_network, mnist_012):
    network, images = small_network(), mnist_012.test.images[:10, ::2, ::2]
    network.scores(images)
    twin = copy.copy(network)
    network.parameters *= 0.5
    np.testing.assert_array_equal(twin.scores(images), network.scores(images))
    test_parameters_are_one_vector_of_which_layers_hold_views(network)


@pytest.mark.parametrize(
    "image_shape, n_images", [((28, 28), 32), ((64, 64), 32), ((65, 64), 24), ((96, 96), 8), ((128, 128), 8)]
)
def test_micro_batches_shrink_as_images_grow(image_shape, n_images):
    assert tigra.build_network("SC[2, 2]-S[1]", image_shape, 3).micro_batch == n_images


def test_the_largest_images_go_one_by_one():
    assert tigra.build_network("SC[2, 2]-S[1]", (512, 512), 3).micro_batch == 1
    assert tigra.build_network("SC[2, 2]-S[1]", (180, 180), 3).micro_batch == 4


def test_one_network_can_predict_in_several_threads_at_once(small_network, mnist_012):
    network, images = small_network(), mnist_012.test.images[:, ::2, ::2]
    expected = network.scores(images)
    with ThreadPoolExecutor(4) as pool:
        for scores in pool.map(lambda threads: network.scores(images, threads), [1, 2, 3, 1, 2, 3]):
            np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize("mixing", ["vector", "full", "products"])
def test_scores_of_an_image_do_not_depend_on_its_place_in_the_batch(mixing, small_network, small_splits):
    images = small_splits.train.images[:41]
    network = small_network(mixing=mixing)
    network.calibrate(images)
    scores = network.scores(images)
    np.testing.assert_array_equal(network.scores(images[::-1])[::-1], scores)
    for place in (0, 33, 40):
        np.testing.assert_array_equal(network.scores(images[place : place + 1])[0], scores[place])
