"""Weights of images in the loss."""

import numpy as np
import pytest

import tigra
from tigra.experiments.recipes import find_recipe
from tigra.models.loss import negative_log_likelihood
from tigra.options import FitOptions
from tigra.training import Training
from tigra.training.weights import read_class_weights, with_class_weights

OPTIONS = FitOptions(epochs=3, batch_size=16, learning_rate=0.02)


def trained(network, splits, weights):
    training = Training(network, splits, OPTIONS, weights=weights)
    assert len(list(training.run())) == OPTIONS.epochs
    return training


def test_a_weight_of_two_counts_like_two_images(rng):
    scores, labels, weights = rng.normal(size=(3, 4)), np.array([0, 1, 2, 1]), np.array([2, 0, 1, 3])
    loss, grad = negative_log_likelihood(scores, labels, label_smoothing=0.1, n_images=6, weights=weights)
    repeated = np.repeat(np.arange(4), weights)
    wanted, each = negative_log_likelihood(scores[:, repeated], labels[repeated], label_smoothing=0.1)
    assert loss == pytest.approx(wanted)
    np.testing.assert_allclose(grad, [[each[c, repeated == b].sum() for b in range(4)] for c in range(3)])


def test_equal_weights_change_no_bit(small_network, small_splits):
    plain = trained(small_network(), small_splits, None)
    weighted = trained(small_network(), small_splits, (np.full(48, 3.0), np.full(24, 2.0)))
    np.testing.assert_array_equal(plain.network.parameters, weighted.network.parameters)
    assert plain.history == weighted.history


def test_images_without_weight_teach_nothing_and_do_not_validate(small_network, small_splits):
    weights = [(split.labels != 2).astype(float) for split in (small_splits.train, small_splits.valid)]
    training = trained(small_network(), small_splits, weights)
    assert 2 not in training.network.predict(small_splits.train.images)
    seen = small_splits.valid.labels != 2
    seen_set = tigra.Split(small_splits.valid.images[seen], small_splits.valid.labels[seen])
    assert training.best_epoch.valid_accuracy == pytest.approx(tigra.accuracy(training.network, seen_set))


@pytest.mark.parametrize("weights", [np.ones(3), np.zeros(48), np.full(48, -1.0), np.full(48, np.nan)])
def test_wrong_weights_are_refused(small_network, small_splits, weights):
    with pytest.raises(tigra.TrainingError, match="Expected 48 finite weights of at least 0"):
        Training(small_network(), small_splits, OPTIONS, weights=(weights, np.ones(24)))


def test_balanced_classes_change_no_bit_and_unbalanced_ones_count_the_same(small_network, small_splits):
    def run(splits, **options):
        network = small_network()
        return list(tigra.fit(network, splits, epochs=2, batch_size=16, learning_rate=0.02, **options)), network.learned

    rows = np.sort(np.concatenate([np.flatnonzero(small_splits.train.labels == c)[:8] for c in range(3)]))
    equal = tuple(tigra.Split(small_splits.train.images[rows], small_splits.train.labels[rows]) for _ in range(2))
    (epochs, plain), (weighted_epochs, weighted) = run(equal), run(equal, class_weights="balanced")
    assert epochs == weighted_epochs and plain.tobytes() == weighted.tobytes()
    labels = [small_splits.train.labels, small_splits.valid.labels]
    by_hand = [len(some) / (3 * np.bincount(some))[some] for some in labels]
    (_, balanced), (_, given) = run(small_splits, class_weights="balanced"), run(small_splits, weights=by_hand)
    np.testing.assert_array_equal(balanced, given)
    assert (balanced != run(small_splits)[1]).any()


def test_auto_balances_classes_of_very_different_sizes_only():
    names, few, more = ["a", "b"], np.array([0, 1, 1]), np.array([0, 1, 1, 1])
    assert with_class_weights(None, "auto", names, few, more) is None, "the training images decide"
    found, wanted = (with_class_weights(None, how, names, more, few) for how in ("auto", "balanced"))
    assert [some.tolist() for some in found] == [some.tolist() for some in wanted]
    assert find_recipe("pictures").fit.class_weights == "auto"
    assert {find_recipe(name).fit.class_weights for name in tigra.DATASETS} == {"none"}


def test_weights_of_classes_come_from_a_file(tmp_path):
    labels = np.array([0, 1, 1])
    (tmp_path / "w.csv").write_text('cat,3\n"a, b",0.5\n')
    (tmp_path / "w.json").write_text('{"cat": 3, "a, b": 0.5}')
    (tmp_path / "headed.csv").write_text('class, weight\ncat,3\n"a, b",0.5\n')
    for name in ("w.csv", "w.json", "headed.csv"):
        text = read_class_weights(tmp_path / name)
        (found,) = with_class_weights(None, FitOptions(class_weights=text).class_weights, ["cat", "a, b"], labels)
        assert found.tolist() == [3, 0.5, 0.5]
    with pytest.raises(tigra.UsageError, match="but the classes are x, y"):
        with_class_weights(None, text, ["x", "y"], labels)
    for content in ("cat", "cat,-1", "cat,nan", "", "[1]", "[" * 10**5):
        (tmp_path / "w.csv").write_text(content)
        with pytest.raises(tigra.UsageError, match="must have lines of a class and its weight"):
            read_class_weights(tmp_path / "w.csv")
    with pytest.raises(tigra.UsageError, match="No such file"):
        read_class_weights(tmp_path / "nothing")
    with pytest.raises(tigra.UsageError, match="class_weights must be none, balanced, auto or a JSON object"):
        FitOptions(class_weights="equal")
