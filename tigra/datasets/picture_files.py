"""The files of a folder of pictures: which classes and parts there are, and what lies in them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tigra.errors import DatasetError
from tigra.images.pictures import picture_size

PARTS = dict.fromkeys(("train", "training"), "train")
PARTS |= dict.fromkeys(("valid", "val", "validation", "dev"), "valid")
PARTS |= dict.fromkeys(("test", "testing", "eval", "evaluation"), "test")
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
    """{"train": its folder, ...}, or {"": folder} if the subfolders are classes.

    A folder called train is a part if it has subfolders and no pictures of its own; else it is a class, among
    cars and ships for instance.
    """
    names = _subfolders(folder)
    parts = [name for name in names if name.lower() in PARTS]
    looks = {name: bool(_subfolders(folder / name)) and not _files_in(folder / name) for name in parts}
    if not any(looks.values()):
        return {"": folder}
    if not any(looks[name] and PARTS[name.lower()] == "train" for name in parts):
        raise DatasetError(f"{folder} has {', '.join(parts)}, but no folder train with a subfolder for each class.")
    if len(parts) < len(names):
        others = ", ".join(printable(name) for name in names if name not in parts)
        raise DatasetError(f"{folder} has {', '.join(parts)}, but also {others}; move those into parts, or elsewhere.")
    if len({PARTS[name.lower()] for name in parts}) < len(parts):
        raise DatasetError(f"{folder} has two folders for the same part among {', '.join(parts)}; put them together.")
    return {PARTS[name.lower()]: folder / name for name in parts}


def stray_note(folder: Path) -> list[str]:
    """One sentence on files that lie beside the class folders, where nobody looks for them."""
    places = [folder, *(place for part, place in _parts_of(folder).items() if part)]
    strays = [(place / name).relative_to(folder).as_posix() for place in places for name in _files_in(place)]
    return [f"{counted(strays, 'file', 'files')} beside the class folders are not used"] if strays else []


def _files_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_file() and not _is_hidden(entry.name))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "Thumbs.db"


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
    for inside, subfolders, names in os.walk(place, onerror=_refuse):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        above = Path(inside).relative_to(folder).as_posix()
        yield from (f"{above}/{name}" for name in names if not _is_hidden(name))


def _refuse(error: OSError):
    raise error


def usual_size(files: list[PictureFile], is_square: bool = False) -> tuple[int, int]:
    """The size of the pictures, if some of them, taken at even distances, all have the same small one.

    is_square : make it square, so that nothing is cut off when they are turned by 90 degrees
    """
    step = -(-len(files) // N_SIZES)
    sizes = {size for file in files[::step] if (size := picture_size(file.path))}
    if len(sizes) == 1:
        (height, width) = next(iter(sizes))
        if height <= USUAL_SIZE[0] and width <= USUAL_SIZE[1]:
            return (max(height, width),) * 2 if is_square else (height, width)
    return USUAL_SIZE


# --- in words ------------------------------------------------------------------------------------------


def counted(names: list[str], one: str, many: str, n_shown: int = 3) -> str:
    """How many, and the first names, printable.

    >>> counted(["a/1.png", "a/2.png"], "duplicate", "duplicates")
    '2 duplicates (a/1.png, a/2.png)'
    """
    shown = ", ".join(printable(name) for name in names[:n_shown]) + (", ..." if len(names) > n_shown else "")
    return f"{len(names)} {one if len(names) == 1 else many} ({shown})"


def printable(name: str) -> str:
    """A file's name with all that a terminal could obey or not show replaced by escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in name)


def case_note(files: list[PictureFile]) -> list[str]:
    """One sentence on files whose names differ only in case: on many systems they cannot lie side by side."""
    spellings = Counter(file.name.casefold() for file in files)
    clashing = [file.name for file in files if spellings[file.name.casefold()] > 1]
    if not clashing:
        return []
    return [f"{counted(clashing, 'file', 'files')} differ only in case: both are used, but many systems keep only one"]
