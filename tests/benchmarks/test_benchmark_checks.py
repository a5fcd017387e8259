"""First the same, then fast: one wrong peer for every check, and none is ever timed."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks import (
    bench_defaults,
    bench_kernels,
    bench_layers,
    bench_selection,
    contenders,
    problems,
)
from benchmarks.harness import Mismatch
from benchmarks.machine import torch_or_none
from benchmarks.peers import scipy_path
from benchmarks.problems import TINY, Problem, Settings
from benchmarks.report import Report
from tests.benchmarks.no_torch import without_torch


@pytest.fixture(autouse=True)
def threads_as_before():
    """Benchmarks set the number of threads; other tests want their own back."""
    with threadpool_limits(limits=threadpool_info()):
        yield


@pytest.fixture
def no_races(monkeypatch):
    """Nothing may be timed: what is wrong must be found before."""
    without_torch(monkeypatch)
    for module in (bench_kernels, bench_layers, bench_selection, "benchmarks.bench_network"):
        name = module if isinstance(module, str) else module.__name__
        monkeypatch.setattr(f"{name}.take_turns", lambda *_: pytest.fail("a wrong peer was timed"))


def spoilt(function, factor=1.01):
    """The function with results off by one part in a hundred; the sets of a selection with one node turned."""

    def wrong(*arguments):
        result = function(*arguments)
        if isinstance(result, np.ndarray) and result.dtype == bool:
            result = result.copy()
            result.flat[0] ^= True
            return result
        return tuple(factor * part for part in result) if isinstance(result, tuple) else factor * result

    return wrong


@pytest.mark.parametrize("name", ["powers", "powers_adjoint", "chebyshev_adjoint", "top_nodes"])
def test_a_wrong_peer_stops_the_kernels(no_races, monkeypatch, name):
    monkeypatch.setattr(scipy_path, name, spoilt(getattr(scipy_path, name)))
    first = {"powers": "laplacian_powers", "powers_adjoint": "laplacian_powers_adjoint"}.get(name, name)
    monkeypatch.setattr(bench_kernels, "KERNELS", {first: bench_kernels.KERNELS[first]})
    with pytest.raises(AssertionError, match="relative error"):
        bench_kernels.run(Settings().tiny(), Report("x"))


def test_a_wrong_recursion_stops_the_kernels(no_races, monkeypatch):
    right = scipy_path.chebyshev

    def wrong(shifted, doubled, x, terms):
        right(shifted, doubled, x, terms)
        terms[-1] *= 1.01

    monkeypatch.setattr(scipy_path, "chebyshev", wrong)
    monkeypatch.setattr(bench_kernels, "KERNELS", {"chebyshev": bench_kernels.KERNELS["chebyshev"]})
    with pytest.raises(AssertionError, match="chebyshev, SciPy CSR: relative error"):
        bench_kernels.run(Settings().tiny(), Report("x"))


@pytest.mark.parametrize("layer", ["ScipySpectralConvLayer", "NumpyPool", "ScipyStatisticsLayer"])
@pytest.mark.parametrize("what", ["forward", "backward"])
def test_a_wrong_peer_stops_the_layers(no_races, monkeypatch, layer, what):
    peer, cases = getattr(bench_layers, layer), bench_layers.cases
    monkeypatch.setattr(peer, what, spoilt(getattr(peer, what)))
    monkeypatch.setattr(bench_layers, "cases", lambda *a: (case for case in cases(*a) if isinstance(case[2], peer)))
    with pytest.raises(AssertionError, match="output" if what == "forward" else "gradient"):
        bench_layers.run(Settings().tiny(), Report("x"))


def test_a_wrong_peer_stops_the_selection(no_races, monkeypatch):
    monkeypatch.setattr(scipy_path, "top_nodes", spoilt(scipy_path.top_nodes))
    with pytest.raises(AssertionError):
        bench_selection.run(Settings().tiny(), Report("x"))


def test_wrong_thresholds_stop_the_selection():
    z = np.arange(12.0).reshape(1, 6, 2)
    active = z > 5
    bench_selection._check(active, active, np.array([5.0, 5.0]), z)
    with pytest.raises(AssertionError):
        bench_selection._check(active, active, np.array([5.0, 7.0]), z)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("what", ["loss", "scores", "gradient"])
def test_a_wrong_peer_stops_the_networks(monkeypatch, dtype, what):
    """By twice what is allowed, in the loss, in the scores, or in a single array of parameters."""
    loss_error, scores_error, gradient_error, _ = contenders.TOLERANCES[dtype]
    problem = Problem(TINY, dtype, 3)
    peer = contenders.ScipyPeer(contenders.Plan.of(problem.network()), 1e-3)
    contenders.check_peer(peer, problem, dtype)
    right_gradient, right_scores = peer.loss_and_gradient, peer.scores

    def wrong(rows, labels):
        loss, gradient = right_gradient(rows, labels)
        if what == "loss":
            loss *= 1 + 2 * loss_error
        if what == "gradient":
            gradient = gradient.copy()
            gradient[: problem.network().layers[0].params["alpha"].size] *= 1 + 3 * gradient_error
        return loss, gradient

    peer.loss_and_gradient = wrong
    if what == "scores":
        peer.scores = lambda rows: right_scores(rows) * (1 + 2 * scores_error)
    with pytest.raises(AssertionError, match=what):
        contenders.check_peer(peer, problem, dtype)


def test_a_wrong_float32_peer_stops_the_race(no_races, monkeypatch):
    wrong = spoilt(contenders.ScipyPeer.scores)
    monkeypatch.setattr(contenders.ScipyPeer, "scores", wrong)
    with pytest.raises(AssertionError, match="NumPy .*, float32, scores"):
        contenders.checked_peers(Problem(TINY), Settings().tiny(), 1, print)


@pytest.mark.parametrize("error", [RuntimeError, AssertionError])  # torch.compile raises either
def test_a_peer_that_cannot_run_here_is_left_out_and_the_results_say_so(monkeypatch, error):
    class NeedsCompiler(contenders.ScipyPeer):
        name, may_not_run = "needs a compiler", True

        def __init__(self, plan, rate):
            raise error("there is none")

    monkeypatch.setattr(contenders, "peer_classes", lambda settings: [contenders.ScipyPeer, NeedsCompiler])
    said = []
    (peer,) = contenders.checked_peers(Problem(TINY), Settings().tiny(), 1, said.append)
    assert type(peer) is contenders.ScipyPeer and said == [
        f"needs a compiler: does not run here ({error.__name__}), left out."
    ]
    NeedsCompiler.may_not_run = False
    with pytest.raises(error, match="there is none"):
        contenders.checked_peers(Problem(TINY), Settings().tiny(), 1, said.append)


@pytest.mark.parametrize("is_wrong", [False, True])
def test_a_compiled_peer_of_the_defaults_may_fail_to_run_but_not_be_wrong(monkeypatch, is_wrong):
    class Compiled:
        name, may_not_run = "compiled", True

        def __init__(self, network, rate):
            self.network = network

        def loss_and_gradient(self, rows, labels):
            assert is_wrong, "inside of the compiler"
            return 0.0, np.zeros(self.network.n_parameters)

        def scores(self, rows):
            return np.zeros((len(rows), 3))

    monkeypatch.setattr(bench_defaults, "_torch_peers", lambda settings: [Compiled])
    problem, report = bench_defaults.DefaultProblem(bench_defaults.SMALLEST), Report("x")
    if is_wrong:
        with pytest.raises(Mismatch, match="compiled, tiny, float32, loss"):
            bench_defaults._checked_peers(problem, Settings().tiny(), 1, report)
    else:
        assert bench_defaults._checked_peers(problem, Settings().tiny(), 1, report) == []
        assert report.text == ["compiled: does not run here (AssertionError), left out."]


def test_a_wrong_peer_stops_the_benchmark(monkeypatch):
    without_torch(monkeypatch)
    right = contenders.ScipyPeer.loss_and_gradient

    def wrong(self, images, labels):
        loss, gradient = right(self, images, labels)
        return loss, 1.0001 * gradient

    monkeypatch.setattr(contenders.ScipyPeer, "loss_and_gradient", wrong)
    with pytest.raises(AssertionError, match="NumPy .* gradient"):
        contenders.check_in_double(TINY, Settings().tiny(), print)


def test_a_wrong_adam_stops_the_benchmark(monkeypatch):
    """Its rate is off by one part in a thousand: the gradients are right, the two steps are not."""
    without_torch(monkeypatch)
    right = scipy_path.NumpyAdam.__init__
    monkeypatch.setattr(
        scipy_path.NumpyAdam, "__init__", lambda self, parameters, rate: right(self, parameters, 1.001 * rate)
    )
    with pytest.raises(AssertionError, match="two steps"):
        contenders.check_in_double(TINY, Settings().tiny(), print)


@pytest.mark.parametrize("threads", [1, 2])
def test_tigra_itself_is_compared_on_its_threads(monkeypatch, threads):
    many = problems.Size(TINY.name, TINY.architecture, TINY.shape, TINY.n_classes, 40)  # two micro-batches
    problem = Problem(many)
    tigra = contenders.checked_tigra(problem, threads)
    tigra.timed_step()
    with pytest.raises(ValueError, match="first step"):
        tigra.loss_and_gradient(None, None)
    tigra.close()
    right = contenders.TigraPeer.loss_and_gradient
    monkeypatch.setattr(contenders.TigraPeer, "loss_and_gradient", spoilt(right))
    with pytest.raises(AssertionError, match="tigra, float32, loss"):
        contenders.checked_tigra(problem, threads)


def test_peers_in_torch_compute_the_same():
    if torch_or_none() is None:
        pytest.skip("torch is not installed: its peers cannot be compared")
    said = []
    contenders.check_in_double(TINY, Settings().tiny(), said.append)
    assert "PyTorch, gradients by hand" in said[0] and "dense operators" in said[0]
