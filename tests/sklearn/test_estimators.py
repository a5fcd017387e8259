"""The estimators keep scikit-learn's rules, and give the same bits for any order of images and number of threads."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="install scikit-learn: pip install -e '.[test]'")

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

import tigra
from tests.sklearn.options import LEARNING, TINY
from tigra.options import FitOptions, NetworkOptions
from tigra.sklearn import ScatteringFeatures, TIGraNetClassifier, TIGraNetFeatures

TRAINED = TIGraNetClassifier, TIGraNetFeatures


def same_parameters(one, other):
    return np.array_equal(one.network_.parameters, other.network_.parameters)


@pytest.fixture(scope="module")
def classifier(digits):
    return TIGraNetClassifier(**TINY).fit(*digits)


# --- scikit-learn's rules ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # images of one row, data that cannot be learned
@pytest.mark.parametrize("estimator", [TIGraNetClassifier(**TINY), TIGraNetFeatures(**TINY), ScatteringFeatures()])
def test_every_check_of_scikit_learn_passes(estimator):
    results = check_estimator(estimator)  # raises at the first failure
    assert len(results) > 40
    others = {result["check_name"] for result in results if result["status"] != "passed"}
    assert others <= {"check_array_api_input"}  # which is skipped unless SCIPY_ARRAY_API is set


@pytest.mark.slow
def test_tigra_does_not_import_scikit_learn():
    code = "import sys, tigra; sys.exit('sklearn' in sys.modules or 'tigra.sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- parameters --------------------------------------------------------------------------------------------


def test_every_option_is_a_parameter_and_reaches_the_network_or_the_training(digits):
    names = {*NetworkOptions.specs(), *FitOptions.specs()} - {"class_weights"}  # scikit-learn's name is class_weight
    for estimator in TRAINED:
        assert names <= set(estimator().get_params())
        assert all(f"\n{name} : " in estimator.__doc__ for name in names)
    model = TIGraNetClassifier(**TINY, smoothing=0.25, seed=3).fit(*digits)
    options = model.network_.options
    assert (options.smoothing, options.seed, options.image_shape) == (0.25, 3, (8, 8))
    assert len(model.history_) == TINY["epochs"]


def test_what_is_not_given_comes_from_the_recipe(digits):
    model = TIGraNetClassifier(recipe="paper", dataset="mnist-012", **TINY).fit(*digits)
    recipe = tigra.RECIPES["mnist-012"]["paper"].network
    assert model.network_.options.standardise is recipe.standardise is False


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"recipe": "worst"}, "recipe must be one of"),
        ({"dataset": "minst-012"}, "dataset must be one of folder, mnist-012"),
        ({"mixing": "by hand"}, "mixing must be one of"),
        ({"image_shape": 8}, r"image_shape must be \(height, width\)"),
        ({"class_weight": {0: -1, 1: 1, 2: 1}}, "class_weight must have finite weights"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"random_state": -1}, "random_state must be a whole number"),
        ({"outside": "border"}, "outside has no effect here"),
        ({"image_shape": (4, 4)}, r"with 64 numbers in all, as in X, got \(4, 4\)"),
        ({"black": 2, "white": 1}, "white must be above black"),
        ({"white": "light"}, "white must be a finite number"),
        ({"validation_fraction": 1}, "validation_fraction must be a number from 0 to below 1"),
        ({"class_weight": "even"}, "class_weight must be a dictionary"),
        ({"seed": 1, "random_state": 1}, "give one of them"),
    ],
)
def test_wrong_parameters_are_refused_by_fit(digits, wrong, message):
    with pytest.raises(ValueError, match=message):
        TIGraNetClassifier(**TINY | wrong).fit(*digits)
    with pytest.raises(TypeError, match="unexpected keyword argument 'epoch'"):
        TIGraNetClassifier(epoch=3)


@pytest.mark.parametrize("wrong", [{"order": "2"}, {"order": 3}, {"octaves": 1.5}, {"octaves": 0}])
def test_wrong_parameters_of_scattering_are_refused_by_fit(digits, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ScatteringFeatures(**wrong).fit(digits[0])


def test_seed_and_random_state_are_the_same(digits, classifier):
    assert same_parameters(TIGraNetClassifier(**TINY, random_state=0).fit(*digits), classifier)
    assert not same_parameters(TIGraNetClassifier(**TINY, seed=1).fit(*digits), classifier)
    drawn = [TIGraNetClassifier(**TINY, random_state=np.random.RandomState(5)).fit(*digits) for _ in range(2)]
    assert same_parameters(*drawn) and not same_parameters(drawn[0], classifier)


def test_the_number_of_threads_changes_no_bit(digits, classifier):
    model = TIGraNetClassifier(**TINY, n_jobs=2).fit(*digits)
    assert same_parameters(model, classifier)
    np.testing.assert_array_equal(model.predict_proba(digits[0]), classifier.predict_proba(digits[0]))


def test_verbose_prints_a_line_for_each_epoch(digits, capsys):
    TIGraNetClassifier(**TINY, verbose=1).fit(*digits)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["epoch", "1/2"], ["epoch", "2/2"]]
    TIGraNetClassifier(**TINY).fit(*digits)
    assert capsys.readouterr().out == ""


def test_warm_start_goes_on_from_the_last_parameters(digits):
    model = TIGraNetClassifier(**TINY, warm_start=True).fit(*digits)
    first = model.network_.parameters.copy()
    again = clone(model).fit(*digits)
    again.set_params(epochs=1, learning_rate=1e-6).fit(*digits)
    assert 0 < np.abs(again.network_.parameters - first).max() < 1e-4
    cold = clone(again).set_params(warm_start=False).fit(*digits)
    assert np.abs(cold.network_.parameters - first).max() > 1e-3
    with pytest.raises(ValueError, match="the network must stay as it is, but architecture changed"):
        model.set_params(architecture="S[1]").fit(*digits)
    with pytest.raises(ValueError, match="With warm_start, y must have the classes"):
        model.set_params(architecture=TINY["architecture"]).fit(digits[0], digits[1] + 1)
    np.testing.assert_array_equal(model.network_.parameters, first)


# --- weights and order -------------------------------------------------------------------------------------


def test_weights_are_repetitions_and_the_order_does_not_matter(digits, classifier, rng):
    X, y = digits
    order = rng.permutation(60)
    assert same_parameters(TIGraNetClassifier(**TINY).fit(X[order], y[order]), classifier)
    weights = rng.integers(0, 4, 60)
    for estimator in TRAINED:
        weighted = estimator(**TINY, class_weight="balanced").fit(X, y, sample_weight=weights)
        repeated = estimator(**TINY, class_weight="balanced").fit(X.repeat(weights, axis=0), y.repeat(weights))
        assert same_parameters(weighted, repeated)


def test_a_heavy_class_is_predicted_more_often(digits):
    X, y = digits
    noise = np.random.default_rng(0).permutation(y)
    model = TIGraNetClassifier(**TINY | {"epochs": 10}, class_weight={1: 100.0}).fit(X, noise)
    assert (model.predict(X) == 1).mean() > 0.9
    with pytest.raises(ValueError, match="two classes"):
        model.fit(X, noise, sample_weight=(noise == 1).astype(float))


def test_training_that_diverges_keeps_its_best_epoch_with_a_warning(digits, rng):
    model = TIGraNetClassifier(**TINY | {"epochs": 10}, learning_rate=3.0, dense_init="paper")
    with pytest.warns(ConvergenceWarning, match="The best epoch is kept"):
        model.fit(digits[0], rng.permutation(digits[1]))
    assert np.isfinite(model.predict_proba(digits[0])).all()


# --- images ------------------------------------------------------------------------------------------------


def test_rows_and_images_are_the_same_and_colour_is_seen(digits, classifier):
    X, y = digits
    images = X.reshape(-1, 8, 8)
    assert same_parameters(TIGraNetClassifier(**TINY).fit(images, y), classifier)
    colour = images[..., None] * np.array([1.0, 0.5, 0.0])
    model = TIGraNetClassifier(**TINY).fit(colour, y)
    assert model.image_shape_ == (8, 8, 3) and model.n_features_in_ == 192
    assert model.network_.options.n_channels == 3
    assert np.abs(model.predict_proba(colour) - model.predict_proba(colour[..., ::-1])).max() > 1e-3
    flat = TIGraNetClassifier(**TINY, image_shape=(8, 8, 3)).fit(colour.reshape(60, -1), y)
    assert same_parameters(flat, model)


def test_images_of_another_shape_are_refused_and_rows_that_are_no_square_warned_about(digits, classifier):
    X, y = digits
    with pytest.raises(ValueError, match=r"Expected images of shape \(8, 8\), as in fit, got \(4, 16\)"):
        classifier.predict(X.reshape(-1, 4, 16))
    with pytest.raises(ValueError, match=r"Colour images have shape \(n, height, width, 3\)"):
        classifier.predict(X.reshape(-1, 4, 4, 4))
    with pytest.warns(UserWarning, match="X has 60 features, which is no square number"):
        assert ScatteringFeatures(order=1).fit(X[:, :60]).image_shape_ == (1, 60)


def test_black_and_white_are_learned_or_given(digits, classifier):
    X, y = digits
    assert (classifier.black_, classifier.white_) == (0, 16)
    assert same_parameters(TIGraNetClassifier(**TINY).fit(X / 16, y), classifier)
    centred = TIGraNetClassifier(**TINY).fit(X / 8 - 1, y)  # black is -1
    assert (centred.black_, centred.white_) == (-1, 1) and same_parameters(centred, classifier)
    assert TIGraNetClassifier(**TINY, white=255).fit(X, y).white_ == 255
    with pytest.raises(ValueError, match="scale X like the training images"):
        classifier.predict(1000 * X)


def test_quarter_turns_change_no_class_and_labels_may_be_text(digits):
    X, y = digits
    names = np.array(["zero", "one", "two"])[y]
    model = TIGraNetClassifier(**LEARNING).fit(X, names)
    assert model.classes_.tolist() == model.network_.class_names == ["one", "two", "zero"]
    turned = np.rot90(X.reshape(-1, 8, 8), axes=(1, 2))
    assert model.score(X, names) > 0.7 and (model.predict(turned) == model.predict(X)).mean() > 0.95


def test_features_are_float64_invariant_and_those_of_tigra(digits):
    X, y = digits
    scattering = [(ScatteringFeatures(octaves=2), 0.1), (ScatteringFeatures(dtype="float32"), 0.1)]
    for estimator, tolerance in [(TIGraNetFeatures(**TINY), 1e-4), *scattering]:
        features = estimator.fit(X, y).transform(X.astype(np.float32))
        assert features.dtype == np.float64 and features.shape == (60, len(estimator.get_feature_names_out()))
        turned = estimator.transform(np.rot90(X.reshape(-1, 8, 8), axes=(1, 2)))
        assert np.linalg.norm(turned - features) < tolerance * np.linalg.norm(features)
    scattered = tigra.build_deepscat("W[2, 2]-PCA[1]", (8, 8), 2, dtype="float64").features(X.reshape(-1, 8, 8))
    np.testing.assert_array_equal(ScatteringFeatures(octaves=2).fit_transform(X), scattered)
    logged = ScatteringFeatures(octaves=2, log=True).fit_transform(X)
    np.testing.assert_allclose(np.exp(logged), np.abs(scattered) + 1e-6)
