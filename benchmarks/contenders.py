"""Who races against tigra with whole networks, and the proof that all compute the same."""

from __future__ import annotations

from benchmarks.harness import Mismatch, assert_same
from benchmarks.machine import set_threads, torch_or_none
from benchmarks.peers.plan import Plan
from benchmarks.peers.scipy_path import ScipyPeer
from benchmarks.peers.tigra_peer import TigraPeer
from benchmarks.problems import Problem, Settings, Size

RATE = 1e-5  # of Adam while the clock runs: the network hardly changes
CHECK_RATE = 1e-2  # of Adam in the check
# relative errors of norms: loss, scores, gradient of each array of parameters, change of the parameters in two steps
TOLERANCES = {
    "float64": (1e-9, 1e-9, 1e-8, 1e-4),
    "float32": (1e-4, 1e-4, 2e-2, None),
}  # float64 proves that all compute the same. In float32 the gradient of alpha cancels over nodes, and a node
# near the edge of an active set may change sides: 7.0e-3 were seen for ETH-80, NumPy + SciPy.
NO_TORCH = "torch is not installed: its rows are left out."
NOT_COMPILED = "torch.compile was left out (--no-compile): there are no rows of what it makes."


def peer_classes(settings: Settings) -> list[type]:
    """All peers that can run here, the slowest last."""
    if torch_or_none() is None:
        return [ScipyPeer]
    from benchmarks.peers.torch_by_hand import ByHandPeer, CompiledPeer
    from benchmarks.peers.torch_csr import CsrPeer
    from benchmarks.peers.torch_dense import DenseOperatorPeer
    from benchmarks.peers.torch_idiomatic import IdiomaticPeer, IdiomaticSlicesPeer

    compiled = [CompiledPeer] if settings.compiled else []
    return [ScipyPeer, *compiled, ByHandPeer, CsrPeer, IdiomaticPeer, IdiomaticSlicesPeer, DenseOperatorPeer]


def check_in_double(size: Size, settings: Settings, say) -> None:
    """All peers against tigra in float64, on a few images of the full size, through two steps of Adam.

    The change of the parameters may differ by more than the gradient: Adam divides by its size, and
    a gradient that is 0 but for rounding is worth a whole step.
    """
    problem = Problem(size, "float64", settings.check_batch)
    start = problem.network().parameters.copy()
    ours = TigraPeer(problem.network(), problem.images, problem.labels, 1, CHECK_RATE)
    for _ in range(2):
        ours.timed_step()
    change = ours.network.parameters - start
    ours.close()
    classes = [peer for peer in peer_classes(settings) if getattr(peer, "checked_in_double", True)]
    for peer_class in classes:
        peer = peer_class(Plan.of(problem.network()), CHECK_RATE)
        check_peer(peer, problem, "float64")
        for _ in range(2):
            peer.step(problem.rows, problem.labels)
        assert_same(f"{peer.name}, two steps", peer.parameters - start, change, TOLERANCES["float64"][3])
    names = "; ".join(peer.name for peer in classes)
    say(f"{size.name}, float64, gradient within {TOLERANCES['float64'][2]:.0e} of tigra's: {names}.")


def check_peer(peer, problem: Problem, dtype: str) -> None:
    """Loss, scores and gradient of a peer against those of tigra's network; the gradient array by array."""
    wanted_loss, wanted_gradient, wanted_scores = problem.reference
    for_loss, for_scores, for_gradient, _ = TOLERANCES[dtype]
    scores = peer.scores(problem.rows)
    loss, gradient = peer.loss_and_gradient(problem.rows, problem.labels)
    assert_same(f"{peer.name}, {dtype}, loss", loss, wanted_loss, for_loss)
    assert_same(f"{peer.name}, {dtype}, scores", scores, wanted_scores, for_scores)
    start = 0
    for number, array in enumerate(Plan.of(problem.network()).arrays):
        part, start = slice(start, start + array.size), start + array.size
        what = f"{peer.name}, {dtype}, gradient of array {number} {array.shape}"
        assert_same(what, gradient[part], wanted_gradient[part], for_gradient)


def checked_tigra(problem: Problem, threads: int) -> TigraPeer:
    """tigra on a number of threads in float32, its first step and its scores compared like those of a peer."""
    tigra = TigraPeer(problem.network(), problem.images, problem.labels, threads, RATE)
    check_peer(tigra, problem, problem.dtype.name)
    return tigra


def checked_peers(problem: Problem, settings: Settings, threads: int, say) -> list:
    """Peers in float32, compiled and checked for a number of threads."""
    peers = []
    for peer_class in peer_classes(settings):
        set_threads(threads)
        try:
            peer = peer_class(Plan.of(problem.network()), RATE)
            check_peer(peer, problem, "float32")
        except Mismatch:
            raise
        except Exception as error:
            if not getattr(peer_class, "may_not_run", False):
                raise
            say(f"{peer_class.name}: does not run here ({type(error).__name__}), left out.")
            continue
        peers.append(peer)
    return peers
