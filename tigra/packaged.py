"""Trained models that come with the package, by name."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

PREFIX, ENDING = "model-", ".npz"


def packaged_models() -> dict[str, Path]:
    """Name -> file of every model in the package's data.

    >>> list(packaged_models())
    ['mnist-012']
    """
    try:
        folder = resources.files("tigra_data")
    except ModuleNotFoundError:  # a source tree that was never installed
        return {}
    files = sorted(Path(str(entry)) for entry in folder.iterdir())
    return {
        path.name[len(PREFIX) : -len(ENDING)]: path
        for path in files
        if path.name.startswith(PREFIX) and path.name.endswith(ENDING)
    }
