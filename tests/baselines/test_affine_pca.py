"""Planes of classes: distances as defined, directions as scikit-learn finds them, errors that say what to do."""

import json
from pathlib import Path

import numpy as np
import pytest

from tigra import ShapeError, UsageError
from tigra.baselines.deepscat.affine_pca import (
    AffinePCA,
    check_dimension,
    largest_dimension,
)
from tigra.models.loss import negative_log_likelihood, softmax

STORED = json.loads((Path(__file__).parent / "sklearn_numbers.json").read_text())


def example(n=36, n_features=7):
    """Features (F, n) of three classes that every machine draws alike, and their labels."""
    i, b = np.mgrid[:n_features, :n]
    labels = np.arange(n) % 3
    return np.sin(1 + 3 * i + i * b * b) + np.cos(5 * i * labels) + 0.1 * np.cos(7 * b + i), labels


def reconstruction_errors(features, labels, dimension):
    """The same with scikit-learn: squared distance from what PCA makes of the features. (C, n)"""
    from sklearn.decomposition import PCA

    rows, errors = features.T, []
    for c in range(3):
        pca = PCA(n_components=dimension, svd_solver="full").fit(rows[labels == c])
        errors.append(((rows - pca.inverse_transform(pca.transform(rows))) ** 2).sum(axis=1))
    return np.array(errors)


@pytest.mark.parametrize("dimension", [1, 3, 6])
def test_distances_are_those_of_the_definition(dimension):
    features, labels = example()
    planes = AffinePCA.fitted(features, labels, 3, dimension)
    for c in range(3):
        of_class = features[:, labels == c]
        mean = of_class.mean(axis=1)
        covariance = (of_class - mean[:, None]) @ (of_class - mean[:, None]).T
        _, vectors = np.linalg.eigh(covariance)  # another way to the same directions
        v = vectors[:, -dimension:]
        for b in range(5):
            r = features[:, b] - mean
            expected = r @ r - (v.T @ r) @ (v.T @ r)
            assert planes.distances(features[:, [b]])[c, 0] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_distances_are_the_reconstruction_errors_of_scikit_learn():
    features, labels = example()
    for dimension, errors in STORED.items():
        distances = AffinePCA.fitted(features, labels, 3, int(dimension)).distances(features)
        np.testing.assert_allclose(distances[:, :6], errors, rtol=1e-8)


def test_the_stored_numbers_are_those_of_scikit_learn():
    pytest.importorskip("sklearn", reason="scikit-learn, the oracle, is not installed")
    features, labels = example()
    for dimension, stored in STORED.items():
        errors = reconstruction_errors(features, labels, int(dimension))
        np.testing.assert_allclose(errors[:, :6], stored, rtol=1e-8)
        distances = AffinePCA.fitted(features, labels, 3, int(dimension)).distances(features)
        assert (errors.argmin(axis=0) == distances.argmin(axis=0)).all()


def test_small_distances_survive_large_features():
    """|r|^2 - |V^T r|^2 would be rounding: 1e6^2 * 1e-16 is a thousand times the distance."""
    t = np.linspace(-1, 1, 9)
    features = np.array([t * 1e6, t * 0.0, 1e-4 * (t > 0.9)])
    planes = AffinePCA.fitted(np.concatenate([features, features + 5], axis=1), np.repeat([0, 1], 9), 2, 1)
    moved = features + np.array([[0.0], [3e-4], [0.0]])
    np.testing.assert_allclose(planes.distances(moved)[0, :5], 9e-8, rtol=0.03)


def test_narrowed_planes_are_those_fitted_with_fewer_dimensions():
    features, labels = example()
    narrow, fitted = (AffinePCA.fitted(features, labels, 3, d) for d in (5, 2))
    assert narrow.narrowed(2).distances(features).tobytes() == fitted.distances(features).tobytes()
    assert narrow.dimension == 5 and narrow.narrowed(2).dimension == 2


def test_the_temperature_makes_the_labels_most_likely():
    features, labels = example()
    planes = AffinePCA.fitted(features[:, :24], labels[:24], 3, 2)
    planes.calibrate(features[:, 24:], labels[24:])
    e, best = planes.distances(features[:, 24:]), planes.state["temperature"][0]
    losses = [
        negative_log_likelihood(-e / (best * factor), labels[24:], label_smoothing=1 / 13)[0]
        for factor in (0.9, 1.0, 1.1)
    ]
    assert losses[1] <= min(losses)


def test_no_class_is_certain_where_all_are_named_rightly():
    features, labels = example()
    features[0] += 100 * labels
    planes = AffinePCA.fitted(features, labels, 3, 2)
    planes.calibrate(features, labels)
    p = softmax(-planes.distances(features) / planes.state["temperature"])
    assert (p.argmax(axis=0) == labels).all() and 0.9 < p.max(axis=0).mean() < 0.999


def test_a_class_with_too_few_images_is_refused_with_what_would_do():
    labels = np.repeat([0, 1, 2], [9, 6, 9])
    features = np.random.default_rng(0).random((20, 24))
    assert largest_dimension(labels, 20) == 4 and largest_dimension(labels, 4) == 3
    AffinePCA.fitted(features, labels, 3, 4)
    with pytest.raises(UsageError, match=r"PCA\[5\] needs at least 7 .*class 1 has 6 images.*Use at most PCA\[4\]"):
        AffinePCA.fitted(features, labels, 3, 5)
    with pytest.raises(UsageError, match="class 3 has 0 images.*Give more images"):
        check_dimension(1, labels, 4, 20)
    with pytest.raises(UsageError, match="with 4 features each"):
        AffinePCA.fitted(features[:4], labels, 3, 4)


def test_shapes_that_do_not_fit_are_refused():
    features, labels = example()
    planes = AffinePCA.fitted(features, labels, 3, 2)
    assert planes.is_fitted and not AffinePCA.init(7, 3, 2).is_fitted
    for call in (
        lambda: planes.distances(features[:3]),
        lambda: planes.distances(features[:, 0]),
        lambda: AffinePCA.fitted(features, labels[:-1], 3, 2),
        lambda: AffinePCA(np.zeros((2, 3)), np.zeros((2, 4, 1)), np.ones(1)),
    ):
        with pytest.raises(ShapeError, match="AffinePCA"):
            call()


if __name__ == "__main__":  # python -m tests.baselines.test_affine_pca writes the numbers anew
    numbers = {str(d): reconstruction_errors(*example(), d)[:, :6].tolist() for d in (1, 3, 6)}
    (Path(__file__).parent / "sklearn_numbers.json").write_text(json.dumps(numbers))
