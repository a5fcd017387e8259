"""Learning: it works, one seed decides it all, and a run can be cut and taken up at any step."""

import gc
import inspect
import tracemalloc

import numpy as np
import pytest

import tigra
from tigra import ShapeError, Split, TrainingError, UsageError
from tigra.layers import Standardise
from tigra.training.gradient import BatchGradient
from tigra.training.training import FitOptions, Training


def train(network, splits, **options):
    epochs = list(tigra.fit(network, splits, **{"epochs": 3, "batch_size": 20} | options))
    return network.parameters.copy(), epochs


def test_loss_at_the_start_is_that_of_chance(small_network, small_splits):
    network = small_network()
    network.calibrate(small_splits.train.images)
    loss = -np.log(network.predict_proba(small_splits.train.images)[np.arange(48), small_splits.train.labels]).mean()
    assert abs(loss - np.log(3)) < 0.1  # the last layer starts small


def test_twenty_digits_are_learned_by_heart(small_network, small_splits):
    few = Split(small_splits.train.images[:20], small_splits.train.labels[:20])
    network = small_network()
    splits = tigra.Splits("few", few, few, few, few, ["0", "1", "2"], None)
    _, epochs = train(network, splits, epochs=200, learning_rate=0.02)
    assert (network.predict(few.images) == few.labels).all() and epochs[-1].loss < 0.02


@pytest.mark.slow
def test_training_beats_chance_on_unseen_rotated_digits(mnist_012):
    network = tigra.build_network(
        "SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[6]-FC[30]", (28, 28), 3, diagonal_weight=0.25, smoothing=1.0
    )
    train(network, mnist_012, epochs=8, batch_size=50, learning_rate=0.02, threads=2)
    assert tigra.accuracy(network, mnist_012.test) > 0.75


def test_same_seed_same_weights_bit_for_bit(small_network, small_splits):
    first, second = (train(small_network(seed=3), small_splits, seed=3)[0] for _ in range(2))
    other = train(small_network(seed=3), small_splits, seed=4)[0]
    assert first.tobytes() == second.tobytes() != other.tobytes()


def test_same_weights_bit_for_bit_for_any_number_of_threads(mnist_012):
    """Batches of 100 are four micro-batches, so that threads have something to share."""

    def run(threads):
        network = tigra.build_network("SC[2, 2]-DP[90]-SC[3, 2]-DP[40]-S[4]-FC[20]", (28, 28), 3)
        splits = tigra.Splits(
            "part", Split(*(a[:210] for a in mnist_012.train)), mnist_012.valid, None, None, ["0", "1", "2"], None
        )
        parameters, epochs = train(network, splits, epochs=2, batch_size=100, threads=threads)
        return parameters.tobytes(), epochs

    alone = run(1)
    for threads in (2, 3, 8):
        assert run(threads) == alone


def test_micro_batches_add_up_to_the_gradient_of_the_batch(small_network, small_splits, monkeypatch):
    gradients = []
    for largest in (1000, 7):
        monkeypatch.setattr("tigra.models.network.MICRO_BATCH", largest)
        training = Training(small_network(dtype="float64"), small_splits, FitOptions(batch_size=48))
        replicas = [training.network.replica() for _ in range(7)]
        with tigra.training.training.Workers(1) as workers:
            gradients.append(training.gradient(np.arange(48), workers, replicas)[2].copy())
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("threads", [1, 2])
def test_gradients_of_a_large_batch_are_not_all_in_memory_and_the_bits_are_the_same(
    small_network, small_splits, monkeypatch, threads
):
    """48 images in micro-batches of 5 are ten parts: three rows take 3, 2, 2, 2 and 1 of them."""
    monkeypatch.setattr("tigra.models.network.MICRO_BATCH", 5)
    expected, epochs = train(small_network(), small_splits, batch_size=48)
    monkeypatch.setattr("tigra.training.gradient.PARTS_AT_ONCE", 3)
    training = Training(small_network(), small_splits, FitOptions(epochs=3, batch_size=48), threads)
    assert list(training.run()) == epochs and training.network.parameters.tobytes() == expected.tobytes()
    assert training.gradient._space._memory["gradients"].nbytes == 3 * expected.nbytes


