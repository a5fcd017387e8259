"""Exceptions. Each message says what was expected, what was given, and what to do."""


class TigraError(Exception):
    """Base class of errors that users can fix; the command line shows only the message."""


class UsageError(TigraError):
    """An option or argument has an invalid value (exit status 2 on the command line)."""


class ArchitectureError(UsageError):
    """An architecture text does not parse, or its layers do not fit together."""


class UnknownLayerError(ArchitectureError):
    """An architecture names a layer that is not registered.

    Attributes
    ----------
    name : str
        Name of the layer.
    """

    def __init__(self, message: str, name: str):
        super().__init__(message)
        self.name = name


class ShapeError(TigraError):
    """An array has the wrong shape, type or content, such as NaN pixels."""


class GraphError(TigraError):
    """An adjacency matrix does not describe an undirected graph with non-negative weights."""


class DatasetError(TigraError):
    """A data set is unknown, missing or damaged."""


class ImageError(TigraError):
    """An image file cannot be read."""


class ModelFileError(TigraError):
    """A model file is damaged, has another format, or cannot be written."""


class TrainingError(TigraError):
    """Training cannot continue, for instance because the loss is no longer finite."""


class CacheWarning(UserWarning):
    """Something in a cache was damaged and is made anew; results are not affected."""


def printable(text: str, keep: str = "") -> str:
    r"""Return a text with control and other unprintable characters escaped, except those in `keep`.

    A file name or a text of a model file could otherwise move the cursor of a terminal, or worse.

    Examples
    --------
    >>> print(printable("a\x1b[2Jb\n"))
    a\x1b[2Jb\n
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape", "replace").decode() for c in text)
