"""The benchmarks' own arithmetic, and that what they compare is the same. No test looks at the time it takes."""

import doctest
import json
import platform
import re
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks import (
    bench_growth,
    bench_kernels,
    bench_memory,
    bench_roofline,
    bench_startup,
    contenders,
    harness,
    ideas,
    problems,
    report,
    results,
)
from benchmarks.__main__ import BENCHMARKS, main, run_all
from benchmarks.harness import (
    Contestant,
    Times,
    assert_same,
    exponent,
    fitted_sizes,
    ratio,
    take_turns,
)
from benchmarks.machine import (
    cpu_model,
    description,
    heading,
    set_threads,
    thread_counts,
    torch_or_none,
)
from benchmarks.problems import TINY, Problem, Settings
from benchmarks.report import Report, duration, markdown
from benchmarks.targets import Target, targets
from tests.benchmarks.no_torch import without_torch
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


def test_who_takes_long_has_fewer_rounds():
    clock = Clock()
    contestants = [Contestant("fast", clock.work(0.5)), Contestant("slow", clock.work(2.0))]
    times = take_turns(contestants, rounds=9, longest=8.0, clock=clock)
    assert [len(times[name].seconds) for name in ("fast", "slow")] == [8, 4]
    times = take_turns(contestants, rounds=9, longest=0.1, clock=clock)
    assert [len(times[name].seconds) for name in ("fast", "slow")] == [harness.FEWEST_ROUNDS] * 2


def test_times_are_those_of_a_real_clock():
    """A sleep takes at least as long as it was told to; ten times as long only on a machine that hangs."""
    (times,) = take_turns([Contestant("a", lambda: time.sleep(0.02))], rounds=3, shortest_turn=0.0).values()
    assert 0.0199 <= times.best < 0.2


def test_ratio_is_of_medians():
    assert ratio(Times([10.0, 20.0, 90.0]), Times([1.0, 2.0, 2.5])) == 10.0


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_exponent_is_that_of_the_upper_range(power):
    sizes = np.array([1, 2, 4, 8, 16, 32, 64, 128])
    seconds = 1e-3 * sizes**power
    seconds[:3] += 1.0  # an overhead among the small
    assert exponent(sizes, seconds) == pytest.approx(power)
    assert fitted_sizes(sizes)[0] == 16 and fitted_sizes(sizes, 1)[0] == 1
    assert exponent(sizes, seconds, share=1) < power - 0.05


def test_different_results_are_refused():
    assert_same("x", [1.0, 2.0], [1.0, 2.0 + 1e-9], 1e-8)
    for wrong in ([1.0, 2.001], [1.0, np.nan], [1.0]):
        with pytest.raises(AssertionError, match="x: "):
            assert_same("x", wrong, [1.0, 2.0], 1e-4)


def test_durations_and_tables():
    assert [duration(s) for s in (1.0, 0.25, 1.5e-6, 2e-7)] == ["1.00 s", "250 ms", "1.50 us", "0.20 us"]
    assert markdown(("a",), [("b",)]) == "| a |\n| --- |\n| b |"


@pytest.mark.parametrize("module", [harness, report, results, bench_memory, ideas])
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


def test_fractions_of_the_peaks():
    assert bench_roofline.statistics_work(12)["both"]["memory"] == 12
    reached = bench_roofline.fractions_reached(
        {"flops": 10, "cache": 4, "memory": 1}, 100, 2.0, {"sgemm": 1000, "L2 copy": 1000, "memory copy": 100}
    )
    assert reached == {"of sgemm": 0.5, "of L2 copy": 0.2, "of memory copy": 0.5, "of its roof": 0.5}


def test_peaks_are_flops_and_bytes_over_seconds(monkeypatch):
    """A product of n x n matrices is 2 n^3 flops; a copy of n bytes moves 2 n, many times over where n is small."""
    monkeypatch.setattr(bench_roofline, "take_turns", lambda c, *_: {each.name: Times([2.0]) for each in c})
    peaks = bench_roofline.measure_peaks(Settings().tiny())
    assert peaks == {"sgemm": 32**3, "L2 copy": 2**20, "memory copy": 2**20}


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory):
    """All benchmarks in their tiniest setting: (numbers, text, folder)."""
    folder = tmp_path_factory.mktemp("benchmarks")
    with pytest.MonkeyPatch.context() as monkeypatch, threadpool_limits(limits=threadpool_info()):
        without_torch(monkeypatch)
        numbers, text = run_all(list(BENCHMARKS), Settings(out=folder).tiny(), folder / "numbers.json")
    return numbers, text, folder


