"""What the page shows is what the network computes, and changes do what they say."""

import base64

import numpy as np
import pytest

import tigra
from tigra.experiments.report.heat import heat_maps
from tigra.images.transforms import rotate
from tigra.layers import DynamicPool, OrientedConv
from tigra.playground.answers import Answers
from tigra.playground.changes import Changes, LowestIndexPool, changed


@pytest.fixture(scope="module")
def examples(answers):
    return answers.start()["examples"]


def asked(answers, examples, **fields):
    return answers.answer({"model": "mnist-012-achiral", "pixels": examples[0], **fields})


def levels(picture):
    """The bytes of a picture as numbers from -1 to 1."""
    values = np.frombuffer(base64.b64decode(picture["data"]), np.uint8).astype(float)
    return (values.reshape(picture["height"], picture["width"]) - 128) / 127


@pytest.mark.parametrize("name", ["mnist-012", "mnist-012-achiral"])
def test_the_answer_is_that_of_the_network(name, answers, examples):
    found = asked(answers, examples, model=name, angle=70, maps=True, heat=True, filters=True)
    network, upright = tigra.load(name), np.reshape(examples[0], (28, 28)) / 255
    turned = rotate(upright[None], 70)
    np.testing.assert_allclose(levels(found["image"]), turned[0], atol=0.005)
    np.testing.assert_allclose(found["tigranet"]["probabilities"], network.predict_proba(turned)[0], atol=1e-4)
    features = network.features(np.stack([upright, turned[0]]))
    expected = np.linalg.norm(features[1] - features[0]) / np.linalg.norm(features[0])
    assert found["tigranet"]["gap"] == pytest.approx(expected, rel=0.01)
    beside = tigra.load("mnist-012-convnet").predict_proba(turned)[0]
    np.testing.assert_allclose(found["beside"]["probabilities"], beside, atol=1e-4)
    heat = heat_maps(network, turned)[0]
    np.testing.assert_allclose(levels(found["heat"]), heat / np.abs(heat).max(), atol=0.005)
    assert found["layers"][0]["name"] == "image" and found["layers"][-1]["n_maps"] > 4
    assert len(found["filters"]["responses"]) == found["layers"][1]["n_maps"]


def test_quarter_turns_leave_no_gap_and_the_convnet_has_one(answers, examples):
    found = asked(answers, examples, angle=90)
    assert found["tigranet"]["gap"] < 1e-5 < 0.1 < found["beside"]["gap"]
    assert found["tigranet"]["bars"] == pytest.approx(found["tigranet"]["bars_upright"], abs=0.01)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"smoothing": 0.0}, "smoothing"),
        ({"boundary": "free"}, "boundary"),
        ({"nodes": [40, 100]}, "J"),
        ({"order": 3}, "K_max"),
        ({"filter": 1, "alpha": [0.0, 3.0, 0.0, 0.0]}, "filter"),
    ],
)
def test_a_change_changes_the_features_and_the_gap_is_measured(changes, what, answers, examples):
    usual, found = asked(answers, examples, angle=90), asked(answers, examples, angle=90, changes=changes)
    assert found["gap_trained"] == pytest.approx(usual["tigranet"]["gap"], abs=1e-6), what
    assert found["tigranet"]["bars"] != usual["tigranet"]["bars"]
    assert found["tigranet"]["gap"] < 1e-4, "these changes commute with quarter turns"


def test_the_lowest_index_breaks_the_invariance_of_a_filled_shape(answers, examples):
    gaps = [
        asked(answers, examples, pixels=examples[-1], angle=90, changes=changes | {"smoothing": 0, "nodes": [60, 40]})
        for changes in ({}, {"ties": "first"})
    ]
    assert gaps[0]["tigranet"]["gap"] < 1e-5 < 1e-2 < gaps[1]["tigranet"]["gap"]