def test_the_best_epoch_on_validation_is_kept_and_test_images_are_never_seen(small_network, small_splits):
    network = small_network()
    blind = tigra.Splits("blind", small_splits.train, small_splits.valid, None, None, ["0", "1", "2"], None)
    _, epochs = train(network, blind, epochs=12, learning_rate=0.05)
    lowest = min(epochs, key=lambda epoch: epoch.valid_loss)
    best = [epoch for epoch in epochs if epoch.valid_loss <= lowest.valid_loss + lowest.valid_error][-1]
    assert [epoch for epoch in epochs if epoch.best][-1] == best
    assert tigra.accuracy(network, small_splits.valid) == best.valid_accuracy


def test_records_are_what_one_counts_by_hand(small_network, small_splits):
    """One epoch of one step: loss and accuracy of the start values; validation after the step."""
    network = small_network(dtype="float64")
    network.calibrate(small_splits.train.images)
    before = network.predict_proba(small_splits.train.images)
    labels = small_splits.train.labels
    _, (epoch,) = train(network, small_splits, epochs=1, batch_size=48)
    assert epoch.loss == pytest.approx(-np.log(before[np.arange(48), labels]).mean(), rel=1e-9)
    assert epoch.accuracy == (before.argmax(axis=1) == labels).mean()
    after = network.predict_proba(small_splits.valid.images)
    losses = -np.log(after[np.arange(24), small_splits.valid.labels])
    assert epoch.valid_loss == pytest.approx(losses.mean(), rel=1e-9)
    assert epoch.valid_error == pytest.approx(losses.std(ddof=1) / np.sqrt(24), rel=1e-9)
    assert epoch.valid_accuracy == (after.argmax(axis=1) == small_splits.valid.labels).mean()


def test_every_image_counts_the_same_in_the_loss_of_an_epoch(small_network, small_splits, monkeypatch):
    """48 images in batches of 20: with a rate near 0 the last batch of 8 must not weigh like the others."""
    network = small_network(dtype="float64")
    network.calibrate(small_splits.train.images)
    whole = -np.log(network.predict_proba(small_splits.train.images)[np.arange(48), small_splits.train.labels]).mean()
    _, (epoch,) = train(network, small_splits, epochs=1, batch_size=20, learning_rate=1e-12)
    assert epoch.loss == pytest.approx(whole, rel=1e-9)


def test_each_step_takes_its_own_rate_and_each_epoch_its_own_order(small_network, small_splits, monkeypatch):
    rates, batches = [], []
    step, gradient = tigra.training.training.Adam.step, BatchGradient.__call__
    monkeypatch.setattr(
        tigra.training.training.Adam, "step", lambda self, g, rate: (rates.append(rate), step(self, g, rate))
    )
    monkeypatch.setattr(BatchGradient, "__call__", lambda self, b, *a: (batches.append(b), gradient(self, b, *a))[1])
    train(small_network(), small_splits, epochs=2, learning_rate=0.01)
    assert rates == [tigra.training.training.learning_rate(0.01, n, 6) for n in range(6)] and len(set(rates)) == 6
    orders = np.concatenate(batches[:3]), np.concatenate(batches[3:])
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(48)) and np.any(orders[0] != orders[1])


def test_the_order_of_the_images_is_that_of_runs_already_saved(small_network, small_splits, monkeypatch):
    """Seed 3, epochs 0 and 1: with another order, an unfinished run would not end with the same bits."""
    batches, gradient = [], BatchGradient.__call__
    monkeypatch.setattr(BatchGradient, "__call__", lambda self, b, *a: (batches.append(b), gradient(self, b, *a))[1])
    train(small_network(), small_splits, epochs=2, batch_size=24, seed=3)
    assert [batch[:6].tolist() for batch in batches[::2]] == [[22, 39, 24, 11, 31, 18], [23, 13, 39, 28, 43, 29]]


@pytest.mark.parametrize("option", [{"label_smoothing": 0.2}, {"weight_decay": 0.5}, {"schedule": "constant"}])
def test_options_change_what_is_learned(small_network, small_splits, option):
    assert np.any(train(small_network(), small_splits)[0] != train(small_network(), small_splits, **option)[0])


