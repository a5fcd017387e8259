"""Several layers in one call: the same bits as the layers one by one, and no call with old weights."""

import contextlib

import numpy as np
import pytest

import tigra
from tests.models.test_oriented import ORIENTED, observe
from tigra.graph import GraphSignal
from tigra.kernels.workspace import Workspace
from tigra.layers import Coarsen, Dense, MapNorm, OrientedConv
from tigra.models.prediction import tiles
from tigra.models.prediction.stages import stages_of
from tigra.models.prediction.tiles import through_stages

TEXTS = {  # text -> number of layers in stages, with statistics and the head
    "OC[3, 2]-GC[2]-OC[5, 2]-OC[4, 1]-GC[2]-OC[7, 3]-S[2]-FC[5]": 15,
    "OC[3, 2]-GC[2]-S[2]-FC[5]-FC[4]": 10,
    "OC[3, 2]-OC[9, 2]-DP[20]-S[1]-FC[5]": 4,
    "OC[3, 2]-GC[2]-OC[4, 2]-GD[2]-OC[4, 2]-S[1]-FC[5]": 7,
    "OC[3, 2]-GC[2]-S[2]": 6,
    "OC[3, 2]-GC[2]-GC[2]-S[2]": 3,
    "SC[3, 2]-DP[20]-S[1]-FC[5]": 0,
}


def trained(text, shape=(10, 9), dtype="float32", n=7, **options):
    """A network with running averages of images, and the images."""
    options = (ORIENTED if "OC" in text else {}) | options
    network = tigra.build_network(text, shape, 3, dtype=dtype, seed=1, **options)
    images = np.random.default_rng(0).uniform(size=(n, *network.image_shape)).astype(dtype)
    network.calibrate(images)
    if "OC" in text:
        observe(network, images)
    return network, images


def one_by_one(network, images, until=None):
    return network.forward(network.signal(network.prepare(images)), until)


@pytest.mark.parametrize("n", [7, 8])
def test_a_change_of_the_graph_of_the_statistics_is_noticed(n):
    """Behind a coarsening, no convolution has that graph."""
    network, images = trained("OC[3, 2]-GC[2]-S[2]-FC[5]")
    images = np.concatenate([images, images])[:n]
    before, graph = network.scores(images), network.layers[3].graph
    graph.stencil = graph.stencil._replace(straight=0.3)
    after = network.scores(images)
    assert not np.any(np.all(after == before, axis=1))
    np.testing.assert_array_equal(after, one_by_one(network.replica(), images).T)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("text", TEXTS)
def test_stages_have_the_bits_of_the_layers_one_by_one(text, dtype, monkeypatch):
    network, images = trained(text, dtype=dtype)
    rows = network.prepare(images)
    for n, tile_bytes in [(1, 2**20), (2, 2**20), (7, 2**20), (7, 1)]:
        monkeypatch.setattr(tiles, "TILE_BYTES", tile_bytes)  # tiles of four, two and one, or of one only
        found, n_layers = through_stages(network.layers, rows[:n], 1, Workspace())
        assert n_layers == TEXTS[text]
        wanted = one_by_one(network, images[:n], n_layers)
        if n_layers and isinstance(wanted, GraphSignal):
            found, wanted = found.values, wanted.values
        if n_layers:
            np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(network.scores(images[:n]), one_by_one(network, images[:n]).T)


def test_fewer_tiles_than_before_use_the_first_of_the_arrays():
    network, images = trained("OC[3, 2]-GC[2]-OC[4, 2]-S[1]-FC[5]")
    images = np.concatenate([images] * 4)  # three tiles of eight, then fewer, and more again
    for n in (28, 12, 24, 9, 28):
        np.testing.assert_array_equal(network.scores(images[:n]), one_by_one(network, images[:n]).T)


def test_colour_and_every_place_to_stop_at():
    text = "OC[3, 2]-GC[2]-OC[4, 2]-S[1]-FC[5]"
    network, images = trained(text, (8, 6, 3))
    for until in range(1, len(network.layers) + 1):
        found = network._through(images, until, 1) if until > 5 else None
        wanted = one_by_one(network, images, until)
        if found is not None:
            np.testing.assert_array_equal(found, wanted.T)
        signal, n_layers = through_stages(network.layers[:until], network.prepare(images), 3, Workspace())
        assert n_layers == [0, 2, 3, 3, 5, 6, 7, 8, 9, 10][until - 1]
        if 0 < n_layers <= 5:
            np.testing.assert_array_equal(signal.values, one_by_one(network, images, n_layers).values)


