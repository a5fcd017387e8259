"""The estimators inside scikit-learn's own tools, and with joblib and pandas."""

import io
import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="install scikit-learn: pip install -e '.[test]'")

import joblib
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.sklearn.options import LEARNING, TINY
from tigra.sklearn import ScatteringFeatures, TIGraNetClassifier, TIGraNetFeatures

pytestmark = pytest.mark.slow


def test_features_in_a_pipeline_are_better_than_chance(digits):
    X, y = digits
    for features in (TIGraNetFeatures(**TINY), ScatteringFeatures(octaves=2)):
        model = make_pipeline(features, StandardScaler(), LogisticRegression(max_iter=500))
        assert cross_val_score(model, X, y, cv=2).mean() > 0.6


def test_grid_search_finds_the_larger_network(digits):
    grid = {"architecture": ["S[0]", LEARNING["architecture"]], "learning_rate": [1e-6, 0.01]}
    search = GridSearchCV(TIGraNetClassifier(**LEARNING), grid, cv=2).fit(*digits)
    assert search.best_params_ == {"architecture": LEARNING["architecture"], "learning_rate": 0.01}
    assert search.best_score_ > 0.6


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])  # the last one forks
def test_cross_validation_gives_the_same_scores_on_every_backend(digits, backend):
    X, y = digits
    model = TIGraNetClassifier(**TINY, n_jobs=2)  # worker threads inside of workers
    wanted = cross_val_score(model, X, y, cv=2, scoring="neg_log_loss")
    with joblib.parallel_config(backend=backend):
        np.testing.assert_array_equal(cross_val_score(model, X, y, cv=2, scoring="neg_log_loss", n_jobs=2), wanted)


def test_probabilities_can_be_calibrated(digits):
    X, y = digits
    model = CalibratedClassifierCV(TIGraNetClassifier(**LEARNING), cv=2).fit(X, y)
    assert model.predict_proba(X).shape == (60, 3) and model.score(X, y) > 0.5


@pytest.mark.parametrize("estimator", [TIGraNetClassifier(**TINY), TIGraNetFeatures(**TINY), ScatteringFeatures()])
def test_pickle_and_joblib_keep_every_bit(digits, estimator):
    X, y = digits
    estimator.fit(X, y)
    result = getattr(estimator, "transform", None) or estimator.predict_proba
    wanted, file = result(X), io.BytesIO()
    joblib.dump(estimator, file)
    file.seek(0)
    for copy in (pickle.loads(pickle.dumps(estimator)), joblib.load(file)):
        np.testing.assert_array_equal(getattr(copy, result.__name__)(X), wanted)


def test_pandas_frames_go_in_and_come_out(digits):
    pandas = pytest.importorskip("pandas")
    X, y = digits
    frame = pandas.DataFrame(X, columns=[f"pixel{i}" for i in range(64)], index=range(100, 160))
    names = pandas.Series(["zero", "one", "two"]).iloc[y]
    model = TIGraNetClassifier(**TINY).fit(frame, names)
    assert model.feature_names_in_[1] == "pixel1"
    np.testing.assert_array_equal(
        model.predict_proba(frame), TIGraNetClassifier(**TINY).fit(X, names.to_numpy()).predict_proba(X)
    )
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[frame.columns[::-1]])
    for transformer in (TIGraNetFeatures(**TINY), ScatteringFeatures(octaves=2)):
        out = transformer.set_output(transform="pandas").fit(frame, y).transform(frame)
        assert out.index.equals(frame.index) and out.columns[0] == f"{type(transformer).__name__.lower()}0"