def test_the_trained_network_stays_as_it_is(answers, examples):
    network = answers.models["mnist-012-achiral"]
    before, pools = network.learned, [layer.n_active for layer in network.layers if isinstance(layer, DynamicPool)]
    twin = changed(network, Changes(nodes=(5, 5), ties="first", order=1, filter=0, alpha=(9.0,) * 4, boundary="free"))
    assert sum(isinstance(layer, LowestIndexPool) for layer in twin.layers) == 2
    assert network.learned.tobytes() == before.tobytes() and network.graph.boundary == "padded"
    assert pools == [layer.n_active for layer in network.layers if isinstance(layer, DynamicPool)]
    assert changed(network, Changes()) is network


def test_the_lowest_index_wins():
    z = np.array([1.0, 2, 2, 2]).reshape(1, 4, 1)
    signal = tigra.GraphSignal(z, np.ones((1, 4, 1), bool))
    assert LowestIndexPool(2).forward(signal).active.ravel().tolist() == [False, True, True, False]
    assert tigra.DynamicPool(2).forward(signal).active.ravel().tolist() == [False, True, True, True]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ([], "must be a JSON object"),
        ({"model": "other"}, "model must be one of"),
        ({"pixels": [0] * 783}, "pixels must be 784 numbers"),
        ({"pixels": ["0"] * 784}, "pixels must be a number"),
        ({"pixels": [1e400] * 784}, "pixels must be a number"),
        ({"angle": True}, "angle must be a number"),
        ({"angle": 1e9}, "angle must be a number from -360 to 360"),
        ({"angle": 10**400}, "angle must be a number from -360 to 360"),  # no float has this size
        ({"changes": {"nodes": [1.5, 1]}}, "nodes must be a whole number"),
        ({"model": "mnist-012", "changes": {"filter": 0, "alpha": [1e6] * 5}}, "become too large"),
        ({"interpolation": "nearest"}, "interpolation must be one of"),
        ({"changes": 3}, "must be a JSON object"),
        ({"changes": {"smoothing": 100}}, "smoothing must be a number from 0 to 4"),
        ({"changes": {"nodes": [1]}}, "2 pooling layers, got 1"),
        ({"changes": {"order": 21}}, "K_max must be from 0 to 20"),
        ({"changes": {"order": 2.5}}, "order must be a whole number"),
        ({"changes": {"filter": 0, "alpha": [1]}}, "no filter 0 with 1 coefficients"),
        ({"model": "mnist-012", "changes": {"boundary": "free"}}, "need the padded boundary"),
    ],
)
def test_wrong_requests_are_refused_in_one_sentence(fields, sentence, answers, examples):
    whole = fields if isinstance(fields, list) else {"model": "mnist-012-achiral", "pixels": examples[0]} | fields
    with pytest.raises(tigra.UsageError, match=sentence):
        answers.answer(whole)


def test_other_models_have_no_playground():
    with pytest.raises(tigra.UsageError, match="this network is for colour images"):
        Answers({"colour": tigra.build_network("SC[2, 2]-S[1]", (8, 8, 3), 2)})
    with pytest.raises(tigra.UsageError, match="for TIGraNets on the grid of pixels"):
        Answers({"convnet": tigra.load("mnist-012-convnet")})
    with pytest.raises(tigra.UsageError, match="compares with networks only, got DeepScat"):
        Answers({"digits": tigra.load("mnist-012")}, tigra.build_deepscat("W[1, 2]-PCA[2]", (28, 28), 3))


def test_digits_of_another_size_are_examples_of_a_network_for_digits():
    """mnist-rot has 26x26 pixels."""
    network = tigra.load("mnist-rot")
    found = Answers({"mnist-rot": network}).start()["examples"]
    digits, labels = np.reshape(found[:-1], (-1, 26, 26)) / 255, tigra.load_dataset("mnist-012").test_upright.labels
    assert len(digits) == 10 and (network.predict(digits) == labels[:10]).sum() >= 9


def test_oriented_filters_have_names(answers):
    models = answers.start()["models"]
    assert models["mnist-012"]["terms"] == ["1", "L", "L^2", "dot", "cross"] and not models["mnist-012"]["can_be_free"]
    assert models["mnist-012-achiral"]["nodes"] == [300, 100]
    assert any(isinstance(layer, OrientedConv) for layer in answers.models["mnist-012"].layers)
