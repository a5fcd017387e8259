"""Networks and layers against PyTorch in float64: stored numbers always, torch itself where it is installed."""

import numpy as np
import pytest

from tests.layers.torch_oracle import (
    NETWORKS,
    _spatial_transformer,
    stored_numbers,
    tigra_answers,
    torch_answers,
    wave,
)
from tigra.baselines import Conv, MaxPool, SpatialTransformer

TOLERANCE = {"loss": 1e-10, "scores": 1e-10, "gradient": 1e-10, "parameters": 1e-8}


def torch_or_skip():
    return pytest.importorskip("torch", reason="torch is not installed: stored numbers are compared instead")


def assert_same(got, wanted, tolerance):
    np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_and_five_steps_of_adam_agree_with_the_stored_numbers_of_torch(name):
    wanted = stored_numbers()[name]
    for threads in (1, 2):
        for what, value in tigra_answers(name, threads).items():
            assert_same(value, wanted[what], TOLERANCE[what])


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_and_five_steps_of_adam_agree_with_torch(name):
    torch_or_skip()
    wanted, got = torch_answers(name), tigra_answers(name)
    assert np.abs(wanted["gradient"]).max() > 1e-3
    for what, value in got.items():
        assert_same(value, wanted[what], TOLERANCE[what])


def batch_first(x):
    """(C, H, W, B) as a torch tensor (B, C, H, W) that asks for its gradient."""
    torch = torch_or_skip()
    return torch.tensor(np.moveaxis(x, -1, 0).copy(), requires_grad=True)


def batch_last(tensor):
    return np.moveaxis(tensor.detach().numpy(), 0, -1)


def agree(layer, x, operation, *leaves):
    """Output and all gradients of a layer against those of a torch operation on (x, *leaves)."""
    torch = torch_or_skip()
    x_torch, leaves = batch_first(x), [torch.tensor(leaf, requires_grad=True) for leaf in leaves]
    y = layer.forward(x)
    y_torch = operation(x_torch, *leaves)
    assert_same(y, batch_last(y_torch), 1e-10)
    upstream = wave(*y.shape, phase=2.0)
    y_torch.backward(torch.tensor(np.moveaxis(upstream, -1, 0).copy()))
    assert_same(layer.backward(upstream), batch_last(x_torch.grad), 1e-10)
    for grad, leaf in zip(layer.grads.values(), leaves, strict=True):
        assert_same(grad, leaf.grad.numpy(), 1e-10)


@pytest.mark.parametrize("size, shape", [(3, (3, 3)), (3, (5, 8)), (2, (7, 4)), (1, (2, 3))])
def test_convolution_agrees_with_torch(size, shape):
    torch = torch_or_skip()
    weight, bias = wave(4, 2, size, size), wave(4, phase=0.5)
    agree(Conv(weight, bias), wave(2, *shape, 3, phase=0.1), torch.nn.functional.conv2d, weight, bias)


@pytest.mark.parametrize("size, shape", [(2, (4, 4)), (2, (5, 7)), (3, (7, 11)), (1, (2, 2))])
def test_max_pooling_agrees_with_torch_also_where_values_are_equal(size, shape):
    torch = torch_or_skip()
    x = np.round(wave(2, *shape, 3, phase=0.1), 1)  # many values are equal
    agree(MaxPool(size), x, lambda x: torch.nn.functional.max_pool2d(x, size))
    agree(MaxPool(size), np.zeros_like(x), lambda x: torch.nn.functional.max_pool2d(x, size))


@pytest.mark.parametrize("outside", ["zeros", "border"])
@pytest.mark.parametrize("shape", [(2, 6, 6), (1, 7, 4), (3, 2, 5)])
def test_sampling_agrees_with_torch(outside, shape):
    """Values, and gradients to the image and to theta through the localisation net; a third lies outside."""
    n_pooled = shape[0] * (shape[1] // 2) * (shape[2] // 2)
    theta_bias = np.array([1.1, 0.5, 0.2, -0.6, 1.2, 0.3])
    arrays = wave(4, n_pooled), wave(4, phase=0.5), wave(6, 4, phase=0.7, scale=0.2), theta_bias
    layer = SpatialTransformer(shape, *arrays, outside)
    agree(layer, wave(*shape, 3, phase=0.1), lambda x, *leaves: _spatial_transformer(layer, x, *leaves), *arrays)
