"""Network: a list of layers that maps images (n, height, width) or (n, height, width, 3) to class scores."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from tigra.errors import TigraError, UsageError
from tigra.graph import Graph, GraphSignal
from tigra.images.background import WINDOWS, windowed
from tigra.images.colour import opponent_maps
from tigra.images.prepared import PreparedImages
from tigra.images.transforms import less_border, smooth
from tigra.kernels.workspace import Workspace, aligned_empty
from tigra.layers import Layer
from tigra.layers.base import in_place_advice
from tigra.models.classifier import Classifier
from tigra.models.costs import Cost, check_cost
from tigra.models.prediction.tiles import through_stages
from tigra.models.workers import MICRO_BATCH, VECTOR, Workers, micro_batches
from tigra.options import BuildOptions, Limits
from tigra.processes.team import SharedMap
from tigra.seeding import balanced_order, generator

TILE_NODES = 4096  # on larger graphs a micro-batch has fewer than MICRO_BATCH images
PREPARED_AT_ONCE = 256  # images; keeps the temporary arrays of the smoothing small


class Network(Classifier):
    """A sequence of layers from images to class scores. Usually made by `build_network`.

    Parameters
    ----------
    layers : list of Layer
        Each object may occur once. The last layer returns scores (n_classes, B).
    graph : Graph
        The graph whose nodes are the pixels.
    options : BuildOptions or dict
        What the network was built from, kept for the model file. For a network assembled by hand, a dictionary with
        image_shape, n_classes and any option that differs from its default.

    Attributes
    ----------
    parameters : array (n_parameters,)
        All parameters in one vector; the `params` of the layers are views of it.
    gradients : array (n_parameters,)
        All gradients in the same order; the `grads` of the layers are views of it.
    class_names : list of str
        Names of the classes, by default their numbers.

    Notes
    -----
    Inside the network, arrays have shape (maps, nodes, batch), and after the statistics (features, batch). `prepare`
    and `signal` convert images to this layout. `scores` and `predict_proba` return one row per image.
    """

    kind = "network"
    options: BuildOptions

    def __init__(self, layers: list[Layer], graph: Graph, options: BuildOptions | dict):
        if len({id(layer) for layer in layers}) != len(layers):
            raise UsageError("A layer object can occur only once in a network; create a second layer.")
        self.layers = layers
        self.graph = graph
        self.options = BuildOptions.of({"architecture": ""} | options) if isinstance(options, dict) else options
        self.own_graph: Graph | None = None  # the user's; a grid follows from the options
        self.cost = Cost()  # of one image; unknown for a network made by hand
        self.is_by_hand = True  # until `build_network` says otherwise
        self.class_names = [str(label) for label in range(self.n_classes)]
        self._gather()
        self._idle: list[list[Workspace]] = []  # one per layer, reused by the next prediction
        self._accepted: tuple | None = None  # cost and limits of the last prediction

    @property
    def obstacle(self) -> str | None:
        """Why the network cannot be saved: a model file can only rebuild networks made by `build_network`."""
        return "This network was not made by build_network, whose arguments a file holds" if self.is_by_hand else None

    @property
    def micro_batch(self) -> int:
        """Images per micro-batch; fewer for large images, so that the maps fit into the cache."""
        most = min([MICRO_BATCH, *(layer.micro_batch for layer in self.layers)])
        fitting = most * TILE_NODES // max(self.graph.n_nodes, TILE_NODES)
        return max(1, fitting // VECTOR * VECTOR if fitting >= VECTOR else fitting)

    @property
    def n_parameters(self) -> int:  # type: ignore[override]  # other classifiers may set theirs
        """Number of parameters."""
        return self.parameters.size

    def replica(self, keeps_results: bool = True, training: bool = False) -> Network:
        """The same network for another thread: shared parameters, separate gradients and caches.

        Parameters
        ----------
        keeps_results : bool
            False if the next call may overwrite the outputs of the layers.
        training : bool
            Whether the layers run in training mode (`tigra.layers.base.Layer`).

        Returns
        -------
        Network
            The replica.
        """
        twin = copy.copy(self)
        twin.layers = [layer.replica(keeps_results) for layer in self.layers]
        for layer in twin.layers:
            layer.is_training = training
        twin.gradients = _in_one_vector([layer.grads for layer in twin.layers], self.dtype)
        return twin

    def __copy__(self) -> Network:
        """A copy with the same layers and parameters; two threads may predict with both at once."""
        twin = object.__new__(type(self))
        vars(twin).update(vars(self), _idle=[])
        return twin

    def __getstate__(self) -> dict:
        """State for pickling, without scratch arrays and the two vectors: pickled views become separate arrays."""
        return {key: value for key, value in vars(self).items() if key not in ("_idle", "parameters", "gradients")}

    def __setstate__(self, state: dict) -> None:
        vars(self).update(state, _idle=[], _accepted=None)
        self._gather()

    def _gather(self) -> None:
        """Move all parameters into one vector and all gradients into another; the layers' arrays become views."""
        self.parameters = _in_one_vector([layer.params for layer in self.layers], self.dtype)
        self.gradients = _in_one_vector([layer.grads for layer in self.layers], self.dtype)

    def with_parameters(self, vector: np.ndarray) -> Network:
        """A copy of the network with its own parameters, set from a vector like `learned`."""
        twin = self.replica()
        for layer in twin.layers:
            layer.params = dict(layer.params)
            if layer.uses_batch_statistics:
                layer.state = {name: array.copy() for name, array in layer.state.items()}
        twin.parameters = _in_one_vector([layer.params for layer in twin.layers], self.dtype)
        twin.learned = vector
        return twin

    @property
    def learned(self) -> np.ndarray:
        """A copy of everything that training changes: the parameters, then the running averages of batch statistics."""
        return np.concatenate([self.parameters, *(array.ravel() for array in self._running())])

    @learned.setter
    def learned(self, vector: np.ndarray) -> None:
        start = self.parameters.size
        self.parameters[:] = vector[:start]
        for array in self._running():
            array.ravel()[:] = vector[start : start + array.size]
            start += array.size

    def _running(self) -> list[np.ndarray]:
        return [array for layer in self.layers if layer.uses_batch_statistics for array in layer.state.values()]

    def mask_of(self, name: str) -> np.ndarray:
        """Vector like `parameters`, with 1 for parameters called `name` and 0 elsewhere."""
        marks = [{key: np.full(p.shape, key == name) for key, p in layer.params.items()} for layer in self.layers]
        return _in_one_vector(marks, self.dtype)

    # --- signals in, scores out ---------------------------------------------------------------

    def prepare(self, images) -> np.ndarray:
        """Check images, add the margin and smooth them; returns (n, N) or, for colour, (n, 3 N), as `dtype`."""
        images = self.checked(images)
        prepared = np.empty((len(images), self.options.n_channels * self.graph.n_nodes), self.dtype)
        for start in range(0, len(images), PREPARED_AT_ONCE):
            part = slice(start, start + PREPARED_AT_ONCE)
            prepared[part] = self.prepare_part(images[part], np.arange(len(images))[part])
        return prepared

    def prepare_part(self, images, numbers=None) -> np.ndarray:
        """`prepare` for a few images; `numbers` are their positions in the data set, for messages."""
        margin, pixels = self.options.margin, self.checked_pixels(images, numbers)
        if self.options.background == "border":
            pixels = less_border(pixels)
        elif self.options.background in WINDOWS:
            pixels = windowed(pixels, self.options.background == "window-mean")
        if pixels.ndim == 4:
            pixels = opponent_maps(pixels).reshape(-1, *pixels.shape[1:3])
        framed = pixels
        if margin:  # faster than np.pad for one image
            height, width = self.options.grid_shape
            framed = np.zeros((len(pixels), height, width), pixels.dtype)
            framed[:, margin:-margin, margin:-margin] = pixels
        return smooth(framed, self.options.smoothing).reshape(len(images), -1).astype(self.dtype, copy=False)

    def signal(self, prepared: np.ndarray) -> GraphSignal | np.ndarray:
        """Convert rows of `prepare` to the input of the first layer: one map (1, N, B), y_0 of the paper, or three."""
        n_maps = self.options.n_channels
        values = aligned_empty((n_maps, prepared.shape[1] // n_maps, len(prepared)), prepared.dtype)
        values[:] = prepared.T.reshape(values.shape)
        return self.layers[0].image_input(values, self.options.grid_shape)

    def forward(self, signal, until: int | None = None):
        """Output of the last layer, or of layer number `until` - 1."""
        for layer in self.layers[:until]:
            signal = layer.forward(signal)
        return signal

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """dE/dsignal from dE/dscores, after one forward; fills all gradients."""
        for layer in reversed(self.layers):
            grad = layer.backward(grad)
        return grad

    # --- what users call ------------------------------------------------------------------------

    def scores(self, images, threads: int = 1) -> np.ndarray:
        """Class scores before the softmax.

        Parameters
        ----------
        images : array (n, height, width)
            Floating-point pixels in [0, 1].
        threads : int
            Worker threads; the result does not depend on their number.

        Returns
        -------
        array (n, n_classes)
            Scores.
        """
        return self._through(images, len(self.layers), threads)

    def features(self, images, threads: int = 1) -> np.ndarray:
        """Feature vectors phi of the images: the output of the statistics layer, before standardising.

        Parameters
        ----------
        images : array (n, height, width)
            Floating-point pixels in [0, 1].
        threads : int
            Worker threads; the result does not depend on their number.

        Returns
        -------
        array (n, n_features)
            One row per image.
        """
        return self._through(images, self._feature_place + 1, threads)

    def feature_names(self) -> list[str]:
        """Name of each feature, such as `layer3_map5_T4_mean`; layers are numbered from 0, as `tigra info` does.

        Returns
        -------
        list of str
            One name per column of `features`: layer, map, Chebyshev order, and mean or variance over the nodes.
        """
        n_features = self.features(np.zeros((1, *self.image_shape))).shape[1]
        place = self._feature_place
        return [f"layer{place}_{name}" for name in self.layers[place].feature_names(n_features)]

    def embedding(self, images, threads: int = 1) -> np.ndarray:
        """Inputs of the last layer, in which images of one class are close together.

        Parameters
        ----------
        images : array (n, height, width)
            Floating-point pixels in [0, 1].
        threads : int
            Worker threads; the result does not depend on their number.

        Returns
        -------
        array (n, n_inputs)
            One row per image.
        """
        rows = self._through(images, len(self.layers) - 1, threads)
        return rows.reshape(len(rows), -1)

    @property
    def _feature_place(self) -> int:
        """Number of the layer whose output `features` returns."""
        places = [i for i, layer in enumerate(self.layers) if layer.gives_features]
        if not places:
            raise UsageError("This network has no statistics layer, so it has no features; add S[K_max].")
        return places[-1]

    def calibrate(self, images, threads: int = 1, labels=None, seed: int = 0) -> None:
        """Set the constants of all layers that need calibration, layer by layer.

        Parameters
        ----------
        images : array (n, height, width)
            Training images.
        threads : int
            Worker threads; the result does not depend on their number.
        labels : array (n,), optional
            Class numbers. Layers that need only some images then get as many of each class as possible.
        seed : int
            Seed of the choice of these images.
        """
        rng = generator(seed, "calibration sample")
        order = balanced_order(np.zeros(len(images), int) if labels is None else np.asarray(labels), rng)
        for place, layer in enumerate(self.layers):
            n_images = layer.calibration_images
            if n_images is None:
                if isinstance(self.forward(self.signal(self.prepare(images[:1])), place), GraphSignal):
                    raise UsageError(
                        f"{type(layer).__name__} takes maps, which are large: set its calibration_images to a number."
                    )
                layer.calibrate(self._through(images, place, threads).T)
            elif n_images > 0:
                chosen = images[np.sort(order[:n_images])]
                layer.calibrate(self.forward(self.signal(self.prepare(chosen)), place))

    def check_gradient_views(self) -> None:
        """Raise TigraError if a layer's backward has replaced its gradients instead of writing into them."""
        for layer in self.layers:
            for name, array in layer.grads.items():
                if array.size and not np.shares_memory(array, self.gradients):
                    raise TigraError(in_place_advice(layer, name))

    @property
    def needs_calibration(self) -> bool:
        """Whether `calibrate` must be called before training."""
        return any(layer.needs_calibration for layer in self.layers)

    def _through(self, images, until: int, threads: int) -> np.ndarray:
        """Outputs of layer number `until` - 1, one row per image, computed in micro-batches."""
        with Workers(threads, leaves_threads=True) as workers:
            columns = self.outputs(PreparedImages(self, images, largest=0), workers, until)
        if not np.isfinite(columns).all():
            raise TigraError(
                "The network's outputs overflow on these images: its parameters are too large; train it again."
            )
        return np.ascontiguousarray(columns.T)

    def outputs(self, prepared: PreparedImages, workers: Workers | SharedMap, until: int | None = None) -> np.ndarray:
        """Outputs (features, n) of the last layer, or of layer number `until` - 1; values may be infinite or NaN."""
        size = self.micro_batch if len(prepared) > 1 else 1  # takes time to find out
        wanted = self.cost, min(len(prepared), size), Limits.texts()
        if wanted != self._accepted:
            check_cost(*wanted[:2], self.dtype.itemsize)
            self._accepted = wanted

        @np.errstate(all="ignore")
        def run(part):
            try:
                spaces = self._idle.pop()
            except IndexError:  # all are in use, by this call or another thread
                spaces = []
            spaces += [Workspace(keeps_results=False) for _ in range(len(self.layers) + 1 - len(spaces))]
            layers, rows = self.layers[:until], prepared[part]  # the current layers: users may change them
            columns: Any
            columns, done = through_stages(layers, rows, self.options.n_channels, spaces[-1])
            if not done:
                columns = self.signal(rows)
            for layer, space in zip(layers[done:], spaces[done:], strict=False):
                columns = layer.working_in(space).forward(columns)
            columns = columns.copy()  # the next part may overwrite the workspace
            self._idle.append(spaces)
            return columns

        parts = list(workers.map(run, micro_batches(len(prepared), size)))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)


def _in_one_vector(dictionaries: list[dict], dtype) -> np.ndarray:
    """Copy all arrays into one vector and replace the dictionaries' entries by views of it."""
    arrays = [array for entries in dictionaries for array in entries.values()]
    vector = np.empty(sum(array.size for array in arrays), dtype)
    start = 0
    for entries in dictionaries:
        for name, array in entries.items():
            view = vector[start : start + array.size].reshape(array.shape)
            view[:] = array
            entries[name] = view
            start += array.size
    return vector
