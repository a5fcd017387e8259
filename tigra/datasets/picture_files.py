"""List the files of a folder of pictures by class and part."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tigra.errors import DatasetError, printable
from tigra.images.colour import has_colour
from tigra.images.pictures import picture_size
from tigra.images.streaming import is_hidden

PARTS = dict.fromkeys(("train", "training"), "train")
PARTS |= dict.fromkeys(("valid", "val", "validation", "dev"), "valid")
PARTS |= dict.fromkeys(("test", "testing", "eval", "evaluation"), "test")
USUAL_SIZE = 50, 50  # the paper's size for photographs; smaller pictures of equal size keep theirs
N_SIZES = 200  # number of pictures whose size is read
N_COLOURS = 60  # number of pictures that are looked at for colour
COLOUR_SHARE = 0.1  # of them must have colour


class PictureFile(NamedTuple):
    """A possible picture: its path below the folder, its class, and its part ("" if not yet split)."""

    folder: Path
    name: str
    class_name: str
    part: str

    @property
    def path(self) -> Path:
        """Full path; computed when needed, since there may be many files."""
        return self.folder / self.name


def list_pictures(folder: Path) -> list[PictureFile]:
    """Return every file of every class, sorted by name, without hidden ones."""
    try:
        parts = _parts_of(folder)
        files = [file for part, place in sorted(parts.items()) for file in _classes_of(place, part, folder)]
    except OSError as error:
        raise DatasetError(f"Cannot list {error.filename}: {error.strerror}; check its permissions.") from error
    if not files:
        raise DatasetError(
            f"{folder} has no subfolders with pictures; give a folder with one subfolder per class,"
            " or with train/, valid/ and test/ that have them."
        )
    return sorted(files, key=lambda file: os.fsencode(file.name))


def _parts_of(folder: Path) -> dict[str, Path]:
    """Return {"train": its folder, ...}, or {"": folder} if the subfolders are classes.

    A folder called train is a part if it has subfolders and no pictures of its own. Otherwise it is a
    class of pictures of trains.
    """
    names = _subfolders(folder)
    parts = [name for name in names if name.lower() in PARTS]
    looks = {name: bool(_subfolders(folder / name)) and not _files_in(folder / name) for name in parts}
    if not any(looks.values()):
        return {"": folder}
    if not any(looks[name] and PARTS[name.lower()] == "train" for name in parts):
        raise DatasetError(
            f"{folder} has {', '.join(parts)}, but no training pictures; add a folder train with its class folders."
        )
    if len(parts) < len(names):
        others = ", ".join(printable(name) for name in names if name not in parts)
        raise DatasetError(
            f"{folder} has {', '.join(parts)}, but also {others}; move those into one of them, or elsewhere."
        )
    if len({PARTS[name.lower()] for name in parts}) < len(parts):
        raise DatasetError(f"{folder} has two folders for the same part among {', '.join(parts)}; merge them.")
    return {PARTS[name.lower()]: folder / name for name in parts}


def stray_note(folder: Path) -> list[str]:
    """Return one sentence on files next to the class folders, which are not used."""
    places = [folder, *(place for part, place in _parts_of(folder).items() if part)]
    strays = [(place / name).relative_to(folder).as_posix() for place in places for name in _files_in(place)]
    are = "is" if len(strays) == 1 else "are"
    return [f"{counted(strays, 'file', 'files')} next to the class folders {are} not used"] if strays else []


def _files_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_file() and not is_hidden(entry.name))


def _subfolders(folder: Path) -> list[str]:
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not is_hidden(entry.name))


def _classes_of(place: Path, part: str, folder: Path) -> list[PictureFile]:
    """Return the files of every class below `place`; check the class folders."""
    classes = _subfolders(place)
    spellings = Counter(name.casefold() for name in classes)
    for name in classes:
        if spellings[name.casefold()] > 1:
            same = [other for other in classes if other.casefold() == name.casefold()]
            raise DatasetError(
                f"The class folders {' and '.join(map(repr, same))} of {place} differ only in case;"
                " merge them, or rename one."
            )
        if not name.isprintable():
            raise DatasetError(f"The class folder {name!r} has unprintable characters; rename it.")
    files = []
    for name in classes:
        paths = list(_files_below(place / name, folder))
        if not paths and part in ("", "train"):
            raise DatasetError(f"The class folder {place / name} is empty; add pictures, or remove it.")
        files += [PictureFile(folder, path, name, part) for path in paths]
    return files


def _files_below(place: Path, folder: Path):
    """Yield the paths below `folder` of all files in a class folder and its subfolders.

    Links to folders are not followed, as they may form cycles.
    """
    for inside, subfolders, names in os.walk(place, onerror=_refuse):
        subfolders[:] = sorted(name for name in subfolders if not is_hidden(name))
        above = Path(inside).relative_to(folder).as_posix()
        yield from (f"{above}/{name}" for name in names if not is_hidden(name))


def _refuse(error: OSError):
    raise error


def usual_size(files: list[PictureFile], is_square: bool = False) -> tuple[int, int]:
    """Return the size of the pictures if a sample of them all have the same small size, else 50x50.

    With `is_square` the size is made square, so that nothing is cut off in rotations by 90 degrees.
    """
    step = -(-len(files) // N_SIZES)
    sizes = {size for file in files[::step] if (size := picture_size(file.path))}
    if len(sizes) == 1:
        (height, width) = next(iter(sizes))
        if height <= USUAL_SIZE[0] and width <= USUAL_SIZE[1]:
            return (max(height, width),) * 2 if is_square else (height, width)
    return USUAL_SIZE


def have_colour(files: list[PictureFile]) -> bool:
    """Whether at least a tenth of a sample of the pictures shows colours: one class of ten may be what differs."""
    step = -(-len(files) // N_COLOURS)
    seen = [found for file in files[::step] if (found := has_colour(file.path)) is not None]
    return sum(seen) >= max(1, COLOUR_SHARE * len(seen)) if seen else False


# --- in words ------------------------------------------------------------------------------------------


def counted(names: list[str], one: str, many: str, n_shown: int = 3) -> str:
    """Return the number of names and the first few of them, in words.

    >>> counted(["a/1.png", "a/2.png"], "duplicate", "duplicates")
    '2 duplicates (a/1.png, a/2.png)'
    """
    shown = ", ".join(printable(name) for name in names[:n_shown]) + (", ..." if len(names) > n_shown else "")
    return f"{len(names)} {one if len(names) == 1 else many} ({shown})"


def case_note(files: list[PictureFile]) -> list[str]:
    """Return one sentence on files whose names differ only in case; many systems cannot hold both."""
    spellings = Counter(file.name.casefold() for file in files)
    clashing = [file.name for file in files if spellings[file.name.casefold()] > 1]
    if not clashing:
        return []
    return [f"{counted(clashing, 'file', 'files')} differ only in case: both are used, but many systems keep only one"]
