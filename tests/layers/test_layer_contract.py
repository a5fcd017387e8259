"""The contract of style and docs/derivations.md, over the registry of layers."""

import numpy as np
import pytest

import tigra.layers
from tigra import GraphSignal, ShapeError, TigraError
from tigra.gradcheck.checks import LAYER_CASES, values_of
from tigra.layers import Layer

EACH = pytest.mark.parametrize("name", LAYER_CASES)


def case(name, dtype=np.float64):
    layer, x = LAYER_CASES[name](np.random.default_rng(0))
    layer.params = {key: array.astype(dtype) for key, array in layer.params.items()}
    layer.grads = {key: array.astype(dtype) for key, array in layer.grads.items()}
    layer.state = {key: array.astype(dtype) for key, array in layer.state.items()}
    if isinstance(x, GraphSignal):
        return layer, GraphSignal(x.values.astype(dtype), x.active)
    return layer, x.astype(dtype)


def test_every_public_layer_is_registered():
    defined, found = set(), [Layer]
    while found:
        found = [cls for base in found for cls in base.__subclasses__() if cls.__module__.startswith("tigra.")]
        found = [cls for cls in found if not cls.__module__.startswith("tigra.playground.")]  # broken on purpose
        defined |= {cls.__name__ for cls in found}
    defined -= {"PlaneLayer", "ModulusLayer", "BatchNorm"}  # what others have in common
    assert defined == {name.split(",")[0] for name in LAYER_CASES}, "a layer has no gradient case"
    assert defined <= set(tigra.__all__), "a layer is not public"


@EACH
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shapes_and_dtypes(name, dtype):
    layer, x = case(name, dtype)
    output = values_of(layer.forward(x))
    grad_x = layer.backward(np.ones_like(output))
    assert output.dtype == grad_x.dtype == dtype
    assert grad_x.shape == values_of(x).shape
    assert layer.grads.keys() == layer.params.keys()
    for key, array in layer.params.items():
        assert layer.grads[key].shape == array.shape and layer.grads[key].dtype == dtype


@EACH
def test_whole_numbers_are_refused(name):
    """They would be cut off silently, in values and in gradients."""
    layer, x = case(name)
    for key in layer.params:
        with pytest.raises(ShapeError, match=f"{key} as an array of float32 or float64"):
            Layer.__init__(layer, **layer.params | {key: np.ones(3, int)})
    layer, x = case(name)
    if isinstance(x, GraphSignal):
        with pytest.raises(ShapeError, match="expects real maps"):
            layer.forward(GraphSignal(x.values.astype(int), x.active))
        with pytest.raises(ShapeError, match="expects a GraphSignal"):
            layer.forward(x.values)
        with pytest.raises(ShapeError, match="active sets"):
            layer.forward(GraphSignal(x.values, x.active[:, :-1]))


@EACH
@pytest.mark.parametrize("dtype", [np.float16, np.longdouble])
def test_numbers_for_which_there_are_no_kernels_are_refused(name, dtype):
    layer, x = case(name)
    for key in layer.params:
        with pytest.raises(ShapeError, match=f"{key} as an array of float32 or float64"):
            Layer.__init__(layer, **layer.params | {key: np.ones(3, dtype)})
    layer, x = case(name)
    if isinstance(x, GraphSignal):
        with pytest.raises(ShapeError, match="float32 or float64"):
            layer.forward(GraphSignal(x.values.astype(dtype), x.active))


@EACH
def test_signals_without_images_are_refused(name):
    layer, x = case(name)
    if isinstance(x, GraphSignal):
        with pytest.raises(ShapeError, match="at least one map, node and image"):
            layer.forward(GraphSignal(x.values[..., :0], x.active[..., :0]))


@EACH
def test_each_forward_allows_one_backward(name):
    layer, x = case(name)
    with pytest.raises(TigraError, match="forward of its own"):
        layer.backward(np.zeros(1))
    grad = np.ones_like(values_of(layer.forward(x)))
    layer.backward(grad)
    with pytest.raises(TigraError, match="each forward allows one backward"):
        layer.backward(grad)


@EACH
def test_inputs_and_upstream_gradient_are_not_modified(name):
    layer, x = case(name)
    before = values_of(x).copy()
    grad = np.random.default_rng(1).standard_normal(values_of(layer.forward(x)).shape)
    kept = grad.copy()
    layer.backward(grad)
    np.testing.assert_array_equal(values_of(x), before)
    np.testing.assert_array_equal(grad, kept)


