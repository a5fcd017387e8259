"""Network: a list of layers behind images in the users' order, (n, height, width)."""

from __future__ import annotations

import copy

import numpy as np

from tigra.errors import ShapeError, TigraError, UsageError
from tigra.graph import Graph, GraphSignal
from tigra.image_store import LazyImages
from tigra.layers import Layer, Standardise, Statistics
from tigra.loss import softmax
from tigra.transforms import smooth
from tigra.workers import MICRO_BATCH, VECTOR, Workers, micro_batches
from tigra.workspace import Workspace, aligned_empty

LARGEST_PIXEL = 50.0  # far beyond standardised images, far below 255
LARGEST_PREPARED = 2**28  # bytes of prepared images that are kept in memory
TILE_NODES = 4096  # up to so many nodes a micro-batch has MICRO_BATCH images
PREPARED_AT_ONCE = 256  # images, so that the smoothing's work arrays stay small


class Network:
    """Layers from graph signal to class scores, and the images around them.

    layers : list of Layer, each object once; the last gives scores (n_classes, B)
    graph : the grid on which images become signals
    options : the arguments of `build_network` that made it, kept for the model file

    Inside, arrays are (maps, nodes, batch) and then (features, batch); images turn into signals
    in `prepare` and `signal`, and scores into rows again in `predict_proba`. All parameters
    live in one vector, `parameters`, of which the layers' params are views; likewise
    `gradients`.
    """

    def __init__(self, layers: list[Layer], graph: Graph, options: dict):
        if len({id(layer) for layer in layers}) != len(layers):
            raise UsageError("A layer object can stand in a network once; make a second layer.")
        self.layers = layers
        self.graph = graph
        self.options = options
        self.class_names = [str(label) for label in range(self.n_classes)]
        self._gather()
        self._idle: list[list[Workspace]] = []  # one for each layer, left by a prediction for the next one

    @property
    def image_shape(self) -> tuple[int, int]:
        """(height, width) of the images that the network takes."""
        return tuple(self.options["image_shape"])

    @property
    def n_classes(self) -> int:
        """How many classes it tells apart."""
        return self.options["n_classes"]

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64, for all arrays of the network."""
        return np.dtype(self.options["dtype"])

    @property
    def micro_batch(self) -> int:
        """Images in a micro-batch: fewer where images are large, so that their maps stay in cache and memory."""
        fitting = MICRO_BATCH * TILE_NODES // max(self.graph.n_nodes, TILE_NODES)
        return max(1, fitting // VECTOR * VECTOR if fitting >= VECTOR else fitting)

    @property
    def n_parameters(self) -> int:
        """How many numbers it learns."""
        return self.parameters.size

    def replica(self, keeps_results: bool = True) -> Network:
        """The same network for another thread: shared parameters, own gradients and caches.

        keeps_results : False if what its layers return may be overwritten by the next call
        """
        twin = copy.copy(self)
        twin.layers = [layer.replica(keeps_results) for layer in self.layers]
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
        """The same network with parameters of its own, copied from a vector like `parameters`."""
        twin = self.replica()
        for layer in twin.layers:
            layer.params = dict(layer.params)
        twin.parameters = _in_one_vector([layer.params for layer in twin.layers], self.dtype)
        twin.parameters[:] = vector
        return twin

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
        margin = self.options["margin"]
        framed = np.pad(self._checked_pixels(images, numbers), ((0, 0), (margin, margin), (margin, margin)))
        return smooth(framed, self.options["smoothing"]).reshape(len(images), -1).astype(self.dtype)

    def signal(self, prepared: np.ndarray) -> GraphSignal:
        """Rows (B, N) of `prepare` as one map (1, N, B), active on all nodes: y_0 of the paper."""
        values = aligned_empty((1, *prepared.T.shape), prepared.dtype)
        values[0] = prepared.T
        return GraphSignal(values, np.ones(values.shape, bool))

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

    def checked(self, images):
        """Images that fit the network by their shape and type: an array, or LazyImages as they are."""
        try:
            images = images if isinstance(images, LazyImages) else np.asarray(images)
        except ValueError as error:
            raise ShapeError(f"Images must all have one size: {error}.") from error
        if images.size == 0:
            raise ShapeError(f"{self._expected}, got none; give at least one image.")
        if images.ndim != 3 or images.shape[1:] != self.image_shape:
            hint = "add a first axis to a single image" if images.shape == self.image_shape else "resize them"
            raise ShapeError(f"{self._expected}, got {images.shape}; {hint}.")
        if not np.issubdtype(images.dtype, np.floating):
            raise ShapeError(
                f"{self._expected} with real values in [0, 1], got {images.dtype}; divide 8-bit pixels by 255."
            )
        return images

    def _checked_pixels(self, images: np.ndarray, numbers) -> np.ndarray:
        if not np.isfinite(images).all():
            place = int((~np.isfinite(images)).any(axis=(1, 2)).argmax())
            bad = place if numbers is None else numbers[place]
            raise ShapeError(f"{self._expected} with finite pixels, but image {bad} has NaN or infinite ones.")
        if np.abs(images).max() > LARGEST_PIXEL:
            raise ShapeError(
                f"{self._expected} with values in [0, 1], got values up to {np.abs(images).max():g};"
                " divide 8-bit pixels by 255."
            )
        return images if images.dtype in (np.float32, np.float64) else images.astype(np.float64)

    @property
    def _expected(self) -> str:
        return f"Expected images of shape (n, {self.image_shape[0]}, {self.image_shape[1]})"

    # --- what users call ------------------------------------------------------------------------

    def scores(self, images, threads: int = 1) -> np.ndarray:
        """Class scores before the softmax, (n, n_classes)."""
        return self._through(images, len(self.layers), threads)

    def predict_proba(self, images, threads: int = 1) -> np.ndarray:
        """Class probabilities (n, n_classes) of images (n, height, width) in [0, 1]."""
        return softmax(self.scores(images, threads).T).T

    def predict(self, images, threads: int = 1) -> np.ndarray:
        """Most likely class number of each image, (n,)."""
        return self.scores(images, threads).argmax(axis=1)

    def features(self, images, threads: int = 1) -> np.ndarray:
        """The statistics vector phi of each image, (n, number of features), before standardising."""
        places = [i for i, layer in enumerate(self.layers) if isinstance(layer, Statistics)]
        if not places:
            raise UsageError("This network has no statistics layer, so it has no features; add S[K_max].")
        return self._through(images, places[-1] + 1, threads)

    def calibrate(self, images, threads: int = 1) -> None:
        """Set the constants of the `Standardise` layers from training images, in their order."""
        for place, layer in enumerate(self.layers):
            if isinstance(layer, Standardise):
                layer.calibrate(self._through(images, place, threads).T)

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
            columns = self.signal(prepared[part])
            for layer, space in zip(self.layers[:until], spaces, strict=False):
                columns = layer.working_in(space).forward(columns)  # the layers as they are now: users may change them
            self._idle.append(spaces)
            return columns

        return np.concatenate(list(workers.map(run, micro_batches(len(prepared), self.micro_batch))), axis=1)


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
