"""Network: a list of layers behind images in the users' order, (n, height, width)."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from tigra.errors import TigraError, UsageError
from tigra.graph import Graph, GraphSignal, GridGraph
from tigra.images.transforms import less_border, smooth
from tigra.kernels.workspace import Workspace, aligned_empty
from tigra.layers import Layer
from tigra.models.classifier import Classifier
from tigra.models.workers import MICRO_BATCH, VECTOR, Workers, micro_batches
from tigra.options import BuildOptions

LARGEST_PREPARED = 2**28  # bytes of prepared images that are kept in memory
TILE_NODES = 4096  # up to so many nodes a micro-batch has MICRO_BATCH images
PREPARED_AT_ONCE = 256  # images, so that the smoothing's work arrays stay small


class Network(Classifier):
    """Layers from graph signal to class scores, and the images around them.

    layers : list of Layer, each object once; the last gives scores (n_classes, B)
    graph : the grid on which images become signals
    options : what `build_network` made it from, kept for the model file; of a network put together by hand, a
        dictionary with image_shape, n_classes and whatever is no default

    Inside, arrays are (maps, nodes, batch) and then (features, batch); images turn into signals
    in `prepare` and `signal`, and scores into rows again in `predict_proba`. All parameters
    live in one vector, `parameters`, of which the layers' params are views; likewise
    `gradients`.
    """

    kind = "network"
    options: BuildOptions

    def __init__(self, layers: list[Layer], graph: Graph, options: BuildOptions | dict):
        if len({id(layer) for layer in layers}) != len(layers):
            raise UsageError("A layer object can stand in a network once; make a second layer.")
        self.layers = layers
        self.graph = graph
        self.options = BuildOptions.of({"architecture": ""} | options) if isinstance(options, dict) else options
        self.is_by_hand = True  # until `build_network` says otherwise
        self.class_names = [str(label) for label in range(self.n_classes)]
        self._gather()
        self._idle: list[list[Workspace]] = []  # one for each layer, left by a prediction for the next one

    @property
    def own_graph(self) -> Graph | None:
        """The user's own graph, or None: a grid follows from the options."""
        return None if isinstance(self.graph, GridGraph) else self.graph

    @property
    def obstacle(self) -> str | None:
        """A file holds the arguments of build_network, from which a network by hand cannot be built again."""
        return "This network was not made by build_network, whose arguments a file holds" if self.is_by_hand else None

    @property
    def micro_batch(self) -> int:
        """Images in a micro-batch: fewer where images are large, so that their maps stay in cache and memory."""
        fitting = MICRO_BATCH * TILE_NODES // max(self.graph.n_nodes, TILE_NODES)
        return max(1, fitting // VECTOR * VECTOR if fitting >= VECTOR else fitting)

    @property
    def n_parameters(self) -> int:  # type: ignore[override]  # other classifiers may set theirs
        """How many numbers it learns."""
        return self.parameters.size

    def replica(self, keeps_results: bool = True, training: bool = False) -> Network:
        """The same network for another thread: shared parameters, own gradients and caches.

        keeps_results : False if what its layers return may be overwritten by the next call
        training : whether its layers work as in training (`tigra.layers.base.Layer`)
        """
        twin = copy.copy(self)
        twin.layers = [layer.replica(keeps_results) for layer in self.layers]
        for layer in twin.layers:
            layer.is_training = training
        twin.gradients = _in_one_vector([layer.grads for layer in twin.layers], self.dtype)
        return twin

    def __copy__(self) -> Network:
        """The same layers and parameters; threads may predict with both at once."""
        twin = object.__new__(type(self))
        vars(twin).update(vars(self), _idle=[])
        return twin

    def __getstate__(self) -> dict:
        """What is pickled: neither scratch, nor the two vectors, because arrays lose what they share."""
        return {key: value for key, value in vars(self).items() if key not in ("_idle", "parameters", "gradients")}

    def __setstate__(self, state: dict) -> None:
        vars(self).update(state, _idle=[])
        self._gather()

    def _gather(self) -> None:
        """All parameters in one vector, all gradients in another, and the layers' arrays as views of them."""
        self.parameters = _in_one_vector([layer.params for layer in self.layers], self.dtype)
        self.gradients = _in_one_vector([layer.grads for layer in self.layers], self.dtype)

    def with_parameters(self, vector: np.ndarray) -> Network:
        """The same network with parameters of its own, copied from a vector like `learned`."""
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
        """A copy of all that training changes: the parameters, then running averages of layers that keep some."""
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
        """Vector like `parameters`: 1 where the parameter is called `name`, 0 elsewhere."""
        marks = [{key: np.full(p.shape, key == name) for key, p in layer.params.items()} for layer in self.layers]
        return _in_one_vector(marks, self.dtype)

    # --- signals in, scores out ---------------------------------------------------------------

    def prepare(self, images) -> np.ndarray:
        """Check images (n, height, width), frame and smooth them, and lay them out as (n, N) of the dtype."""
        images = self.checked(images)
        prepared = np.empty((len(images), self.graph.n_nodes), self.dtype)
        for start in range(0, len(images), PREPARED_AT_ONCE):
            part = slice(start, start + PREPARED_AT_ONCE)
            prepared[part] = self.prepare_part(images[part], np.arange(len(images))[part])
        return prepared

    def prepare_part(self, images, numbers=None) -> np.ndarray:
        """`prepare` for a few images; their numbers among all are for messages."""
        margin, pixels = self.options.margin, self.checked_pixels(images, numbers)
        if self.options.background == "border":
            pixels = less_border(pixels)
        framed = np.pad(pixels, ((0, 0), (margin, margin), (margin, margin)))
        return smooth(framed, self.options.smoothing).reshape(len(images), -1).astype(self.dtype)

    def signal(self, prepared: np.ndarray) -> GraphSignal | np.ndarray:
        """Rows (B, N) of `prepare` as what the first layer takes: one map (1, N, B), y_0 of the paper."""
        values = aligned_empty((1, *prepared.T.shape), prepared.dtype)
        values[0] = prepared.T
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
        """Class scores before the softmax, (n, n_classes)."""
        return self._through(images, len(self.layers), threads)

    def features(self, images, threads: int = 1) -> np.ndarray:
        """The statistics vector phi of each image, (n, number of features), before standardising."""
        places = [i for i, layer in enumerate(self.layers) if layer.gives_features]
        if not places:
            raise UsageError("This network has no statistics layer, so it has no features; add S[K_max].")
        return self._through(images, places[-1] + 1, threads)

    def calibrate(self, images, threads: int = 1) -> None:
        """Set the constants of layers that want to see training images first, in the order of the layers."""
        for place, layer in enumerate(self.layers):
            n_images = layer.calibration_images
            if n_images is None:
                layer.calibrate(self._through(images, place, threads).T)
            elif n_images > 0:
                layer.calibrate(self.forward(self.signal(self.prepare(images[:n_images])), place))

    @property
    def needs_calibration(self) -> bool:
        """Whether a layer has not seen training images yet, and must, before training."""
        return any(layer.needs_calibration for layer in self.layers)

    def _through(self, images, until: int, threads: int) -> np.ndarray:
        """Rows of outputs of layer number `until` - 1 for all images, by micro-batches."""
        with Workers(threads) as workers:
            columns = self.outputs(PreparedImages(self, images, largest=0), workers, until)
        if not np.isfinite(columns).all():
            raise TigraError(
                "The network's numbers overflow on these images: its parameters are too large; train it anew."
            )
        return np.ascontiguousarray(columns.T)

    def outputs(self, prepared: PreparedImages, workers: Workers, until: int | None = None) -> np.ndarray:
        """Outputs (features, n) of the last layer, or of layer number `until` - 1; they may not be finite."""

        @np.errstate(all="ignore")
        def run(part):
            try:
                spaces = self._idle.pop()
            except IndexError:  # all are at work, in this call or in another thread's
                spaces = []
            spaces += [Workspace(keeps_results=False) for _ in self.layers[len(spaces) :]]
            columns: Any = self.signal(prepared[part])
            for layer, space in zip(self.layers[:until], spaces, strict=False):
                columns = layer.working_in(space).forward(columns)  # the layers as they are now: users may change them
            columns = columns.copy()  # they may lie in a workspace, where the next part comes
            self._idle.append(spaces)
            return columns

        return np.concatenate(list(workers.map(run, micro_batches(len(prepared), self.micro_batch))), axis=-1)


class PreparedImages:
    """What `Network.prepare` makes of images: kept if that is small, else made again whenever rows are asked for.

    Both give the same bits, because every image is prepared by itself.
    """

    def __init__(self, network: Network, images, largest: int = LARGEST_PREPARED):
        self.network, self.images = network, network.checked(images)
        n_bytes = len(self.images) * network.graph.n_nodes * network.dtype.itemsize
        self.array = network.prepare(self.images) if n_bytes <= largest else None

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, rows) -> np.ndarray:
        if self.array is not None:
            return self.array[rows]
        return self.network.prepare_part(self.images[rows], np.arange(len(self))[rows])


def _in_one_vector(dictionaries: list[dict], dtype) -> np.ndarray:
    """Copy all arrays into one vector, and make the dictionaries' entries views of it."""
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