@EACH
def test_the_same_input_gives_the_same_output_and_gradients_are_overwritten(name):
    layer, x = case(name)
    results = []
    for _ in range(2):
        output = values_of(layer.forward(x)).copy()
        grad_x = layer.backward(np.ones_like(output))
        results.append([output, grad_x, *(array.copy() for array in layer.grads.values())])
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)


@EACH
def test_params_and_grads_are_written_never_rebound(name):
    layer, x = case(name)
    arrays = {**layer.params, **{f"grad {key}": array for key, array in layer.grads.items()}}
    layer.backward(np.ones_like(values_of(layer.forward(x))))
    after = {**layer.params, **{f"grad {key}": array for key, array in layer.grads.items()}}
    assert all(after[key] is array for key, array in arrays.items())


@EACH
def test_a_batch_is_its_images_one_by_one(name):
    layer, x = case(name)
    if layer.is_training:
        return  # the one layer whose images touch each other, tests/test_modulus.py
    whole = values_of(layer.forward(x))
    for b in range(whole.shape[-1]):
        one = slice(b, b + 1)
        if isinstance(x, GraphSignal):
            single = GraphSignal(np.ascontiguousarray(x.values[..., one]), np.ascontiguousarray(x.active[..., one]))
        else:
            single = np.ascontiguousarray(x[..., one])
        np.testing.assert_allclose(values_of(layer.forward(single)), whole[..., one], rtol=1e-12, atol=1e-12)


@EACH
def test_the_layout_in_memory_does_not_matter(name):
    layer, x = case(name)
    turned = x._replace(values=np.asfortranarray(x.values)) if isinstance(x, GraphSignal) else np.asfortranarray(x)
    expected = values_of(layer.forward(x))
    grad = np.random.default_rng(1).standard_normal(expected.shape)
    expected_grad = layer.backward(grad)
    np.testing.assert_allclose(values_of(layer.forward(turned)), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(layer.backward(np.asfortranarray(grad)), expected_grad, rtol=1e-12, atol=1e-14)


@EACH
def test_a_replica_shares_parameters_but_not_gradients(name):
    layer, x = case(name)
    twin = layer.replica()
    twin.backward(np.ones_like(values_of(twin.forward(x))))
    assert all(not array.any() for array in layer.grads.values())
    assert all(twin.params[key] is array for key, array in layer.params.items())


@EACH
def test_results_outlive_the_next_call(name):
    """Users of a layer keep what it returned, whatever arrays it works in."""
    layer, x = case(name)
    output = values_of(layer.forward(x))
    grad = layer.backward(np.ones_like(output))
    kept = output.copy(), grad.copy()
    other = GraphSignal(2 * x.values, x.active) if isinstance(x, GraphSignal) else 2 * x
    layer.backward(3 * values_of(layer.forward(other)))
    np.testing.assert_array_equal(output, kept[0])
    np.testing.assert_array_equal(grad, kept[1])


@EACH
def test_a_replica_that_keeps_no_results_gives_the_same_numbers_and_uses_its_arrays_again(name):
    layer, x = case(name)
    expected = values_of(layer.forward(x)).copy()
    expected_grad = layer.backward(np.ones_like(expected)).copy()
    twin = layer.replica(keeps_results=False)
    for _ in range(3):
        output = values_of(twin.forward(x))
        np.testing.assert_array_equal(output, expected)
        np.testing.assert_array_equal(twin.backward(np.ones_like(output)), expected_grad)
    memory = dict(twin._space._memory)
    twin.backward(np.ones_like(values_of(twin.forward(x))))
    assert all(twin._space._memory[key] is array for key, array in memory.items())


@EACH
def test_batches_of_changing_size_do_not_see_each_other(name):
    """Arrays of a replica are parts of the same memory for any batch: what one left there, another must not read."""
    layer, x = case(name)
    twin = layer.replica(keeps_results=False)

    def cut(n_images):
        if isinstance(x, GraphSignal):
            parts = x.values[..., :n_images], x.active[..., :n_images]
            return GraphSignal(*(np.ascontiguousarray(part) for part in parts))
        return np.ascontiguousarray(x[..., :n_images])

    n_batch = values_of(x).shape[-1]
    assert n_batch > 1
    for n_images in (n_batch, 1, n_batch, n_batch, 1, 1, n_batch):
        own = layer.replica()
        expected = values_of(own.forward(cut(n_images)))
        output = values_of(twin.forward(cut(n_images)))
        np.testing.assert_array_equal(output, expected)
        grad = np.random.default_rng(n_images).standard_normal(output.shape)
        np.testing.assert_array_equal(twin.backward(grad), own.backward(grad))
        assert all(np.array_equal(twin.grads[key], own.grads[key]) for key in own.grads)
