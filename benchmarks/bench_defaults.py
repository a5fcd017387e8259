"""The default networks: a training step and inference on 1 to 1000 images, against PyTorch and onnxruntime.

These are the networks that `tigra train` builds, recipe "best": oriented convolutions, batch normalisation, diffusion,
coarsening. `step` and `inference` race the paper's.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property, partial

import numpy as np

from benchmarks.contenders import NO_TORCH, NOT_COMPILED, RATE
from benchmarks.harness import Contestant, Mismatch, assert_same, take_turns
from benchmarks.machine import set_threads, torch_or_none
from benchmarks.peers.onnx_peer import OnnxPeer
from benchmarks.peers.tigra_peer import TigraPeer
from benchmarks.problems import Settings, blobs
from benchmarks.report import Report, duration
from tigra.errors import UsageError
from tigra.experiments.recipes import find_recipe
from tigra.models.build import build_network
from tigra.models.loss import negative_log_likelihood
from tigra.models.network import Network

BATCH = 48  # of the recipes
IMAGES = 1, 32, 100, 1000  # of inference
# relative errors of norms: loss, scores, gradient. In float32, rounding decides about nodes near the rectifier's kink.
TOLERANCES = {"float64": (1e-9, 1e-8, 1e-7), "float32": (1e-4, 1e-3, 5e-2)}
TINY = {"architecture": "OC[3, 2]-GC[2]-OC[4, 2]-S[1]-FC[5]", "diffusion": 1, "batch_norm": True, "margin": 1}


@dataclass(frozen=True)
class Default:
    """The default network of a data set."""

    dataset: str
    shape: tuple[int, int]
    n_classes: int

    @property
    def options(self) -> dict:
        """Options of `build_network`."""
        return TINY if self.dataset == "tiny" else asdict(find_recipe(self.dataset).network)

    def network(self, dtype: str, images: np.ndarray) -> Network:
        """A new network with running averages from one batch, and calibrated."""
        options = {**self.options, "dtype": dtype, "seed": 1}
        network = build_network(image_shape=self.shape, n_classes=self.n_classes, **options)
        network.calibrate(images)
        replica = network.replica(training=True)
        x = replica.signal(replica.prepare(images))
        for layer in replica.layers:
            if layer.uses_batch_statistics:
                layer.observe(layer.measure(x))
            x = layer.forward(x)
        return network


DEFAULTS = (
    Default("mnist-012", (28, 28), 3),
    Default("mnist-rot", (26, 26), 9),
    Default("mnist-trans", (34, 34), 9),
    Default("eth-80", (50, 50), 8),
)
SMALLEST = Default("tiny", (6, 6), 3)


class DefaultProblem:
    """A default network with made-up images and labels."""

    def __init__(self, default: Default, dtype: str = "float32", n_images: int = BATCH):
        rng = np.random.default_rng(0)
        self.default, self.dtype = default, dtype
        self.images = blobs(default.shape, n_images, rng).astype(dtype)
        self.labels = rng.integers(0, default.n_classes, n_images)

    def network(self) -> Network:
        """The same start values every time."""
        return self.default.network(self.dtype, self.images)

    @cached_property
    def rows(self) -> np.ndarray:
        """Prepared images (B, N): peers do without the check, the margin and the smoothing."""
        return self.network().prepare(self.images)

    @cached_property
    def reference(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Loss and gradient in training mode, and scores with running averages."""
        network = self.network()
        replica = network.replica(training=True)
        loss, grad = negative_log_likelihood(replica.forward(replica.signal(self.rows)), self.labels)
        replica.backward(grad)
        return float(loss), replica.gradients.copy(), network.scores(self.images)


def run(settings: Settings, report: Report) -> None:
    """Every data set, on every number of threads."""
    if torch_or_none() is None:
        report.write(NO_TORCH)
    elif not settings.compiled:
        report.write(NOT_COMPILED)
    names = {size.name.lower() for size in settings.sizes}
    defaults = [SMALLEST] if settings.scale == 0 else [default for default in DEFAULTS if default.dataset in names]
    for default in defaults:
        set_threads(1)
        for peer_class in _torch_peers(settings):
            if not getattr(peer_class, "may_not_run", False):
                problem = DefaultProblem(default, "float64", settings.check_batch)
                check(peer_class(problem.network(), RATE), problem)
        problem, ours = DefaultProblem(default), {}
        for threads in settings.threads:
            ours[threads] = _race_steps(problem, settings, threads, report)
            _race_inference(problem, settings, threads, report)
        _gain(ours, default, report)


