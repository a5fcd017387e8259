"""A network on a graph of the user's own: built, trained, saved, loaded, and refused where it cannot work."""

import io
import json
import zipfile

import numpy as np
import pytest
from scipy import sparse

import tigra
from tigra.errors import ModelFileError, UsageError
from tigra.graph.orientation import has_gradient

RING = np.roll(np.eye(12), 1, axis=1) + np.roll(np.eye(12), -1, axis=1)
TEXT = "SC[2, 2]-DP[6]-S[2]-FC[4]"


def network(**options):
    return tigra.build_network(TEXT, (3, 4), 2, graph=RING, **options)


@pytest.mark.parametrize("graph", [RING, RING.tolist(), sparse.csr_array(RING), tigra.Graph(RING)])
def test_a_graph_is_given_as_a_matrix_of_any_kind(graph, rng):
    made = tigra.build_network(TEXT, (3, 4), 2, graph=graph)
    images = rng.uniform(size=(5, 3, 4))
    np.testing.assert_array_equal(made.scores(images), network().scores(images))


def test_the_filters_are_those_of_the_graph(rng):
    made = network(dtype="float64")
    images = rng.uniform(size=(1, 3, 4))
    layer, laplacian = made.layers[0], np.eye(12) - RING / 2  # every node has degree 2
    z = made.forward(made.signal(made.prepare(images)), until=1).values[:, :, 0]
    alpha, beta = layer.params["alpha"], layer.params["beta"][0]
    for i, row in enumerate(z):
        filtered = sum(alpha[i, m] * np.linalg.matrix_power(laplacian, m) for m in range(3))
        np.testing.assert_allclose(row, beta * filtered @ images.ravel(), atol=1e-12)


def test_it_trains_and_comes_back_with_its_graph(tmp_path, rng):
    images, labels = rng.uniform(size=(40, 3, 4)), np.arange(40) % 2
    made, part = network(), (images, labels)
    for epoch in tigra.fit(made, (part, part), epochs=2, batch_size=10):
        assert epoch.loss > 0
    tigra.save(made, tmp_path / "ring.npz")
    loaded = tigra.load(tmp_path / "ring.npz")
    np.testing.assert_array_equal(loaded.scores(images), made.scores(images))
    np.testing.assert_array_equal(loaded.graph.adjacency.toarray(), RING)
    assert loaded.own_graph is not None and tigra.build_network("S[1]", (3, 4), 2).own_graph is None


@pytest.mark.parametrize("grid", [tigra.grid_graph((3, 4), neighbours=4, boundary="free"), tigra.grid_graph((2, 6))])
def test_a_grid_that_is_given_as_a_graph_comes_back_as_it_was(tmp_path, rng, grid):
    """The options describe another grid, the default one."""
    made, images = tigra.build_network(TEXT, (3, 4), 2, graph=grid), rng.uniform(size=(5, 3, 4))
    tigra.save(made, tmp_path / "grid.npz")
    np.testing.assert_array_equal(tigra.load(tmp_path / "grid.npz").scores(images), made.scores(images))
    assert np.abs(made.scores(images) - tigra.build_network(TEXT, (3, 4), 2).scores(images)).max() > 1e-4


@pytest.mark.parametrize("grid", [tigra.grid_graph((3, 4), neighbours=4), tigra.grid_graph((2, 6), boundary="free")])
def test_the_orientation_of_a_graph_comes_back(tmp_path, grid):
    """A padded grid keeps its gradient, and any graph its rotation system."""
    order = [around[::-1] for around in np.split(RING.nonzero()[1], 12)]
    ring = tigra.Graph(RING).with_rotation(order)
    turned = grid.with_rotation([grid.adjacency[[v]].indices[::-1] for v in range(12)])
    for graph in (grid, ring, turned):
        tigra.save(tigra.build_network("S[1]", (3, 4), 2, graph=graph), tmp_path / "graph.npz")
        loaded = tigra.load(tmp_path / "graph.npz").graph
        assert has_gradient(loaded) == has_gradient(graph)
        rotations = [None if one.rotation is None else one.rotation.tolist() for one in (loaded, graph)]
        assert rotations[0] == rotations[1]


