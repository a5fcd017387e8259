"""The cache folder for downloaded and prepared data."""

from __future__ import annotations

import os
from pathlib import Path

from tigra.errors import DatasetError


def cache_folder() -> Path:
    """Return the cache folder: $TIGRA_CACHE, or the cache folder of the platform."""
    if chosen := os.environ.get("TIGRA_CACHE"):
        return expanded(chosen, "$TIGRA_CACHE")
    import pooch  # imported here because it is slow

    try:
        return Path(pooch.os_cache("tigra"))
    except RuntimeError as error:  # a user without a home folder
        raise DatasetError(f"There is no cache folder ({error}); set TIGRA_CACHE to a folder.") from error


def expanded(path, origin: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise DatasetError(
            f"{path} ({origin}) is in a home folder that does not exist; give another folder."
        ) from error