def check(peer, problem: DefaultProblem) -> None:
    """Loss, gradient and scores of a peer against tigra's."""
    names = "loss", "scores", "gradient"
    loss, gradient = peer.loss_and_gradient(problem.rows, problem.labels)
    wanted = problem.reference
    for name, got, right, tolerance in zip(
        names,
        (loss, peer.scores(problem.rows), gradient),
        (wanted[0], wanted[2], wanted[1]),
        TOLERANCES[problem.dtype],
        strict=True,
    ):
        assert_same(f"{peer.name}, {problem.default.dataset}, {problem.dtype}, {name}", got, right, tolerance)


def _torch_peers(settings: Settings) -> list[type]:
    if torch_or_none() is None:
        return []
    from benchmarks.peers.torch_oriented import (
        ByHandOriented,
        ChannelsLastOriented,
        CompiledOriented,
        IdiomaticOriented,
    )

    compiled = [CompiledOriented] if settings.compiled else []
    return [*compiled, ByHandOriented, ChannelsLastOriented, IdiomaticOriented]


def _checked_peers(problem, settings, threads, report) -> list:
    peers = []
    for peer_class in _torch_peers(settings):
        set_threads(threads)
        try:
            peer = peer_class(problem.network(), RATE)
            check(peer, problem)
        except Mismatch:
            raise
        except Exception as error:
            if not getattr(peer_class, "may_not_run", False):
                raise
            report.write(f"{peer_class.name}: does not run here ({type(error).__name__}), left out.")
            continue
        peers.append(peer)
    return peers


def _race_steps(problem, settings, threads, report):
    """Training steps; returns tigra's times."""
    peers = _checked_peers(problem, settings, threads, report)
    tigra = TigraPeer(problem.network(), problem.images, problem.labels, threads, RATE, settings.clock)
    assert_same("tigra, loss of a step", tigra.loss_and_gradient(None, None)[0], problem.reference[0], 1e-4)
    contestants = [Contestant("tigra", tigra.timed_step, partial(set_threads, 1), own_clock=True)]
    contestants += [
        Contestant(peer.name, partial(peer.step, problem.rows, problem.labels), partial(set_threads, threads))
        for peer in peers
    ]
    times = _turns(contestants, settings)
    tigra.close()
    dataset = problem.default.dataset
    title = f"training step, default network of {dataset}, batch {len(problem.images)}, threads: {threads}"
    report.race(title, f"defaults/step/{dataset}/{threads}", times)
    return times["tigra"]


def _race_inference(problem, settings, threads, report) -> None:
    """Probabilities of images; PyTorch gets prepared ones, tigra and onnxruntime prepare them."""
    dataset, network = problem.default.dataset, problem.network()
    peers = _checked_peers(problem, settings, threads, report)
    try:
        onnx = OnnxPeer(network, threads)
        # float32 in another order: probabilities agree to a thousandth
        assert_same("onnxruntime", onnx.probabilities(problem.images), network.predict_proba(problem.images), 1e-3)
    except (ImportError, UsageError) as error:
        report.write(f"onnxruntime is left out: {error}.")
        onnx = None
    for n_images in IMAGES[: None if settings.scale else 1]:
        images = np.resize(problem.images, (n_images, *problem.images.shape[1:]))
        rows = np.resize(problem.rows, (n_images, problem.rows.shape[1]))
        before = partial(set_threads, threads)
        contestants = [Contestant("tigra", partial(network.predict_proba, images, threads), partial(set_threads, 1))]
        contestants += [Contestant(peer.name, partial(peer.scores, rows), before) for peer in peers]
        if onnx:
            contestants.append(Contestant(onnx.name, partial(onnx.probabilities, images), before))
        title = f"inference, default network of {dataset}, {n_images} images, threads: {threads}"
        report.race(title, f"defaults/inference/{dataset}/{n_images}/{threads}", _turns(contestants, settings))


def _turns(contestants, settings):
    return take_turns(
        contestants, settings.rounds, settings.shortest_turn, settings.rest, settings.longest, settings.clock
    )


def _gain(ours, default, report) -> None:
    """How much faster tigra is on several threads."""
    for threads, times in ours.items():
        if threads > 1 and 1 in ours:
            gain = ours[1].median / times.median
            report.numbers[f"defaults/step/{default.dataset}/{threads} threads against 1"] = {"ratio": gain}
            report.write(
                f"tigra, training step: {duration(ours[1].median)} on 1 thread, {gain:.2f} times faster on {threads}."
            )