def test_statistics_are_standardised_over_the_training_images(small_network, small_splits):
    network, reference = small_network(), small_network()
    reference.calibrate(small_splits.train.images)
    train(network, small_splits)
    (layer,), (expected,) = ([x for x in n.layers if isinstance(x, Standardise)] for n in (network, reference))
    assert not layer.needs_calibration
    np.testing.assert_array_equal(layer.state["mean"], expected.state["mean"])
    np.testing.assert_array_equal(layer.state["deviation"], expected.state["deviation"])


def test_breaking_off_keeps_the_best_so_far(small_network, small_splits):
    network = small_network()
    for epoch in tigra.fit(network, small_splits, epochs=50, batch_size=20):
        if epoch.number == 3:
            break
    whole = small_network()
    _, epochs = train(whole, small_splits, epochs=50)
    best = min(epochs[:3], key=lambda epoch: epoch.valid_loss)
    assert tigra.accuracy(network, small_splits.valid) == best.valid_accuracy


def test_patience_stops_early(small_network, small_splits):
    _, epochs = train(small_network(), small_splits, epochs=100, patience=4, learning_rate=0.05, schedule="constant")
    last_best = max(epoch.number for epoch in epochs if epoch.best)
    assert len(epochs) == last_best + 4 < 100


def test_records_are_numbered_and_plausible(small_network, small_splits):
    _, epochs = train(small_network(), small_splits, epochs=4)
    assert [epoch.number for epoch in epochs] == [1, 2, 3, 4] and epochs[0].best
    assert all(0 <= epoch.accuracy <= 1 and 0 <= epoch.valid_accuracy <= 1 for epoch in epochs)
    assert epochs[-1].loss < epochs[0].loss


@pytest.mark.parametrize("n_steps", [1, 3, 5, 6])
def test_a_run_killed_at_any_step_goes_on_from_its_last_snapshot(small_network, small_splits, n_steps):
    """48 images in batches of 20 are 3 steps an epoch: after 3 and 6 only the validation is left."""
    options = FitOptions(epochs=3, batch_size=20, weight_decay=0.1, jitter=0.5)
    whole = Training(small_network(), small_splits, options)
    expected = list(whole.run())
    killed = Training(small_network(), small_splits, options)
    steps = (epoch for epoch in killed.steps() if epoch is None)
    for _ in range(n_steps):
        next(steps)
    resumed = Training(small_network(), small_splits, options)
    resumed.restore(*killed.snapshot())
    list(resumed.run())
    assert resumed.history == expected
    assert resumed.network.parameters.tobytes() == whole.network.parameters.tobytes()


@pytest.mark.parametrize("stop_after", [0, 1, 4, 7])
def test_a_run_cut_at_any_step_and_resumed_ends_with_the_same_bits(small_network, small_splits, stop_after):
    """48 images in batches of 20 are 3 steps an epoch: 4 and 7 lie inside epochs."""
    options = FitOptions(epochs=4, batch_size=20, weight_decay=0.1, label_smoothing=0.1)
    whole = Training(small_network(), small_splits, options)
    expected = list(whole.run())
    steps = []
    cut = Training(small_network(), small_splits, options, on_progress=lambda *step: steps.append(step))
    cut.should_stop = lambda: len(steps) >= stop_after
    before = list(cut.run())
    assert not cut.is_finished and len(steps) == stop_after
    arrays, numbers = cut.snapshot()
    resumed = Training(small_network(seed=99), small_splits, options)  # other start values, all overwritten
    for layer, kept in zip(resumed.network.layers, cut.network.layers, strict=True):
        for name in layer.state:
            layer.state[name][:] = kept.state[name]
    resumed.restore(arrays, numbers)
    assert before + list(resumed.run()) == expected
    assert resumed.network.parameters.tobytes() == whole.network.parameters.tobytes()
    assert resumed.current.tobytes() == whole.current.tobytes()


def test_a_run_is_not_resumed_on_other_images(small_network, small_splits):
    arrays, numbers = Training(small_network(), small_splits, FitOptions()).snapshot()
    swapped = tigra.Splits("x", small_splits.valid, small_splits.train, None, None, ["0", "1", "2"], None)
    relabelled = Split(small_splits.valid.images, (small_splits.valid.labels + 1) % 3)
    other_labels = tigra.Splits("x", small_splits.train, relabelled, None, None, ["0", "1", "2"], None)
    for splits in (swapped, other_labels):
        with pytest.raises(TrainingError, match="other images"):
            Training(small_network(), splits, FitOptions()).restore(arrays, numbers)