def test_weights_may_change_between_calls():
    network, images = trained("OC[3, 2]-GC[2]-OC[4, 2]-S[1]-FC[5]")
    before = network.scores(images)
    network.parameters *= 1.5
    network.layers[1].state["running_mean"] += 0.25
    network.layers[4].diffusion = 0
    changed = network.scores(images)
    assert not np.array_equal(changed, before)
    np.testing.assert_array_equal(changed, one_by_one(network, images).T)


def test_weights_and_graphs_that_a_plan_cannot_refer_to_are_read_anew():
    def as_layers(network, images):  # of a replica: a plan must not notice
        return one_by_one(network.replica(), images).T

    network, images = trained("OC[3, 2]-GC[2]-OC[4, 2]-S[1]-FC[5]")
    last = network.layers[3]
    network.layers[3] = OrientedConv(last.graph, last.params["alpha"].copy(), np.asfortranarray(last.params["pairs"]))
    for change in (
        lambda layer: np.multiply(layer.params["pairs"], 2, out=layer.params["pairs"]),
        lambda layer: setattr(layer.graph, "diagonal_weight", 0.5),
        lambda layer: setattr(layer, "__class__", type("Own", (OrientedConv,), {"forward": lambda self, x: x})),
    ):
        before, _ = network.scores(images), network.scores(images[:4])  # tiles of several sizes, and of one
        change(network.layers[3])
        after = network.scores(images) if type(network.layers[3]) is OrientedConv else None
        if after is None:
            assert len(stages_of(network.layers, 1, np.float32)) == 1
            assert through_stages(network.layers, network.prepare(images), 1, network._idle[-1][-1])[1] == 3
        else:
            assert not np.array_equal(before, after)
            np.testing.assert_array_equal(after, as_layers(network, images))
            np.testing.assert_array_equal(network.scores(images[:4]), as_layers(network, images[:4]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_call_with_broken_weights_leaves_nothing_behind(dtype):
    """Pairs that are NaN, in frames that are terms of another stage."""
    network, images = trained("OC[8, 2]-OC[4, 4]-OC[4, 1]-DP[30]-S[1]-FC[5]", (11, 13), dtype)
    wanted, good = network.scores(images), network.learned
    for value in (np.nan, np.inf):
        network.layers[4].params["pairs"][1, -1, -1] = value
        with contextlib.suppress(tigra.TigraError):
            network.scores(images)
        network.learned = good
        np.testing.assert_array_equal(network.scores(images), wanted)


def test_plans_are_kept_for_every_place_to_stop_at(monkeypatch):
    network, images = trained("OC[3, 2]-GC[2]-OC[4, 2]-S[1]-FC[5]")
    both = network.scores(images), network.features(images)
    monkeypatch.setattr(tiles, "Plan", None)  # no new one
    np.testing.assert_array_equal(network.scores(images), both[0])
    np.testing.assert_array_equal(network.features(images), both[1])


def test_layers_that_are_not_a_stage_run_one_by_one():
    class Own(OrientedConv):
        """A user's layer."""

        def forward(self, signal):
            return signal._replace(values=2 * super().forward(signal).values)

    network, images = trained("OC[3, 2]-GC[2]-OC[4, 2]-S[1]-FC[5]")
    assert [len(stages_of(network.layers[:n], 1, np.float32)) for n in (1, 2, 3, 4, 5)] == [0, 1, 1, 1, 2]
    assert not stages_of(network.layers, 2, np.float32) and not stages_of(network.layers, 1, np.float64)
    first, norm, coarse, *rest = network.layers
    network.layers = [Own(first.graph, **first.params), norm, coarse, *rest]
    assert not stages_of(network.layers, 1, np.float32)
    np.testing.assert_array_equal(network.scores(images), one_by_one(network, images).T)
    other = tigra.graph.grid_graph((5, 18), diagonal_weight=0.25)
    assert len(stages_of([first, norm, Coarsen(other), *rest], 1, np.float32)) == 1
    assert not stages_of([first, MapNorm(other, **norm.params)], 1, np.float32)
    norm.is_training = True
    assert not stages_of([first, norm], 1, np.float32)


def test_what_a_user_has_changed_by_hand_is_no_stage():
    changes = [
        lambda first, norm, coarse: setattr(norm, "diffusion", -1),
        lambda first, norm, coarse: setattr(norm, "diffusion", 2.0),
        lambda first, norm, coarse: setattr(first, "forward", lambda signal: signal),
        lambda first, norm, coarse: setattr(norm, "forward", lambda signal: signal),
        lambda first, norm, coarse: norm.state.update(running_mean=np.zeros(1, np.float32)),
        lambda first, norm, coarse: norm.state.update(total=np.zeros(0, np.float32)),
        lambda first, norm, coarse: norm.params.update(beta=np.zeros(2, np.float32)),
        lambda first, norm, coarse: first.params.update(alpha=first.params["alpha"][:, :-1]),
    ]
    for change in changes:
        network, images = trained("OC[3, 2]-GC[2]-S[1]-FC[5]")
        space, rows = Workspace(), network.prepare(images)
        assert through_stages(network.layers, rows, 1, space)[1] == 8
        change(*network.layers[:3])
        assert not stages_of(network.layers, 1, np.float32)
        assert through_stages(network.layers, rows, 1, space) == (None, 0)  # the old plan is not used
    network, images = trained("OC[3, 2]-GC[2]-S[1]-FC[5]")
    right = network.layers[2].forward
    network.layers[2].forward = lambda signal: right(signal)._replace(values=2 * right(signal).values)
    assert [stage.is_coarse for stage in stages_of(network.layers, 1, np.float32)] == [False]
    np.testing.assert_array_equal(network.scores(images), one_by_one(network, images).T)
    network, images = trained("OC[3, 2]-GC[2]-S[1]-FC[5]")
    statistics = network.layers[3]
    before, of_class = network.scores(images), statistics.forward
    statistics.forward = lambda signal: 2 * of_class(signal)
    assert not np.array_equal(network.scores(images), before)
    np.testing.assert_array_equal(network.scores(images), one_by_one(network, images).T)


def test_a_head_that_a_user_has_changed_by_hand_runs_one_by_one():
    def twice(layer):
        of_class = layer.forward
        layer.forward = lambda x: 2 * of_class(x)

    changes = [  # and the number of layers that the plan still takes the place of
        (4, lambda norm, dense, relu, last: twice(norm)),
        (4, lambda norm, dense, relu, last: setattr(norm, "is_training", True)),
        (5, lambda norm, dense, relu, last: twice(dense)),
        (5, lambda norm, dense, relu, last: setattr(dense, "__class__", type("Own", (Dense,), {}))),
        (5, lambda norm, dense, relu, last: dense.params.update(weight=np.asfortranarray(dense.params["weight"]))),
        (5, lambda norm, dense, relu, last: dense.params.update(bias=dense.params["bias"].astype(float))),
        (6, lambda norm, dense, relu, last: twice(relu)),
        (7, lambda norm, dense, relu, last: twice(last)),
        (8, lambda norm, dense, relu, last: last.params.update(bias=last.params["bias"] + 1)),
        (8, lambda norm, dense, relu, last: norm.state.update(total=norm.state["total"] * 2)),
        (8, lambda norm, dense, relu, last: dense.params["weight"].fill(np.nan)),
    ]
    for n_layers, change in changes:
        network, images = trained("OC[3, 2]-GC[2]-S[1]-FC[5]")
        space, rows = Workspace(), network.prepare(images)
        assert through_stages(network.layers, rows, 1, space)[1] == 8
        change(*network.layers[4:])
        found, n = through_stages(network.layers, rows, 1, space)
        assert n == n_layers
        np.testing.assert_array_equal(found, one_by_one(network, images, n))


@pytest.mark.parametrize(
    "change", [{"weight": np.zeros((5, 3), np.float32)}, {"bias": np.zeros(4, np.float32)}], ids=["weight", "bias"]
)
def test_a_head_that_does_not_fit_is_refused_by_its_layer(change):
    network, images = trained("OC[3, 2]-GC[2]-S[1]-FC[5]")
    network.layers[5].params.update(change)
    with pytest.raises((tigra.TigraError, ValueError)):
        network.scores(images)
