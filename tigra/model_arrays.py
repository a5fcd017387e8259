"""Arrays and graphs of model files, as members of a zip archive; what is read is not trusted."""

from __future__ import annotations

import io
import json
import math
import zipfile

import numpy as np
import scipy

from tigra.datasets.learned import Learned
from tigra.errors import ModelFileError
from tigra.graph import Graph, check_shape, grid_graph
from tigra.options import LARGEST_IMAGE
from tigra.training.familiarity import Familiar

LEARNED = "learned/pictures"


def packed(meta: dict, arrays: dict[str, np.ndarray]) -> bytes:
    """Return the bytes of a zip file of meta.json and the arrays, all uncompressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("meta.json"), json.dumps(meta, indent=1))
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), (1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    return buffer.getvalue()


def array_in(archive, info: zipfile.ZipInfo, like: np.ndarray) -> np.ndarray:
    """Read a member as an array with the shape and dtype of `like` and finite values."""
    if info.file_size > like.nbytes + 4096:
        raise ModelFileError(f"{info.filename} has the wrong size")
    content = archive.read(info)  # checks the CRC
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ModelFileError(f"{info.filename} is not an array")
    shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(stream)
    if (shape, fortran_order, dtype) != (like.shape, False, like.dtype):
        raise ModelFileError(f"{info.filename} has the wrong shape or type")
    array = np.frombuffer(content, dtype, offset=stream.tell()).reshape(shape)
    if not np.isfinite(array).all():
        raise ModelFileError(f"{info.filename} has values that are not finite")
    return array


def graph_arrays(graph: Graph) -> dict[str, np.ndarray]:
    """A custom graph as arrays: its adjacency matrix as CSR, its degrees, and the cyclic order if it has one."""
    matrix = graph.adjacency
    rotation = {} if graph.rotation is None else {"graph/rotation": graph.rotation.neighbours}
    return {
        "graph/indptr": matrix.indptr.astype(np.int64),
        "graph/indices": matrix.indices.astype(np.int64),
        "graph/weights": matrix.data.astype(np.float64),
        "graph/degrees": graph.degrees.astype(np.float64),
        **rotation,
    }


def graph_in(archive, members, numbers, file_size: int) -> tuple[Graph | None, list[str]]:
    """(custom graph, names of its arrays), or (None, []) if the file has none."""
    if numbers is None:
        return None, []
    n_nodes, n_edges = numbers["nodes"], numbers["edges"]
    if not all(type(n) is int and 0 <= n <= file_size for n in (n_nodes, n_edges)) or n_nodes < 1:
        raise ModelFileError("its graph is impossible")
    likes = {
        "graph/indptr": np.broadcast_to(np.int64(0), n_nodes + 1),
        "graph/indices": np.broadcast_to(np.int64(0), n_edges),
        "graph/weights": np.broadcast_to(0.0, n_edges),
        "graph/degrees": np.broadcast_to(0.0, n_nodes),
    }
    indptr, indices, weights, degrees = (
        array_in(archive, members[f"{name}.npy"], like) for name, like in likes.items()
    )
    rises = indptr[0] == 0 and indptr[-1] == n_edges and (np.diff(indptr) >= 0).all()
    if not rises or not ((indices >= 0) & (indices < n_nodes)).all():
        raise ModelFileError("its graph is malformed")
    matrix = scipy.sparse.csr_array((weights, indices, indptr), shape=(n_nodes, n_nodes))
    graph = Graph(matrix, degrees)
    if "grid" in numbers:
        graph = _grid(numbers["grid"], matrix, degrees)
    if "graph/rotation.npy" in members:
        likes["graph/rotation"] = likes["graph/indices"]
        order = array_in(archive, members["graph/rotation.npy"], likes["graph/rotation"])
        graph = graph.with_rotation(np.split(order, indptr[1:-1]))
    return graph, list(likes)


def _grid(arguments: dict, matrix, degrees) -> Graph:
    """The grid that a custom graph is, with its coordinates."""
    if math.prod(check_shape(arguments["shape"])) == len(degrees):
        grid = grid_graph(**arguments)
        if not (grid.adjacency != matrix).nnz and np.array_equal(grid.degrees, degrees):
            return grid
    raise ModelFileError("its graph is not the grid that it claims to be")


def learned_in(archive, members, meta: dict, image_shape, file_size: int) -> tuple[Learned | None, list[str]]:
    """(pictures of the training, names of their members); None if the file does not know them."""
    facts = meta.get("learned")
    if facts is None:
        digests = meta["training"].get("learned", "").split()  # version 0.1 has them as text, for folders only
        return (Learned.of_digests(digests, image_shape) if digests else None), []
    n_pictures, (height, width, *channels) = facts["pictures"], facts["shape"]
    is_whole = all(type(n) is int and n >= 0 for n in (n_pictures, height, width))
    is_image = channels in ([], [3]) and is_whole and 1 <= height * width <= LARGEST_IMAGE
    if not is_image or n_pictures > file_size:
        raise ModelFileError("its record of learned pictures is impossible")
    name = f"{LEARNED}.npy"
    return Learned(array_in(archive, members[name], np.broadcast_to(np.uint64(0), n_pictures)), facts["shape"]), [name]


def familiar_in(archive, members, meta: dict) -> tuple[Familiar | None, list[str]]:
    """(features of training images, names of their members); None if the file does not have them."""
    facts = meta.get("familiar")
    if facts is None:
        return None, []
    n_images, n_inputs, limit = (facts[name] for name in ("images", "inputs", "limit"))
    is_whole = all(type(n) is int and 1 <= n <= LARGEST_IMAGE for n in (n_images, n_inputs))
    if not is_whole or n_images * n_inputs > LARGEST_IMAGE or type(limit) is not float:
        raise ModelFileError("its record of familiar features is impossible")
    likes = {
        "familiar/features.npy": np.broadcast_to(np.float32(0), (n_images, n_inputs)),
        "familiar/scale.npy": np.broadcast_to(np.float32(0), n_inputs),
    }
    features, scale = (array_in(archive, members[name], like) for name, like in likes.items())
    return Familiar(features, scale, limit), list(likes)
