"""Images on their way into a network: prepared once, on each access, or ahead of their batch."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

LARGEST_PREPARED = 2**28  # bytes of prepared images that are kept in memory


class PreparedImages:
    """Images after `Network.prepare`: kept in memory if small, else prepared again on each access.

    Both ways give identical values, because each image is prepared on its own.

    Parameters
    ----------
    network : tigra.models.network.Network
        The network that prepares the images.
    images : array (n, height, width) or LazyImages
        The images.
    largest : int
        Prepared images up to this size in bytes are kept in memory.
    """

    def __init__(self, network, images, largest: int = LARGEST_PREPARED):
        self.network, self.images = network, network.checked(images)
        n_bytes = len(self.images) * network.options.n_channels * network.graph.n_nodes * network.dtype.itemsize
        self.array = network.prepare(self.images) if n_bytes <= largest else None

    @property
    def takes_time(self) -> bool:
        """Whether images are read and prepared on each access."""
        return self.array is None

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, rows) -> np.ndarray:
        if self.array is not None:
            return self.array[rows]
        return self.network.prepare_part(self.images[rows], np.arange(len(self))[rows])


class Ahead:
    """Images that a thread of its own reads and prepares while the batch before them is trained on.

    Parameters
    ----------
    images : PreparedImages or JitteredImages
        The images.
    is_used : bool
        Whether there is a thread; otherwise images are prepared when they are asked for.

    Examples
    --------
    >>> ahead = Ahead(np.arange(5) * 10, is_used=True)
    >>> ahead.announce(np.array([1, 2]))
    >>> ahead[np.array([1, 2])], ahead[np.array([3])]
    (array([10, 20]), array([30]))
    >>> ahead.close()
    """

    def __init__(self, images, is_used: bool):
        self.images = images
        self._pool = ThreadPoolExecutor(1) if is_used else None
        self._tasks: dict[bytes, Future] = {}

    def announce(self, rows: np.ndarray) -> None:
        """Begin to prepare images that will be asked for, with the same array of numbers."""
        if self._pool is not None:
            self._tasks[rows.tobytes()] = self._pool.submit(self.images.__getitem__, rows)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        task = self._tasks.pop(rows.tobytes(), None)
        return self.images[rows] if task is None else task.result()

    def close(self) -> None:
        """Forget what was announced, and end the thread."""
        self._tasks.clear()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
