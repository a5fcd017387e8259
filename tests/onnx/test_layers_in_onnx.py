"""Every layer alone: onnxruntime computes what `forward` computes."""

import math

import numpy as np
import pytest

import tigra
from tigra.gradcheck.cases import LAYER_CASES
from tigra.gradcheck.inputs import GRID
from tigra.graph import GridGraph
from tigra.onnx.export import assembled
from tigra.onnx.graph_writer import GraphWriter
from tigra.onnx.writer import Signal, Tensor

onnxruntime = pytest.importorskip("onnxruntime", reason="install onnxruntime: pip install -e '.[test]'")


def batch_first(array, shape=None):
    """(..., B) as (B, ...), maps (K, N, B) on a grid as (B, K, H, W), harmonic maps as (B, 4 C, H, W)."""
    array = np.moveaxis(array, -1, 0)
    if array.ndim == 6:
        return array.reshape(len(array), -1, *array.shape[-2:])
    return array if shape is None else array.reshape(*array.shape[:2], *shape)


def run_in_onnx(layer, x, opset=17):
    """Output of a layer in onnxruntime, as a list of one array or of maps and active sets."""
    shape = None
    if isinstance(x, tigra.GraphSignal):
        graph = getattr(layer, "graph", None)
        shape = GRID if graph is None else graph.shape if isinstance(graph, GridGraph) else (1, graph.n_nodes)
    arrays = [batch_first(array, shape) for array in (x if shape else (x,))]
    arrays[0] = arrays[0].astype(np.float32)
    inputs = [Tensor(name, array.shape[1:]) for name, array in zip(("values", "active"), arrays, strict=False)]
    to = GraphWriter(opset)
    out = [end for end in layer.to_onnx(to, Signal(*inputs)) if end is not None]
    kinds = "float32", "bool"
    model = assembled(to, dict(zip(inputs, kinds, strict=False)), dict(zip(out, kinds, strict=False)))
    names = [end.name for end in model.graph.input]
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(None, {end.name: a for end, a in zip(inputs, arrays, strict=True) if end.name in names})
    for end, array in zip(out, found, strict=True):
        assert array.shape[1:] == end.shape
    return found


@pytest.mark.parametrize("name", [name for name in LAYER_CASES if "in training" not in name])
def test_a_layer_computes_the_same_in_onnx(name):
    layer, x = LAYER_CASES[name](np.random.default_rng(0))
    found, y = run_in_onnx(layer, x), layer.forward(x)
    if not isinstance(y, tigra.GraphSignal):
        np.testing.assert_allclose(found[0], batch_first(y), atol=1e-5)
        return
    np.testing.assert_allclose(found[0], batch_first(y.values, found[0].shape[2:]), atol=1e-5)
    active = batch_first(y.active, found[0].shape[2:])
    np.testing.assert_array_equal(np.broadcast_to(found[1], active.shape) if len(found) > 1 else True, active)


@pytest.mark.parametrize("n_active", [1, 2, 3, 5, 15, 16, 20])
@pytest.mark.parametrize("by_size", [False, True])
def test_ties_of_pooling_are_kept_or_dropped_together(n_active, by_size, rng):
    """Few different values, so that most nodes tie; an image with an empty Omega; one in which all tie."""
    z = rng.integers(-2, 3, (3, math.prod(GRID), 6)).astype(float)
    omega = rng.uniform(size=(1, *z.shape[1:])) < 0.7
    omega[:, :, 0], z[:, :, 1], z[:, :, 2] = False, 0.0, -1.0
    pool = tigra.DynamicPool(n_active, by_size)
    y = pool.forward(tigra.GraphSignal(z, omega))
    values, active = run_in_onnx(pool, tigra.GraphSignal(z, omega))
    np.testing.assert_array_equal(values, batch_first(y.values, GRID))
    np.testing.assert_array_equal(np.broadcast_to(active, values.shape), batch_first(y.active, GRID))


def test_every_layer_has_a_case_and_says_how_it_is_exported():
    cases = {type(case(np.random.default_rng(0))[0]) for case in LAYER_CASES.values()}
    layers = {value for value in vars(tigra).values() if isinstance(value, type) and issubclass(value, tigra.Layer)}
    assert layers - {tigra.Layer} == cases
    assert all(layer.to_onnx is not tigra.Layer.to_onnx for layer in cases)


def test_a_layer_that_cannot_be_exported_is_named():
    class Own(tigra.Layer):
        pass

    with pytest.raises(tigra.UsageError, match="Own cannot be exported to ONNX, because it has no method to_onnx"):
        Own().to_onnx(None, None)
    layer, x = LAYER_CASES["SpatialTransformer"](np.random.default_rng(0))
    with pytest.raises(tigra.UsageError, match="A spatial transformer needs ONNX operators of version 16"):
        run_in_onnx(layer, x, opset=15)
