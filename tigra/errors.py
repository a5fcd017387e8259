"""What can go wrong, by kind. Each message says what was expected, what came, and what to do."""


class TigraError(Exception):
    """Any error that the user of tigra can mend; the command line shows its message alone."""


class UsageError(TigraError):
    """An option or argument has a value that cannot work (exit status 2 on the command line)."""


class ArchitectureError(UsageError):
    """An architecture text that does not parse, or whose layers do not fit together."""


class UnknownLayerError(ArchitectureError):
    """An architecture names a layer that nobody has registered; `name` is what it is called."""

    def __init__(self, message: str, name: str):
        super().__init__(message)
        self.name = name


class ShapeError(TigraError):
    """An array of the wrong shape, type or content, such as NaN pixels."""


class GraphError(TigraError):
    """An adjacency matrix that is not that of an undirected graph with non-negative weights."""


class DatasetError(TigraError):
    """A data set that is unknown, absent or damaged."""


class ImageError(TigraError):
    """A picture file that cannot be read."""


class ModelFileError(TigraError):
    """A model file that is damaged, foreign, or cannot be written."""


class TrainingError(TigraError):
    """Training cannot go on, for instance because the loss is no longer finite."""
