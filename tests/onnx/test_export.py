"""Whole networks in onnxruntime: the same labels, probabilities and features as in tigra."""

import json
from dataclasses import replace

import numpy as np
import pytest

import tigra
from tests.cli.running import run
from tigra.experiments.recipes import CONVNET_RECIPES, HARMNET_RECIPES, PHOTOS, RECIPES, STN_RECIPES
from tigra.images.transforms import resize, rotate
from tigra.model_file import packaged_models
from tigra.onnx import checking, compare, drawn_images, export_onnx, onnx_model
from tigra.options import NetworkOptions

onnxruntime = pytest.importorskip("onnxruntime", reason="install onnxruntime: pip install -e '.[test]'")

DIGITS = {name: recipe.network for name, recipe in RECIPES["mnist-012"].items()}
NETWORKS = DIGITS | {
    "photographs": replace(PHOTOS, architecture="SC[4, 2]-DP[500]-SC[4, 2]-DP[500]-S[5]-FC[8]"),
    "free boundary": replace(DIGITS["achiral"], architecture="SC[3, 3]-DP[300]-SC[4, 2]-S[4]", boundary="free"),
    "products": replace(DIGITS["achiral"], architecture="SC[4, 2]-SC[4, 2]-S[4]-FC[8]", mixing="products", diffusion=1),
    "full mixing": replace(DIGITS["repaired"], mixing="full", active_set="union", neighbours=4),
    "dilated": NetworkOptions(architecture="OC[4, 2]-GD[2]-OC[4, 2]-DP[200]-S[1]-FC[8]", diffusion=1, batch_norm=True),
    "window": replace(DIGITS["best"], background="window"),
    "window less mean": replace(DIGITS["best"], background="window-mean"),
    "ConvNet": CONVNET_RECIPES["mnist-012"]["best"].network,
    "STN": STN_RECIPES["mnist-012"]["best"].network,
    "HarmNet": replace(HARMNET_RECIPES["mnist-012"]["best"].network, architecture="HRC[1, 3]-HCN[3]-HRC[3, 4]"),
}


@pytest.fixture(scope="module")
def trained():
    return tigra.load(packaged_models()["mnist-012"])


def session_of(model):
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def untrained(name, images):
    """A network as after a few steps of training: calibrated, with running averages of its own images."""
    network = tigra.build_network(image_shape=(28, 28), n_classes=3, **NETWORKS[name])
    network.calibrate(images)
    signal = network.signal(network.prepare(images))
    for layer in network.layers:
        if layer.uses_batch_statistics:
            layer.observe(layer.measure(signal))
        signal = layer.forward(signal)
    return network


