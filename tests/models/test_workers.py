"""Worker threads: BLAS on one thread while they work and no longer, nothing left behind, and no trap after a fork."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import tigra
from tigra import TigraError
from tigra.models.workers import Workers
from tigra.training.training import FitOptions, Training

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def blas_threads():
    return [entry["num_threads"] for entry in threadpool_info() if entry["user_api"] == "blas"]


def test_blas_has_one_thread_while_any_workers_are_at_work():
    outside, first, second = blas_threads(), Workers(1), Workers(2)
    first.__enter__()
    second.__enter__()
    assert set(blas_threads()) == {1}
    first.__exit__()
    assert set(blas_threads()) == {1}
    second.__exit__()
    assert blas_threads() == outside


@pytest.mark.parametrize("threads", [2, 3])
def test_no_thread_is_left_after_an_error(threads):
    """The first task fails while others are under way: leaving waits for these, and drops those not begun."""
    before, ended = set(threading.enumerate()), []

    def work(number):
        if number == 0:
            raise ValueError("no")
        time.sleep(0.15)
        ended.append(number)

    with pytest.raises(ValueError, match="no"), Workers(threads) as workers:
        list(workers.map(work, range(50)))
    assert set(threading.enumerate()) == before and len(ended) < 49


@pytest.mark.parametrize("n_tasks, n_here", [(1, 1), (2, 1), (3, 1), (4, 0)])
def test_the_calling_thread_takes_the_last_of_a_few_tasks(n_tasks, n_here):
    with Workers(3) as workers:
        found = list(workers.map(lambda number: (number, threading.get_ident()), range(n_tasks)))
    assert [number for number, _ in found] == list(range(n_tasks))
    here = [number for number, thread in found if thread == threading.get_ident()]
    assert here == list(range(n_tasks))[n_tasks - n_here :]


def test_predictions_use_the_same_threads_again(rng):
    network = tigra.build_network("SC[2, 1]-DP[20]-S[1]-FC[4]", (6, 5), 3)
    images = rng.random((80, 6, 5))
    alone = network.scores(images)
    np.testing.assert_array_equal(network.scores(images, threads=3), alone)
    waiting = set(threading.enumerate())
    np.testing.assert_array_equal(network.scores(images, threads=3), alone)
    now = set(threading.enumerate())
    assert waiting <= now and len(now) <= len(waiting) + 1  # a pool starts a thread when all are busy
    with Workers(3, leaves_threads=True) as outer, Workers(3, leaves_threads=True) as inner:  # nested ones: two pools
        assert list(outer.map(lambda n: list(inner.map(abs, [-n, n])), range(4))) == [[n, n] for n in range(4)]
    assert len(threading.enumerate()) <= len(waiting) + 3  # one of the two pools has ended


def test_blas_is_given_back_only_after_the_last_worker_has_ended():
    seen = []

    def work(number):
        time.sleep(0.1)
        seen.append(set(blas_threads()))

    with Workers(2) as workers:
        workers.map(work, range(2))  # nobody waits for the results
    assert seen == [{1}, {1}]


@pytest.mark.parametrize("threads", [1, 2])
def test_between_epochs_blas_is_as_before_and_threads_wait_until_the_last_one(small_network, small_splits, threads):
    outside, inside = blas_threads(), []
    training = Training(small_network(), small_splits, FitOptions(epochs=3, batch_size=40), threads)
    before = set(threading.enumerate())  # with threads of predictions, which calibrate
    training.on_progress = lambda *_: inside.append(set(blas_threads()))
    waiting = []
    for _ in training.run():
        assert blas_threads() == outside
        waiting.append(set(threading.enumerate()))
    assert inside and all(counts == {1} for counts in inside)
    assert waiting[0] <= waiting[1] <= waiting[2] and len(waiting[2] - before) <= threads
    assert set(threading.enumerate()) <= before


def test_no_more_replicas_than_a_batch_has_micro_batches(small_network, small_splits, monkeypatch):
    made, replica = [], tigra.Network.replica
    monkeypatch.setattr(tigra.Network, "replica", lambda self, *a, **k: (made.append(1), replica(self, *a, **k))[1])
    list(tigra.fit(small_network(), small_splits, epochs=1, batch_size=48, threads=10_000))
    assert len(made) == 2  # 48 images are two micro-batches


def in_a_child(work):
    """What a forked process says: None if it ended well, its error's text otherwise; a hang fails."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work()
            os.write(writer, b"ended well")
        except BaseException as error:
            os.write(writer, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    give_up = time.monotonic() + 60
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > give_up:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the forked process hangs")
        time.sleep(0.01)
    with os.fdopen(reader) as answer:
        return answer.read()


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_forked_between_epochs_can_train_on(small_network, small_splits):
    epochs = tigra.fit(small_network(), small_splits, epochs=3, batch_size=48, threads=2)
    next(epochs)
    assert in_a_child(lambda: next(epochs)) == "ended well"
    assert next(epochs).number == 2


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_forked_while_workers_are_busy_is_told_so_and_has_its_blas():
    outside = blas_threads()

    def check():
        assert blas_threads() == outside, "BLAS is held in the child"
        with Workers(1):
            assert set(blas_threads()) == {1}
        assert blas_threads() == outside
        workers.map(abs, [1])

    with Workers(2) as workers:
        list(workers.map(abs, [1, 2, 3]))
        assert in_a_child(check).startswith("TigraError: This process was forked while worker threads were busy")
        assert set(blas_threads()) == {1}


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_leaving_workers_in_a_forked_process_is_quiet():
    with Workers(2) as workers:
        list(workers.map(abs, [1, 2, 3]))
        assert in_a_child(lambda: workers.__exit__()) == "ended well"


def test_work_of_another_process_is_refused_with_a_way_out(monkeypatch):
    with Workers(1) as workers:
        monkeypatch.setattr("tigra.models.workers.os.getpid", lambda: -1)
        with pytest.raises(TigraError, match="Fork between epochs"):
            workers.map(abs, [1])
        monkeypatch.undo()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_first_error_is_raised_for_any_number_of_threads(threads):
    def fail(number):
        raise ValueError(f"task {number}")

    with pytest.raises(ValueError, match="task 0"), Workers(threads) as workers:
        list(workers.map(fail, [0, 1]))


@pytest.mark.parametrize("threads", [1, 2])
def test_arguments_may_be_iterators(threads):
    with Workers(threads) as workers:
        assert list(workers.map(abs, iter([-1, -2]))) == [1, 2]
