"""OrientedConv against its equation as plain loops; symmetries to the last bit; any graph with a rotation system."""

import numpy as np
import pytest

from tests.layers import oriented_loops as loops
from tigra.errors import GraphError, ShapeError
from tigra.gradcheck.oriented_cases import wheel
from tigra.graph import Graph, GraphSignal, grid_graph
from tigra.graph.orientation import cross, dot
from tigra.layers import OrientedConv

RNG = np.random.default_rng
TURNS = {
    "quarter": lambda m: np.rot90(m, 1, axes=(1, 2)),
    "half": lambda m: np.rot90(m, 2, axes=(1, 2)),
    "three quarters": lambda m: np.rot90(m, 3, axes=(1, 2)),
}
REFLECTIONS = {
    "left and right": lambda m: m[:, :, ::-1],
    "up and down": lambda m: m[:, ::-1],
    "transposed": lambda m: m.transpose(0, 2, 1, 3),
}


def signal(maps):
    """Maps (K, H, W, B) as a GraphSignal."""
    values = np.ascontiguousarray(maps).reshape(len(maps), -1, maps.shape[-1])
    return GraphSignal(values, np.ones((1, *values.shape[1:]), bool))


def through(layer, maps):
    return layer.forward(signal(maps)).values.reshape(-1, *maps.shape[1:])


def random_layer(rng, graph, n_in=2, n_out=3, degree=2, n_pairs=3, dtype=np.float64):
    alpha = rng.standard_normal((n_out, (degree + 1) * n_in + 2 * n_pairs))
    return OrientedConv(graph, alpha.astype(dtype), rng.standard_normal((2, n_pairs, 2 * n_in)).astype(dtype))


@pytest.mark.parametrize("degree", [1, 3])
@pytest.mark.parametrize(
    "shape, options, weight",
    [
        ((4, 5), {"diagonal_weight": 0.25}, 0.25),
        ((5, 4), {"diagonal_weight": 0.25, "dilation": 2}, 0.25),
        ((3, 4), {"neighbours": 4}, 0),
        ((1, 6), {"dilation": 3}, 1),
    ],
)
def test_forward_on_a_grid_equals_the_loops(degree, shape, options, weight):
    rng, apart = RNG(0), options.get("dilation", 1)
    layer = random_layer(rng, grid_graph(shape, **options), degree=degree)
    maps = rng.standard_normal((2, *shape, 3))
    found = through(layer, maps)
    for b in range(3):
        expected = loops.oriented_conv(
            maps[..., b],
            *layer.params.values(),
            lambda y: loops.laplacian(y, weight, apart),
            lambda y, z: loops.products(y, z, weight, apart),
        )
        np.testing.assert_allclose(found[..., b], expected, rtol=1e-12, atol=1e-12)


def test_forward_on_another_graph_equals_the_loops():
    rng, graph = RNG(1), wheel()
    layer, order = random_layer(rng, graph), graph.rotation.tolist()
    matrix = graph.laplacian.toarray()

    def products(a, b):
        crossed = np.zeros(len(a))
        for n, around in enumerate(order):
            for m, after in zip(around, [*around[1:], *around[:1]], strict=True):
                crossed[n] += a[m] * b[after] - a[after] * b[m]
        return a * (matrix @ b) + b * (matrix @ a) - matrix @ (a * b), crossed

    y = rng.standard_normal((2, 6, 3))
    z, active = layer.forward(GraphSignal(y, rng.random((2, 6, 3)) < 0.5))
    assert active.all() and active.shape == (1, 6, 3)
    for b in range(3):
        expected = loops.oriented_conv(y[..., b], *layer.params.values(), lambda x: matrix @ x, products)
        np.testing.assert_allclose(z[..., b], expected, rtol=1e-12, atol=1e-12)