@pytest.mark.parametrize(
    "spoilt",
    [
        {"step": -5},
        {"step": 99},
        {"step": "a"},
        {"step": 1.5},
        {"loss_sum": "x"},
        {"n_correct": None},
        {"n_correct": -1},
        {"history": [{}]},
        {"history": 5},
        {"first_loss": "x"},
    ],
)
def test_a_malformed_record_is_not_resumed(small_network, small_splits, spoilt):
    arrays, numbers = Training(small_network(), small_splits, FitOptions()).snapshot()
    with pytest.raises((TrainingError, TypeError)):
        Training(small_network(), small_splits, FitOptions()).restore(arrays, numbers | spoilt)


def test_malformed_epochs_are_not_resumed(small_network, small_splits):
    training = Training(small_network(), small_splits, FitOptions(epochs=2, batch_size=20))
    list(training.run())
    arrays, numbers = training.snapshot()
    first, second = numbers["history"]
    for history in (
        [second],
        [first | {"best": False}, second],
        [first | {"loss": "0.1"}, second],
        [first | {"number": 2}, second],
        [first, second, second | {"number": 3}],
    ):
        with pytest.raises(TrainingError, match="record"):
            training.restore(arrays, numbers | {"history": history})


def test_a_batch_larger_than_the_data_is_one_batch(small_network, small_splits):
    whole, _ = train(small_network(), small_splits, batch_size=48)
    larger, _ = train(small_network(), small_splits, batch_size=10**9)
    assert whole.tobytes() == larger.tobytes()


def test_splits_may_be_pairs_and_options_numpys(small_network, small_splits):
    class Pairs:
        train, valid = tuple(small_splits.train), tuple(small_splits.valid)

    expected, _ = train(small_network(), small_splits)
    given, _ = train(small_network(), Pairs, epochs=np.int64(3), learning_rate=np.float64(0.01))
    assert expected.tobytes() == given.tobytes()


def test_mistakes_are_found_before_the_first_epoch_is_asked_for(small_network, small_splits):
    with pytest.raises(UsageError, match="epochs"):
        tigra.fit(small_network(), small_splits, epochs=0)


def test_standardisation_is_set_once_and_not_by_a_second_fit(small_network, small_splits):
    network = small_network()
    train(network, small_splits)
    (layer,) = (layer for layer in network.layers if isinstance(layer, Standardise))
    kept = layer.state["mean"].copy()
    train(network, small_splits)
    np.testing.assert_array_equal(layer.state["mean"], kept)


def test_weight_decay_shrinks_weights_and_leaves_filters_alone(small_network, small_splits):
    network = small_network()
    mask = network.mask_of("weight")
    weights = sum(layer.params["weight"].size for layer in network.layers if "weight" in layer.params)
    assert mask.sum() == weights and mask.size == network.n_parameters
    size = []
    for decay in (0.0, 5.0):
        parameters, _ = train(small_network(), small_splits, weight_decay=decay, epochs=20)
        size.append(np.abs(parameters * mask).sum())
    assert size[1] < 0.8 * size[0]


def test_a_loss_that_runs_away_is_reported(small_network, small_splits):
    network = small_network()
    network.calibrate(small_splits.train.images)
    network.parameters[:] = 1e38  # the scores overflow
    with pytest.raises(TrainingError, match=r"before the first step: .*parameters \(up to 1e\+38\) are too large"):
        train(network, small_splits)


def test_a_loss_that_runs_away_but_stays_finite_is_reported(small_network, small_splits):
    """At once if it is hopeless; at the end if it rose and nothing was learned."""
    with pytest.raises(TrainingError, match=r"diverged in epoch 1: the loss rose .*; use a learning rate below 30\."):
        train(small_network(), small_splits, learning_rate=30.0, schedule="constant")
    with pytest.raises(TrainingError, match=r"in epoch \d, and nothing was learned; use a learning rate below 0.2\."):
        train(small_network(), small_splits, learning_rate=0.2, epochs=6)