@pytest.mark.slow
def test_every_benchmark_runs_in_its_tiniest_setting(tiny_run):
    numbers, text, folder = tiny_run
    for name in BENCHMARKS:
        assert name in text and any(path.startswith(name) for path in numbers)
    assert contenders.NO_TORCH in text  # who reads the results must know who is missing
    assert json.loads((folder / "numbers.json").read_text())["numbers"].keys() == numbers.keys()
    assert (folder / "growth.png").exists() or torch_or_none() is None
    assert not list(folder.glob("*.part")) and str(folder) not in text


@pytest.mark.slow
def test_every_table_has_a_title(tiny_run):
    tables = results.tables_of(tiny_run[1])
    assert len(tables) == tiny_run[1].count("| --- |\n") >= 15
    titles = {title for title, _, _ in tables}
    assert "training step, tiny, 6x7, batch 5, threads: 1" in titles and "Peaks, 1 thread" in titles
    assert sum(title.startswith("Memory of training, tiny") for title in titles) == 1


def test_the_kept_results_are_of_a_whole_run():
    """Every benchmark has its section, every size and every number of threads its tables."""
    block = results.block_of(results.RESULTS.read_text(encoding="utf-8"))
    sections = {name for line in re.findall(r"^#### (.*)$", block, re.MULTILINE) for name in line.split(", ")}
    assert sections == set(BENCHMARKS)
    titles = [title for title, _, _ in results.tables_of(block)]
    for size in problems.SIZES:
        for n in Settings().threads:
            assert any(size.name in title and f"threads: {n}" in title for title in titles)
    assert titles[-1] == "Targets"


@pytest.mark.parametrize("flag", ["--write", "--readme"])
def test_a_whole_run_goes_into_the_results_and_leaves_the_rest_alone(monkeypatch, tmp_path, capsys, flag):
    page, begin, end = tmp_path / "RESULTS.md", "<!-- results: begin (by a program) -->", "<!-- results: end -->"
    page.write_text(f"before\n{begin}\nold\n{results.STALE}\n{end}\nafter\n")
    monkeypatch.setattr("benchmarks.__main__.RESULTS", page)
    monkeypatch.setattr("benchmarks.__main__.run_all", lambda *_: ({}, "**New**"))
    main([flag])
    assert page.read_text() == f"before\n{begin}\n\n**New**\n\n{end}\nafter\n"
    for words in ([flag, "--quick"], [flag, "--size", "ETH-80"]):
        with pytest.raises(SystemExit):
            main(words)
        assert "--write takes a whole run" in capsys.readouterr().err


def test_a_partial_run_renews_its_section_and_leaves_the_others_and_the_targets_alone(monkeypatch, tmp_path):
    page, begin, end = tmp_path / "RESULTS.md", "<!-- results: begin -->", "<!-- results: end -->"
    page.write_text(f"{begin}\n\nold\n\n#### kernels\n\nk\n\n#### growth\n\ng\n\n**Targets**\n\nt\n\n{end}\n")
    monkeypatch.setattr("benchmarks.__main__.RESULTS", page)
    monkeypatch.setattr(
        "benchmarks.__main__.run_all", lambda *_: ({}, "today\n\n#### growth\n\nnew\n\n**Targets**\n\nx")
    )
    main(["growth", "--quick", "--write"])
    section = "#### growth\n\nMeasured apart: today\n\n`python -m benchmarks growth --quick`\n\nnew"
    assert page.read_text() == f"{begin}\n\nold\n\n#### kernels\n\nk\n\n{section}\n\n**Targets**\n\nt\n\n{end}\n"


def test_a_block_is_found_by_its_name_and_two_of_one_name_are_refused():
    text = "<!-- a: begin --> 1 <!-- a: end --> <!-- a, b: begin --> 2 <!-- a, b: end -->"
    assert (results.block_of(text, "a"), results.block_of(text, "a, b")) == ("1", "2")
    with pytest.raises(ValueError):
        results.block_of(text + text, "a")


def test_numbers_are_saved_after_every_table(monkeypatch, tmp_path):
    """A run that is cut off in its second table keeps the first."""
    file = tmp_path / "numbers.json"

    def cut_off(settings, said):
        said.race("First", "x/size", {"tigra": Times([0.5])})
        raise KeyboardInterrupt

    monkeypatch.setitem(BENCHMARKS, "kernels", cut_off)
    with pytest.raises(SystemExit, match="The numbers so far are in"):
        main(["kernels", "--json", str(file)])
    assert json.loads(file.read_text())["numbers"]["x/size/tigra"]["best"] == 0.5


