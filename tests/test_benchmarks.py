"""The benchmarks' own arithmetic, and that what they compare is the same. No test looks at the time it takes."""

import doctest
import json
import platform

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks import bench_kernels, bench_roofline, contenders, harness, problems, report
from benchmarks.__main__ import BENCHMARKS, main, run_all
from benchmarks.harness import Contestant, Times, assert_same, exponent, ratio, take_turns
from benchmarks.machine import cpu_model, description, heading, torch_or_none
from benchmarks.problems import TINY, Problem, Settings
from benchmarks.report import Report, duration, markdown
from benchmarks.targets import Target, targets
from tigra.layers import DynamicPool


@pytest.fixture(autouse=True)
def threads_as_before():
    """Benchmarks set the number of threads; other tests want their own back."""
    with threadpool_limits(limits=threadpool_info()):
        yield


class Clock:
    """A clock that goes forward only when told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def work(self, *durations):
        """A call that takes these times one after the other, and then the last one for ever."""
        left = list(durations)

        def call():
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return call


def test_warm_up_is_not_counted():
    clock = Clock()
    work = clock.work(
        100.0, 0.1, 7.0, 0.2, 7.0, 0.4, 7.0, 0.3
    )  # to compile, to see how long; a call ahead of each turn
    times = take_turns([Contestant("a", work)], rounds=3, clock=clock)["a"]
    assert np.allclose(times.seconds, [0.2, 0.4, 0.3])
    assert (times.best, times.median) == (min(times.seconds), times.seconds[2])


def test_what_takes_seconds_warms_up_only_once():
    clock = Clock()
    times = take_turns([Contestant("a", clock.work(100.0, 1.0, 2.0, 4.0))], rounds=2, clock=clock)["a"]
    assert times.seconds == [2.0, 4.0]


def test_contestants_take_turns_and_slow_ones_fewer():
    clock, order = Clock(), []
    contestants = [
        Contestant("fast", clock.work(1.0), before=lambda: order.append("fast")),
        Contestant("slow", clock.work(9.0), before=lambda: order.append("slow"), most_rounds=1),
    ]
    times = take_turns(contestants, rounds=2, clock=clock)
    assert order == ["fast", "slow", "fast", "slow", "fast"]  # the first two warm up
    assert [len(times[name].seconds) for name in ("fast", "slow")] == [2, 1]
    assert ratio(times["slow"], times["fast"]) == 9.0


def test_short_calls_are_repeated_within_a_turn():
    clock, calls = Clock(), []
    work = clock.work(0.25)
    times = take_turns([Contestant("a", lambda: (work(), calls.append(1)))], rounds=1, shortest_turn=1.0, clock=clock)
    assert len(calls) == 2 + 1 + 4
    assert times["a"].seconds == [0.25]


def test_contestants_may_bring_their_own_clock():
    contestant = Contestant("a", lambda: 0.5, own_clock=True)
    assert take_turns([contestant], rounds=2, shortest_turn=1.0, clock=Clock())["a"].seconds == [0.5, 0.5]


def test_ratio_is_of_medians():
    assert ratio(Times([10.0, 20.0, 90.0]), Times([1.0, 2.0, 2.5])) == 10.0


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_exponent_is_that_of_the_upper_range(power):
    sizes = np.array([1, 2, 4, 8, 16, 32, 64, 128])
    seconds = 1e-3 * sizes**power
    seconds[:3] += 1.0  # an overhead among the small
    assert exponent(sizes, seconds) == pytest.approx(power)


def test_different_results_are_refused():
    assert_same("x", [1.0, 2.0], [1.0, 2.0 + 1e-9], 1e-8)
    for wrong in ([1.0, 2.001], [1.0, np.nan], [1.0]):
        with pytest.raises(AssertionError, match="x: "):
            assert_same("x", wrong, [1.0, 2.0], 1e-4)


def test_durations_and_tables():
    assert [duration(s) for s in (1.0, 0.25, 1.5e-6, 2e-7)] == ["1.00 s", "250 ms", "1.50 us", "0.20 us"]
    assert markdown(("a",), [("b",)]) == "| a |\n| --- |\n| b |"


@pytest.mark.parametrize("module", [harness, report])
def test_examples_in_docstrings(module):
    results = doctest.testmod(module)
    assert results.attempted > 0 and results.failed == 0


def test_a_race_prints_a_table_and_keeps_its_numbers(capsys):
    said = Report("x")
    said.race("Title", "x/size", {"tigra": Times([0.5]), "peer": Times([2.0])})
    assert "| peer | 2.00 s | 2.00 s | 4.00 | 1 |" in capsys.readouterr().out
    assert said.numbers["x/size/peer"] == {"best": 2.0, "median": 2.0, "rounds": 1, "ratio": 4.0}


def test_a_target_is_decided_by_the_strongest_peer():
    target = Target("x", 6.0, ("a", "b", "missing"))
    assert target.row({"a": {"ratio": 9.0}, "b": {"ratio": 5.0}}) == ("x", ">= 6", "5.00", "no")
    assert target.row({"a": {"ratio": 9.0}}) == ("x", ">= 6", "9.00", "yes")
    assert target.row({}) == ("x", ">= 6", "not measured", "-")
    assert Target("x", 1.05, ("a",), True, "exponent").row({"a": {"exponent": 1.2}})[3] == "no"


def test_no_victory_over_a_peer_that_was_hindered():
    target = Target("x", 6.0, ("step/2/a", "step/2/b"), on_one=("step/1/a", "step/1/b"))
    one = {"step/1/a": {"ratio": 2.0, "median": 0.1}, "step/1/b": {"ratio": 4.0, "median": 0.2}}
    busy = one | {"step/2/a": {"ratio": 90.0, "median": 4.5}, "step/2/b": {"ratio": 80.0, "median": 4.0}}
    quiet = one | {"step/2/a": {"ratio": 7.0, "median": 0.06}, "step/2/b": {"ratio": 14.0, "median": 0.12}}
    assert target.row(busy)[3].startswith("undecided")
    assert target.row(quiet)[3] == "yes"


def test_targets_name_peers_that_exist():
    if torch_or_none() is None:
        pytest.skip("torch is not installed: its peers cannot be named")
    names = {peer.name for peer in contenders.peer_classes(Settings())}
    asked = {
        path.split("/")[-1] for target in targets((1,)) for path in target.paths if path.startswith("step/MNIST-012")
    }
    assert asked <= names


def test_the_machine_is_described_without_its_name():
    about = heading(description())
    assert cpu_model() in about and "numpy" in about
    assert platform.node() not in about.split()


def test_sizes_give_the_numbers_of_their_last_layers():
    (rot,) = [size for size in problems.SIZES if size.name == "MNIST-rot"]
    numbers = bench_kernels.numbers_of(rot)
    assert numbers == {"maps": 20, "inputs": 10, "degree": 4, "n_active": 300, "max_order": 12}


def test_images_are_free_of_ties():
    problem = Problem(TINY, "float64")
    network = problem.network()
    signal = network.signal(network.prepare(problem.images))
    for layer in network.layers:
        signal = layer.forward(signal)
        if isinstance(layer, DynamicPool):
            assert (signal.active.sum(axis=1) == layer.n_active).all()
            if layer.n_active == 12:
                return


def test_work_counted_by_hand():
    work = bench_roofline.statistics_work(12)
    assert work["forward"]["flops"] == 13 * 12 + 5 * 13
    assert work["both"]["memory"] == 12
    reached = bench_roofline.fractions_reached(
        {"flops": 10, "cache": 4, "memory": 1}, 100, 2.0, {"sgemm": 1000, "L2 copy": 1000, "memory copy": 100}
    )
    assert reached == {"of sgemm": 0.5, "of L2 copy": 0.2, "of memory copy": 0.5, "of its roof": 0.5}


def without_torch(monkeypatch):
    monkeypatch.setattr(contenders, "torch_or_none", lambda: None)
    monkeypatch.setattr("benchmarks.bench_network.torch_or_none", lambda: None)


def test_every_benchmark_runs_in_its_tiniest_setting(monkeypatch, capsys, tmp_path):
    without_torch(monkeypatch)
    file = tmp_path / "numbers.json"
    numbers = run_all(list(BENCHMARKS), Settings(out=tmp_path).tiny(), file)
    out = capsys.readouterr().out
    assert contenders.NO_TORCH in out
    for name in BENCHMARKS:
        assert name in out and any(path.startswith(name) for path in numbers)
    assert json.loads(file.read_text())["numbers"].keys() == numbers.keys()
    assert (tmp_path / "growth.png").exists() or "matplotlib is not installed" in out


def test_a_wrong_peer_stops_the_benchmark(monkeypatch):
    without_torch(monkeypatch)
    right = contenders.ScipyPeer.loss_and_gradient

    def wrong(self, images, labels):
        loss, gradient = right(self, images, labels)
        return loss, 1.0001 * gradient

    monkeypatch.setattr(contenders.ScipyPeer, "loss_and_gradient", wrong)
    with pytest.raises(AssertionError, match="NumPy .* gradient"):
        contenders.check_in_double(TINY, Settings().tiny(), print)


def test_peers_in_torch_compute_the_same():
    if torch_or_none() is None:
        pytest.skip("torch is not installed: its peers cannot be compared")
    said = []
    contenders.check_in_double(TINY, Settings().tiny(), said.append)
    assert "PyTorch, gradients by hand" in said[0] and "dense operators" in said[0]


def test_unknown_names_are_refused(capsys):
    with pytest.raises(SystemExit):
        main(["kernel"])
    assert "unknown benchmark kernel; there are kernels, layers" in capsys.readouterr().err
