"""The targets of the issues, each with the numbers of a run that decide it."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.bench_baselines import CASES
from benchmarks.report import Report

IDIOMATIC = ("PyTorch, idiomatic, conv2d", "PyTorch, idiomatic, slices")
CSR = ("PyTorch, sparse CSR, batch last",)
FASTEST = (*CSR, "PyTorch, gradients by hand", "PyTorch, gradients by hand, compiled")
DENSE = ("PyTorch, dense operators",)
FASTEST_DEFAULT = tuple(f"PyTorch, channels last{how}" for how in ("", ", gradients of stencils by hand", ", compiled"))
BUSY = "undecided: this peer was slower than on 1 thread, as on a busy machine"


@dataclass(frozen=True)
class Target:
    """A wish about numbers.

    paths : where the numbers lie; of several that exist, the smallest ratio counts (the strongest peer), or the
        largest if it must stay below the limit
    on_one : the same paths on one thread, where `paths` are on several. Threads that wait for each other on a busy
        machine can take many times longer than one; a victory over these would be none
    instead : what holds if the number is not reached, where the wish allows for it
    """

    what: str
    limit: float
    paths: tuple[str, ...]
    at_most: bool = False
    key: str = "ratio"
    on_one: tuple[str, ...] = ()
    instead: str = "no"

    def got(self, numbers: dict) -> float | None:
        """The number that decides, None if it was not measured."""
        found = [numbers[path][self.key] for path in self.paths if path in numbers]
        if not found:
            return None
        return max(found) if self.at_most else min(found)

    def hindered(self, numbers: dict) -> bool:
        """Whether the fastest peer took longer than the fastest one on a single thread."""
        several, one = ([numbers[p]["median"] for p in paths if p in numbers] for paths in (self.paths, self.on_one))
        return bool(several and one) and min(several) > 1.1 * min(one)

    def row(self, numbers: dict) -> tuple[str, str, str, str]:
        """What, wanted, got, yes or no."""
        got = self.got(numbers)
        wanted = f"{'<=' if self.at_most else '>='} {self.limit:g}"
        if got is None:
            return self.what, wanted, "not measured", "-"
        reached = got <= self.limit if self.at_most else got >= self.limit
        if reached and self.on_one and self.hindered(numbers):
            return self.what, wanted, f"{got:.2f}", BUSY
        return self.what, wanted, f"{got:.2f}", "yes" if reached else self.instead


def _against(title, what, size, peers, limit, threads) -> list[Target]:
    """One target for each number of threads."""

    def paths(n):
        return tuple(f"{what}/{size}/{n}/{peer}" for peer in peers)

    return [
        Target(f"{title}, {n} thread{'s' * (n > 1)}", limit, paths(n), on_one=paths(1) if n > 1 else ())
        for n in threads
    ]


def targets(threads) -> list[Target]:
    """All targets, for the numbers of threads that were run."""
    rot = "MNIST-rot"
    found = []
    for what, title, limits in (("step", "training step", (16, 7, 3)), ("inference", "inference", (15, 6, 6))):
        found += _against(f"{title}, {rot}, idiomatic PyTorch", what, rot, IDIOMATIC, limits[0], threads)
        found += _against(f"{title}, {rot}, PyTorch with sparse CSR", what, rot, CSR, limits[1], threads)
        found += _against(f"{title}, {rot}, fastest PyTorch found", what, rot, FASTEST, limits[2], threads)
    found += _against(f"training step, {rot}, dense operators", "step", rot, DENSE, 100, threads)
    for size in ("MNIST-012", "ETH-80"):
        found += _against(f"training step, {size}, idiomatic PyTorch", "step", size, IDIOMATIC, 10, threads)
        found += _against(f"training step, {size}, PyTorch with sparse CSR", "step", size, CSR, 5, threads)
        found += _against(f"training step, {size}, fastest PyTorch found", "step", size, FASTEST, 5, threads)
    found += _of_defaults(threads)
    scipy = tuple(f"layers/Statistics/{rot}/SciPy CSR, {how}" for how in ("micro-batches", "whole batch"))
    help_path = "startup/tigra --help"
    return [
        *found,
        Target(f"statistics forward and backward, {rot}, SciPy CSR", 6, scipy),
        Target(
            f"selection, {rot}, np.partition",
            1.5,
            (f"selection/{rot}/np.partition, nodes last, thresholds only",),
            instead="no; tigra uses it, and turns its layout around before",
        ),
        Target(f"two threads against one, training step, {rot}", 1.7, (f"step/{rot}/2 threads against 1",)),
        *(
            Target(f"exponent of cost in N, {layer}", 1.05, (f"growth/nodes N/{layer}",), True, "exponent")
            for layer in ("SpectralConv", "DynamicPool", "Statistics", "OrientedConv", "MapNorm", "Coarsen")
        ),
        *(
            Target(f"{case.name}, PyTorch, 1 thread", 0.5, (f"baselines/{case.name}/PyTorch",))
            for case in CASES
            if case.name.startswith(("Conv", "HarmonicConv"))
        ),
        Target("tigra --help against import click", 2, (help_path,), True),
    ]


def _of_defaults(threads) -> list[Target]:
    """The default network of MNIST-rot."""
    step, inference = "defaults/step", "defaults/inference"
    title, rot, one = "default network, training step", "mnist-rot", "mnist-rot/1"
    return [
        *_against(f"{title}, idiomatic PyTorch", step, rot, ("PyTorch, idiomatic",), 10, threads),
        *_against(f"{title}, fastest PyTorch found", step, rot, FASTEST_DEFAULT, 4, threads),
        *_against(
            "default network, inference, 100 images, onnxruntime and compiled PyTorch",
            inference,
            "mnist-rot/100",
            ("onnxruntime", FASTEST_DEFAULT[-1]),
            3,
            threads,
        ),
        *_against("default network, inference, one image, onnxruntime", inference, one, ("onnxruntime",), 1, threads),
        Target(f"two threads against one, {title}", 1.7, (f"{step}/{rot}/2 threads against 1",)),
    ]


def print_targets(report: Report, numbers: dict, threads) -> None:
    """The table of targets of which anything was measured."""
    rows = [target.row(numbers) for target in targets(threads)]
    rows = [row for row in rows if row[3] != "-"]
    if rows:
        report.table("Targets", ("what", "wanted", "got", "reached"), rows)