@pytest.mark.parametrize(
    "words, message",
    [
        (["--json", "/nonexistent/x.json"], "no file can be written there"),
        (["--json", "/"], "no file can be written there"),
        (["--out", "/dev/null/x"], "cannot be made"),
        (["--threads", "0"], "--threads must be at least 1, got 0"),
        (["--threads", "2", "--threads", "-1"], "at least 1, got -1"),
    ],
)
def test_mistakes_are_found_before_the_work(monkeypatch, capsys, words, message):
    monkeypatch.setattr("benchmarks.__main__.run_all", lambda *_: pytest.fail("the work began"))
    with pytest.raises(SystemExit):
        main(["step", *words])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("threads", [1, 2, 1])
def test_threads_are_as_they_were_set(threads):
    set_threads(threads)
    counts = {library["num_threads"] for library in threadpool_info()}
    assert counts == {threads}
    assert set(re.findall(r" (\d+)(?:,|$)", thread_counts())) == {str(threads)}


def test_targets_are_those_that_were_asked_for():
    """(what, limit) as written down before anything was measured."""
    asked = {
        ("training step, MNIST-rot, idiomatic PyTorch", 16),
        ("training step, MNIST-rot, PyTorch with sparse CSR", 7),
        ("training step, MNIST-rot, fastest PyTorch found", 3),
        ("training step, MNIST-rot, dense operators", 100),
        ("inference, MNIST-rot, idiomatic PyTorch", 15),
        ("inference, MNIST-rot, PyTorch with sparse CSR", 6),
        ("inference, MNIST-rot, fastest PyTorch found", 6),
        *((f"training step, {size}, idiomatic PyTorch", 10) for size in ("MNIST-012", "ETH-80")),
        *((f"training step, {size}, PyTorch with sparse CSR", 5) for size in ("MNIST-012", "ETH-80")),
        *((f"training step, {size}, fastest PyTorch found", 5) for size in ("MNIST-012", "ETH-80")),
        ("default network, training step, idiomatic PyTorch", 10),
        ("default network, training step, fastest PyTorch found", 4),
        ("default network, inference, 100 images, onnxruntime and compiled PyTorch", 3),
        ("default network, inference, one image, onnxruntime", 1),
        ("two threads against one, default network, training step", 1.7),
        ("statistics forward and backward, MNIST-rot, SciPy CSR", 6),
        ("selection, MNIST-rot, np.partition", 1.5),
        ("two threads against one, training step, MNIST-rot", 1.7),
        *((f"exponent of cost in N, {layer}", 1.05) for layer in ("SpectralConv", "DynamicPool", "Statistics")),
        *((f"exponent of cost in N, {layer}", 1.05) for layer in ("OrientedConv", "MapNorm", "Coarsen")),
        *((f"Conv, {size}, {place}, PyTorch", 0.5) for size in ("MNIST-rot", "ETH-80") for place in ("1st", "2nd")),
        *((f"HarmonicConv, ETH-80, {maps}, PyTorch", 0.5) for maps in ("10 to 10", "20 to 20")),
        ("tigra --help against import click", 2),
    }
    found = targets((1, 2))
    assert {(re.sub(r", \d threads?$", "", target.what), target.limit) for target in found} == asked
    assert len(found) == 2 * 17 + 17
    below = {target.what for target in found if target.at_most}
    assert below == {what for what, _ in asked if "exponent" in what or "help" in what}


def test_growth_is_of_layers_that_use_their_arrays_again(monkeypatch):
    kept = []
    replica = DynamicPool.replica
    monkeypatch.setattr(
        DynamicPool,
        "replica",
        lambda self, keeps_results: (kept.append(keeps_results), replica(self, keeps_results))[1],
    )
    bench_growth.make_pass("DynamicPool", bench_growth.Site(side=4))()
    assert kept == [False]


def test_unknown_names_are_refused(capsys):
    with pytest.raises(SystemExit):
        main(["kernel"])
    assert "unknown benchmark kernel; there are kernels, layers" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", bench_startup.PROGRAMS)
def test_programs_of_the_start_up_benchmark_end_well(name):
    bench_startup.start(bench_startup.PROGRAMS[name])