@pytest.mark.parametrize("name", NETWORKS)
def test_every_kind_of_network_predicts_the_same_in_onnx(name, mnist_012):
    images = rotate(mnist_012.train.images[:24], np.arange(24) * 15.0)
    network = untrained(name, images[:16])
    network.temperature = 0.6
    found = session_of(onnx_model(network)).run(None, {"images": images.astype(np.float32)})
    probabilities = network.predict_proba(images)
    np.testing.assert_array_equal(found[0], probabilities.argmax(axis=1))
    np.testing.assert_allclose(found[1], probabilities, atol=1e-5)
    assert len(found) == 2 + any(layer.gives_features for layer in network.layers)
    if len(found) == 3:
        features = network.features(images)
        np.testing.assert_allclose(found[2], features, atol=1e-5 * np.abs(features).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", packaged_models())
def test_500_turned_digits_get_the_same_labels_and_probabilities(name, mnist_012):
    network, digits = tigra.load(name), rotate(mnist_012.train.images, np.linspace(0, 360, 500))
    turned = resize(digits, network.image_shape).astype(np.float32)
    labels, probabilities = session_of(onnx_model(network)).run(["label", "probabilities"], {"images": turned})
    expected = network.predict_proba(turned)
    np.testing.assert_array_equal(labels, expected.argmax(axis=1))
    np.testing.assert_allclose(probabilities, expected, atol=1e-5)


@pytest.mark.parametrize("name", ["best", "pooled", "repaired"])
def test_the_invariance_survives(name, mnist_012):
    """Quarter turns change nothing; if the network has no orientation, mirror images neither."""
    images = mnist_012.train.images[:12]
    session = session_of(onnx_model(untrained(name, images)))

    def features(moved):
        return session.run(["features"], {"images": np.ascontiguousarray(moved, np.float32)})[0]

    upright = features(images)
    small = 1e-5 * np.abs(upright).max()
    np.testing.assert_allclose(features(np.rot90(images, axes=(1, 2))), upright, atol=small)
    mirrored = np.abs(features(images[:, :, ::-1]) - upright).max()
    assert mirrored < small if name == "repaired" else mirrored > 100 * small


@pytest.mark.parametrize("opset", [13, 18, 21])
def test_older_and_newer_operators(opset, trained, mnist_012):
    images = mnist_012.train.images[:3].astype(np.float32)
    model = onnx_model(trained, opset)
    assert model.opset_import[0].version == opset
    found = session_of(model).run(["probabilities"], {"images": images})[0]
    np.testing.assert_allclose(found, trained.predict_proba(images), atol=1e-5)


@pytest.mark.parametrize("name", ["mnist-012", "mnist-012-achiral", "mnist-012-convnet"])
def test_an_empty_batch_has_empty_outputs(name):
    found = session_of(onnx_model(tigra.load(name))).run(None, {"images": np.zeros((0, 28, 28), np.float32)})
    assert [len(output) for output in found] == [0] * len(found) and found[1].shape == (0, 3)


def test_custom_graphs_and_float64(rng):
    ring = np.roll(np.eye(12), 1, axis=0) + np.roll(np.eye(12), -1, axis=0)
    network = tigra.build_network("SC[2, 2]-DP[5]-S[2]-FC[4]", (3, 4), 2, graph=ring, dtype="float64")
    images = rng.uniform(size=(5, 3, 4)).astype(np.float32)
    found = session_of(onnx_model(network)).run(["features"], {"images": images})[0]
    np.testing.assert_allclose(found, network.features(images), atol=1e-5)


def test_colour_images_with_a_background(tmp_path):
    options = {"background": "border", "margin": 2, "smoothing": 0.7}
    network = tigra.build_network("OC[3, 2]-GC[2]-OC[3, 2]-S[2]-FC[4]", (12, 11, 3), 3, **options)
    images = 0.8 * drawn_images((12, 11, 3), 6) + np.array([0.1, 0.2, 0.0])
    export_onnx(network, tmp_path / "colour.onnx")
    assert compare(network, tmp_path / "colour.onnx", images).difference < 1e-5
    model = onnx_model(network)
    assert [entry.value for entry in model.metadata_props if entry.key == "colour"] == ["rgb"]
    found = session_of(model).run(["features"], {"images": images.astype(np.float32)})[0]
    np.testing.assert_allclose(found, network.features(images), atol=1e-5)


def test_the_metadata_describes_images_and_classes(trained, tmp_path):
    export_onnx(trained, tmp_path / "digits.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "digits.onnx"), providers=["CPUExecutionProvider"])
    facts = session.get_modelmeta().custom_metadata_map
    assert json.loads(facts["class_names"]) == ["0", "1", "2"] and json.loads(facts["image_shape"]) == [28, 28]
    assert facts["colour"] == "grey" and facts["tigra"] == tigra.__version__
    assert session.get_inputs()[0].shape == ["n", 28, 28]
    assert [end.name for end in session.get_outputs()] == ["label", "probabilities", "features"]


def test_a_file_that_cannot_be_run_is_named_with_the_remedy(trained, tmp_path):
    (tmp_path / "new.onnx").write_bytes(b"of a later version")
    with pytest.raises(tigra.UsageError, match=r"cannot run .*new.onnx: .*; if it is too old .* lower the opset"):
        compare(trained, tmp_path / "new.onnx")


def test_a_difference_is_noticed(trained, tmp_path):
    export_onnx(trained, tmp_path / "digits.onnx")
    images = drawn_images((28, 28), 10)
    assert compare(trained, tmp_path / "digits.onnx", images).difference < 1e-5
    spoilt = trained.with_parameters(trained.learned * 1.01)
    assert compare(spoilt, tmp_path / "digits.onnx", images).difference > 1e-3


# --- the command ------------------------------------------------------------------------------------------


def test_the_command_writes_a_file_and_checks_it(tmp_path):
    out = tmp_path / "digits.onnx"
    text = run("export", "mnist-012", "--out", out).stdout
    assert out.is_file() and "largest difference on 100 images" in text and "no label differs" in text
    facts = json.loads(run("export", "mnist-012", "--out", out, "--opset", "15", "--json").stdout)
    assert facts["opset"] == 15 and facts["difference"] < 1e-5 and facts["labels_that_differ"] == 0


def test_the_command_names_the_file_after_the_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("export", "mnist-012-convnet").stdout.startswith("mnist-012-convnet.onnx: ")


def test_the_command_fails_if_the_file_computes_something_else(tmp_path, monkeypatch):
    wrong = checking.Comparison(0.25, 3, "1")
    monkeypatch.setattr(checking, "compare", lambda *_, **__: wrong)
    result = run("export", "mnist-012", "--out", tmp_path / "digits.onnx", expect=1)
    assert "0.25" in result.stderr and "do not use it" in result.stderr


def test_the_command_says_what_is_missing(tmp_path, monkeypatch):
    out = tmp_path / "digits.onnx"
    assert "from 13 to" in run("export", "mnist-012", "--out", out, "--opset", "9", expect=2).stderr
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    result = run("export", "mnist-012", "--out", out)
    assert "not checked" in result.stdout and "pip install" in result.stdout
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    assert "tigra[onnx]" in run("export", "mnist-012", "--out", out, expect=2).stderr


def test_other_models_are_refused_by_name(tmp_path):
    scat = tigra.build_deepscat("W[1, 2]-PCA[2]", (8, 8), 2)
    with pytest.raises(tigra.UsageError, match="got DeepScat"):
        export_onnx(scat, tmp_path / "scat.onnx")