def test_frames_give_the_products_of_the_readable_operators():
    rng, graph = RNG(2), grid_graph((6, 5), diagonal_weight=0.25, dilation=2)
    y = rng.standard_normal((2, 30, 2))
    pairs = np.array([[[1.0, 0, 0, 0]], [[0, 1.0, 0, 0]]])  # a = y_0, b = y_1
    for place, product in ((4, dot), (5, cross)):
        alpha = np.zeros((1, 6))
        alpha[0, place] = 1
        found = OrientedConv(graph, alpha, pairs).forward(GraphSignal(y, np.ones((1, 30, 2), bool))).values
        np.testing.assert_allclose(found, product(graph, y[:1], y[1:]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weight, dilation", [(0.25, 1), (0.3, 1), (0.25, 2)])
def test_turned_maps_give_turned_responses_to_the_last_bit_and_reflections_flip_cross(dtype, weight, dilation):
    rng, graph = RNG(3), grid_graph((9, 9), diagonal_weight=weight, dilation=dilation)
    layer = random_layer(rng, graph, n_out=8, dtype=dtype)
    maps = rng.standard_normal((2, 9, 9, 2)).astype(dtype)
    straight, grad = through(layer, maps), rng.standard_normal((8, 9, 9, 2)).astype(dtype)
    grad_y = layer.backward(signal(grad).values).reshape(maps.shape)
    for name, turn in TURNS.items():
        np.testing.assert_array_equal(through(layer, turn(maps)), turn(straight), err_msg=name)
        turned = layer.backward(signal(turn(grad)).values).reshape(maps.shape)
        np.testing.assert_array_equal(turned, turn(grad_y), err_msg=name)
    layer.params["alpha"][:4, -3:] = 0  # without cross
    layer.params["alpha"][4:, :-3] = 0  # cross only
    straight = through(layer, maps)
    for name, mirror in REFLECTIONS.items():
        mirrored = through(layer, mirror(maps))
        np.testing.assert_array_equal(mirrored[:4], mirror(straight[:4]), err_msg=name)
        np.testing.assert_array_equal(mirrored[4:], -mirror(straight[4:]), err_msg=name)
    assert np.abs(straight[4:]).max() > 0.1


@pytest.mark.parametrize("dilation", [1, 2])
def test_whole_pixel_shifts_are_exact_to_the_last_bit_and_the_background_is_0(dilation):
    rng, graph = RNG(4), grid_graph((20, 20), diagonal_weight=0.25, dilation=dilation)
    layer = random_layer(rng, graph, dtype=np.float32)
    maps = np.zeros((2, 20, 20, 2), np.float32)
    maps[:, 8:11, 9:12] = rng.standard_normal((2, 3, 3, 2))
    straight = through(layer, maps)
    for shift in ((1, 0), (-2, 1), (1, -3)):
        moved = through(layer, np.roll(maps, shift, axis=(1, 2)))
        np.testing.assert_array_equal(moved, np.roll(straight, shift, axis=(1, 2)))
    reach = 2 * dilation  # L^2, or a gradient of L y
    straight[:, 8 - reach : 11 + reach, 9 - reach : 12 + reach] = 0
    assert not straight.any()


def test_a_rotation_system_in_the_opposite_order_changes_the_sign_of_cross_alone():
    rng, graph = RNG(5), wheel(7)
    mirrored = Graph(graph.adjacency).with_rotation(graph.rotation.reversed())
    layer = random_layer(rng, graph)
    twin = OrientedConv(mirrored, layer.params["alpha"].copy(), layer.params["pairs"])
    twin.params["alpha"][:, -3:] *= -1
    y = GraphSignal(rng.standard_normal((2, 8, 3)), np.ones((1, 8, 3), bool))
    np.testing.assert_allclose(layer.forward(y).values, twin.forward(y).values, rtol=1e-12, atol=1e-12)


def test_start_values_keep_the_size_of_maps_and_follow_the_seed():
    graph = grid_graph((4, 4))
    layer, again, other = (OrientedConv.init(graph, 50, 40, 2, RNG(seed), "float64") for seed in (0, 0, 1))
    assert layer.params["alpha"].shape == (40, 250) and layer.params["pairs"].shape == (2, 50, 100)
    assert (layer.params["alpha"] ** 2).sum(axis=1) == pytest.approx(1, abs=0.3)
    assert np.abs(layer.params["pairs"]).max() <= 0.1
    for name, array in layer.params.items():
        assert (array == again.params[name]).all() and (array != other.params[name]).any()


def test_label_and_coefficients_of_the_filters():
    layer = random_layer(RNG(6), grid_graph((3, 3)), degree=2)
    assert layer.label == "OC[3, 2]"
    coefficients = layer.filter_coefficients(layer.params)
    alpha = layer.params["alpha"]
    for i, m in np.ndindex(3, 3):
        assert coefficients[i, m] == pytest.approx(alpha[i, 2 * m] + alpha[i, 2 * m + 1])


def test_wrong_arguments_are_refused():
    grid, alpha, pairs = grid_graph((3, 3)), np.ones((1, 4)), np.ones((2, 1, 2))
    for wrong in (np.ones((2, 1, 3)), np.ones((1, 1, 2)), np.ones((2, 2)), np.ones((2, 0, 2)), 3):
        with pytest.raises(ShapeError, match=r"expects pairs of shape \(2, R, 2 K_in\)"):
            OrientedConv(grid, alpha, wrong)
    for wrong in (np.ones((1, 3)), np.ones(4), np.ones((1, 1, 4))):
        with pytest.raises(ShapeError, match=r"expects alpha of shape .* here K_in = 1 and R = 1, got \("):
            OrientedConv(grid, wrong, pairs)
    for graph in (grid_graph((3, 3), boundary="free"), Graph(grid.adjacency)):
        with pytest.raises(GraphError, match="needs an orientation, and this graph has none"):
            OrientedConv(graph, alpha, pairs)
    with pytest.raises(ShapeError, match=r"OrientedConv expects real maps.* \(1, 9, B\)"):
        OrientedConv(grid, alpha, pairs).forward(GraphSignal(np.ones((2, 9, 1)), np.ones((1, 9, 1), bool)))
