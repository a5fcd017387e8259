"""The folder in which downloaded and prepared data is kept."""

from __future__ import annotations

import os
from pathlib import Path

from tigra.errors import DatasetError


def cache_folder() -> Path:
    """Where downloaded and prepared data is kept: $TIGRA_CACHE, or the platform's cache folder."""
    if chosen := os.environ.get("TIGRA_CACHE"):
        return expanded(chosen, "$TIGRA_CACHE")
    import pooch  # here, because it is slow to import

    try:
        return Path(pooch.os_cache("tigra"))
    except RuntimeError as error:  # a user without a home
        raise DatasetError(f"No folder to keep data in ({error}); set TIGRA_CACHE to one.") from error


def expanded(path, origin: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise DatasetError(f"{path} ({origin}) names a home that does not exist; name another folder.") from error