def test_divergence_is_blamed_on_weight_decay_where_that_caused_it(small_network, small_splits):
    with pytest.raises(TrainingError, match=r"use a weight decay below 100, .* instead of 1e\+06"):
        train(small_network(), small_splits, learning_rate=0.01, weight_decay=1e6, schedule="constant", epochs=9)


def test_a_high_loss_at_the_start_is_not_divergence(small_network, small_splits):
    network = small_network()
    network.calibrate(small_splits.train.images)
    network.layers[-1].params["weight"] *= 3000
    _, epochs = train(network, small_splits, epochs=2)
    assert epochs[0].loss > 100 * np.log(3)


def test_labels_that_cannot_be_learned_are_not_divergence(small_network, small_splits, rng):
    noise = Split(small_splits.train.images, rng.permutation(small_splits.train.labels))
    _, epochs = train(small_network(), (noise, small_splits.valid), epochs=6, learning_rate=0.001)
    assert min(epoch.valid_loss for epoch in epochs) > 1


def test_a_state_that_a_file_cannot_hold_is_reported_when_it_is_saved(small_network, small_splits):
    training = Training(small_network(), small_splits, FitOptions(batch_size=20))
    steps = training.steps()
    next(steps)
    training.optimizer.square[0] = np.inf
    with pytest.raises(TrainingError, match="running moments are no longer finite in epoch 1"):
        training.snapshot()
    steps.close()


def test_a_validation_loss_that_is_not_finite_is_reported(small_network, small_splits):
    """One step of one epoch leads to it: no training loss would show it any more."""
    with pytest.raises(TrainingError, match="no longer finite in epoch 1"):
        train(small_network(), small_splits, epochs=1, batch_size=48, learning_rate=1e30)


def test_filters_that_are_no_longer_numbers_are_reported(small_network, small_splits):
    """Pooling drops NaN, so that the loss is finite, and that of chance for ever after."""
    network = small_network()
    network.calibrate(small_splits.train.images)
    network.layers[0].params["alpha"][:] = np.nan
    with pytest.raises(TrainingError, match="Parameters are no longer finite in epoch 1: use a learning rate below"):
        train(network, small_splits)


@pytest.mark.parametrize("interrupted", [False, True])
def test_the_best_parameters_stay_when_threads_are_refused_or_their_end_is_interrupted(
    small_network, small_splits, monkeypatch, interrupted
):
    training = Training(small_network(), small_splits, FitOptions(epochs=9, batch_size=20, learning_rate=0.5))
    steps = training.run()
    while not training.history or training.history[-1].best:  # the latest parameters are not the best
        next(steps)

    def interrupt(self):
        raise KeyboardInterrupt

    if interrupted:
        monkeypatch.setattr(tigra.training.training.Workers, "end_waiting", interrupt)
        with pytest.raises(KeyboardInterrupt):
            steps.close()
    else:
        steps.close()
        training.threads = 0
        with pytest.raises(UsageError, match="threads"):
            list(training.run())
    np.testing.assert_array_equal(training.network.learned, training.best)
    assert training.current is not None and not np.array_equal(training.current, training.best)


def test_a_part_that_fails_gives_its_replica_back(small_network, small_splits, monkeypatch):
    """Else the parts after it would fail for want of one, and hide why the first did."""
    training = Training(small_network(), small_splits, FitOptions(batch_size=48))
    replicas = [training.network.replica()]
    monkeypatch.setattr("tigra.training.gradient.negative_log_likelihood", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError), tigra.training.training.Workers(1) as workers:
        training.gradient(np.arange(48), workers, replicas)
    assert len(replicas) == 1