def test_a_file_with_an_orientation_that_lies_is_refused(tmp_path):
    path = tmp_path / "graph.npz"
    ring = tigra.Graph(RING).with_rotation(np.split(RING.nonzero()[1], 12))
    for graph, change, message in [
        (ring, {"name": "rotation", "array": np.zeros(24, int)}, "every neighbour of node 0 once"),
        (ring, {"name": "rotation", "array": np.zeros(5, int)}, "wrong shape"),
        (ring, {"meta": {"grid": {"shape": [3, 4]}}}, "not the grid that it claims to be"),
        (ring, {"meta": {"grid": {"shape": [3, 0]}}}, "two positive integers"),
        (ring, {"meta": {"grid": {"shape": [9000, 9000]}}}, "not the grid that it claims to be"),
    ]:
        tigra.save(tigra.build_network("S[1]", (3, 4), 2, graph=graph), path)
        changed(path, **change)
        with pytest.raises(ModelFileError, match=message):
            tigra.load(path)


def test_degrees_of_the_users_own_come_back_too(tmp_path):
    made = tigra.build_network("S[1]", (3, 4), 2, graph=tigra.Graph(RING, degrees=np.full(12, 5.0)))
    tigra.save(made, tmp_path / "ring.npz")
    np.testing.assert_array_equal(tigra.load(tmp_path / "ring.npz").graph.degrees, np.full(12, 5.0))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"image_shape": (4, 4)}, "The graph has 12 nodes, but images of 4x4 have 16 pixels"),
        ({"margin": 1}, "margin is for the grid of pixels"),
        ({"neighbours": 4}, "neighbours is for the grid of pixels"),
        ({"background": "border"}, "background is for the grid of pixels"),
        ({"architecture": "C[2]-FC[3]"}, "no layer of this architecture works on a graph"),
    ],
)
def test_what_has_no_effect_on_an_own_graph_is_refused(options, message):
    with pytest.raises(UsageError, match=message):
        tigra.build_network(**{"architecture": TEXT, "image_shape": (3, 4), "n_classes": 2, "graph": RING} | options)


def changed(path, name=None, array=None, meta=None):
    """The model file with one array or some numbers of its graph changed."""
    with zipfile.ZipFile(path) as archive:
        members = {entry: archive.read(entry) for entry in archive.namelist()}
    if name:
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, array, (1, 0))
        members[f"graph/{name}.npy"] = buffer.getvalue()
    content = json.loads(members["meta.json"])
    content["graph"] = content["graph"] | (meta or {}) if meta != "none" else None
    members["meta.json"] = json.dumps(content).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for entry, data in members.items():
            archive.writestr(zipfile.ZipInfo(entry), data)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"name": "indices", "array": np.full(24, 99)}, "graph is malformed"),
        ({"name": "indices", "array": np.full(24, -1)}, "graph is malformed"),
        ({"name": "indptr", "array": np.arange(13)[::-1] * 2}, "graph is malformed"),
        ({"name": "indptr", "array": np.arange(14) * 2}, "wrong shape"),
        ({"name": "weights", "array": np.full(24, np.nan)}, "not finite"),
        ({"name": "weights", "array": -np.ones(24)}, "non-negative"),
        ({"name": "weights", "array": np.arange(24.0)}, "not symmetric"),
        ({"name": "degrees", "array": np.zeros(12)}, "degrees must be"),
        ({"meta": {"nodes": 10**12}}, "graph is impossible"),
        ({"meta": {"nodes": "12"}}, "graph is impossible"),
        ({"meta": {"edges": -1}}, "graph is impossible"),
        ({"meta": {"edges": 5}}, "wrong shape"),
        ({"meta": "none"}, "arrays are not those of its architecture"),
    ],
)
def test_a_file_with_a_graph_that_lies_is_refused(tmp_path, change, message):
    path = tmp_path / "ring.npz"
    tigra.save(network(), path)
    changed(path, **change)
    with pytest.raises(ModelFileError, match=message) as caught:
        tigra.load(path)
    assert "\n" not in str(caught.value)
