"""The files of a folder of pictures: which classes and parts there are, and what lies in them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tigra.errors import DatasetError
from tigra.images import picture_size

PARTS = {"train": "train", "training": "train", "valid": "valid", "val": "valid", "validation": "valid", "test": "test"}
USUAL_SIZE = 50, 50  # the paper's for photographs; pictures that all have one smaller size keep it
N_SIZES = 200  # pictures looked at to find out their size


class PictureFile(NamedTuple):
    """A file that may be a picture: its name below the folder, its class, and its part ("" if that is open)."""

    folder: Path
    name: str
    class_name: str
    part: str

    @property
    def path(self) -> Path:
        """Where it lies; made when needed, because there may be very many of them."""
        return self.folder / self.name


def list_pictures(folder: Path) -> list[PictureFile]:
    """Every file of every class, in the order of their names; hidden ones are passed over."""
    try:
        parts = _parts_of(folder)
        files = [file for part, place in sorted(parts.items()) for file in _classes_of(place, part, folder)]
    except OSError as error:
        raise DatasetError(f"Cannot list {error.filename}: {error.strerror}.") from error
    if not files:
        raise DatasetError(
            f"{folder} has no subfolders with pictures; give a folder with one subfolder for each class,"
            " or with train/, valid/ and test/ that have them."
        )
    return sorted(files, key=lambda file: os.fsencode(file.name))


def _parts_of(folder: Path) -> dict[str, Path]:
    """{"train": its folder, ...}, or {"": folder} if the subfolders are classes."""
    names = _subfolders(folder)
    parts = [name for name in names if name.lower() in PARTS]
    if parts == ["train"] and len(names) > 1:  # among cars and ships, a class
        parts = []
    if "train" not in [PARTS[name.lower()] for name in parts]:
        return {"": folder}
    if len(parts) < len(names):
        others = ", ".join(printable(name) for name in names if name not in parts)
        raise DatasetError(f"{folder} has {', '.join(parts)}, but also {others}; move those into parts, or elsewhere.")
    if len({PARTS[name.lower()] for name in parts}) < len(parts):
        raise DatasetError(f"{folder} has two folders for the same part among {', '.join(parts)}; put them together.")
    return {PARTS[name.lower()]: folder / name for name in parts}


def _subfolders(folder: Path) -> list[str]:
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))


def _classes_of(place: Path, part: str, folder: Path) -> list[PictureFile]:
    """The files of every class below `place`; class folders are checked."""
    classes = _subfolders(place)
    spellings = Counter(name.casefold() for name in classes)
    for name in classes:
        if spellings[name.casefold()] > 1:
            same = [other for other in classes if other.casefold() == name.casefold()]
            raise DatasetError(
                f"The class folders {' and '.join(map(repr, same))} of {place} differ only in case;"
                " put their pictures together, or rename one."
            )
        if not name.isprintable():
            raise DatasetError(f"The class folder {name!r} has characters that cannot be shown; rename it.")
    files = []
    for name in classes:
        paths = list(_files_below(place / name, folder))
        if not paths and part in ("", "train"):
            raise DatasetError(f"The class folder {place / name} is empty; add pictures, or remove it.")
        files += [PictureFile(folder, path, name, part) for path in paths]
    return files


def _files_below(place: Path, folder: Path):
    """Names below `folder` of all files in a class folder and its subfolders.

    Links to folders are not followed: they may run in circles.
    """
    for inside, subfolders, names in os.walk(place):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        above = Path(inside).relative_to(folder).as_posix()
        yield from (f"{above}/{name}" for name in names if not name.startswith(".") and name != "Thumbs.db")


def usual_size(files: list[PictureFile]) -> tuple[int, int]:
    """The size of the pictures, if some of them, taken at even distances, all have the same small one."""
    step = -(-len(files) // N_SIZES)
    sizes = {picture_size(file.path) for file in files[::step]} - {None}
    if len(sizes) == 1:
        (height, width) = next(iter(sizes))
        if height <= USUAL_SIZE[0] and width <= USUAL_SIZE[1]:
            return height, width
    return USUAL_SIZE


# --- in words ------------------------------------------------------------------------------------------


def counted(names: list[str], what: str, n_shown: int = 3) -> str:
    """How many, and the first names, printable.

    >>> counted(["a/1.png", "a/2.png"], "duplicate")
    '2 duplicates (a/1.png, a/2.png)'
    """
    shown = ", ".join(printable(name) for name in names[:n_shown]) + (", ..." if len(names) > n_shown else "")
    return f"{len(names)} {what}{'s' if len(names) > 1 else ''} ({shown})"


def printable(name: str) -> str:
    """A file's name with all that a terminal could obey or not show replaced by escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in name)


def case_note(files: list[PictureFile]) -> list[str]:
    """One sentence on files whose names differ only in case: on many systems they cannot lie side by side."""
    spellings = Counter(file.name.casefold() for file in files)
    clashing = [file.name for file in files if spellings[file.name.casefold()] > 1]
    if not clashing:
        return []
    return [f"{counted(clashing, 'file')} differ only in case: both are used, but many systems keep only one"]