@pytest.mark.parametrize(
    "options, message",
    [
        ({"epochs": 0}, "epochs must be a whole number of at least 1, got 0"),
        ({"epochs": 2.5}, "epochs"),
        ({"batch_size": 0}, "batch_size"),
        ({"learning_rate": -0.1}, "learning_rate must be a number above 0, got -0.1"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"label_smoothing": 1.0}, "label_smoothing"),
        ({"label_smoothing": -0.1}, "label_smoothing"),
        ({"schedule": "steep"}, "one-cycle, constant"),
        ({"patience": -1}, "patience"),
        ({"seed": -1}, "seed"),
        ({"threads": 0}, "threads"),
        ({"threads": 1.5}, "threads"),
        ({"learning_rate": "fast"}, "learning_rate"),
        ({"weight_decay": None}, "weight_decay"),
    ],
)
def test_impossible_options_are_refused(small_network, small_splits, options, message):
    with pytest.raises(UsageError, match=message):
        train(small_network(), small_splits, **options)


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda images, labels: (images, labels[:-1]), "48 images, so it needs as many integer labels"),
        (lambda images, labels: (images, labels + 1), "run from 1 to 3, but the network has 3 classes"),
        (lambda images, labels: (images, labels - 1), "run from -1"),
        (lambda images, labels: (images, labels.astype(float)), "integer labels"),
        (lambda images, labels: (images[:, :10], labels), "resize"),
        (lambda images, labels: (images[:0], labels[:0]), "at least one image"),
    ],
)
def test_splits_that_do_not_fit_are_refused(small_network, small_splits, spoil, message):
    train_split = Split(*spoil(*small_splits.train))
    splits = tigra.Splits("x", train_split, small_splits.valid, None, None, ["0", "1", "2"], None)
    with pytest.raises(ShapeError, match=message):
        train(small_network(), splits)


def test_memory_is_flat_over_epochs(small_network, small_splits):
    """Python's and NumPy's memory: the peak of the last epochs is that of the second."""
    peaks = []
    tracemalloc.start()
    try:
        for _ in tigra.fit(small_network(), small_splits, epochs=8, batch_size=16):
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.reset_peak()
    finally:
        tracemalloc.stop()
    assert max(peaks[4:]) < 1.02 * peaks[1] + 20_000


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"mixing": "full"}, {"active_set": "union"}], ids=str)
def test_steady_epochs_fetch_no_large_arrays(mnist_012, options):
    """Whatever the sizes of micro-batches: 103 images in batches of 60 are parts of 32, 28, 24 and 19."""
    n_maps, n_nodes, n_images = 9, 28 * 28, 103
    part = Split(mnist_012.train.images[:n_images].astype(np.float32), mnist_012.train.labels[:n_images])
    network = tigra.build_network(f"SC[8, 2]-DP[300]-SC[{n_maps}, 2]-DP[100]-S[3]", (28, 28), 3, **options)
    fetched, current = [], 0
    tracemalloc.start()
    try:
        for _ in tigra.fit(network, tigra.Splits("x", part, part, None, None, None, None), epochs=3, batch_size=60):
            fetched.append(tracemalloc.get_traced_memory()[1] - current)
            current = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
    finally:
        tracemalloc.stop()
    one_map = n_nodes * 32 * 4
    assert fetched[0] > 4 * n_maps * one_map  # the first epoch makes the arrays
    assert max(fetched[1:]) < 6 * one_map  # images, their sets, and small things


def test_a_pair_of_training_and_validation_set_will_do(small_network, small_splits):
    train, valid = small_splits.train, small_splits.valid
    options = {"epochs": 2, "batch_size": 24}
    expected = list(tigra.fit(small_network(), small_splits, **options))
    assert list(tigra.fit(small_network(), (train, valid), **options)) == expected
    assert list(tigra.fit(small_network(), [tuple(train), tuple(valid)], **options)) == expected
    for wrong in (train.images, (train,), (train, valid, valid), None, ("a", "b")):
        with pytest.raises((UsageError, ShapeError), match="Expected"):
            tigra.fit(small_network(), wrong)


@pytest.mark.slow
def test_fit_warns_when_no_epoch_is_asked_for(small_network, small_splits, recwarn):
    with pytest.warns(RuntimeWarning, match="no epoch was asked for, so nothing was trained"):
        tigra.fit(small_network(), small_splits, epochs=1)
        gc.collect()
    recwarn.clear()
    epochs = tigra.fit(small_network(), small_splits, epochs=2, batch_size=24)
    assert next(epochs).number == 1 and inspect.isgenerator(epochs.epochs)
    epochs.close()
    del epochs
    gc.collect()
    assert not [warning for warning in recwarn if "no epoch" in str(warning.message)]
