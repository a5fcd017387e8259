"""`tigra data`: list the data sets, download their files and check them."""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path
from typing import Any

import click

from .data_show import show
from .shared.data_options import data_dir_option
from .shared.options import json_option
from .shared.output import Progress, percent, print_json, say, table

EMBEDDED = "mnist-012"


@click.group()
def data():
    """List, fetch, verify and show the data sets.

    mnist-012 comes with tigra. The others are made from MNIST and ETH-80, which 'tigra data fetch'
    downloads once. Their files are searched for in --data-dir, then in $TIGRA_DATA, then in the cache
    folder.

    \b
    Example:
        tigra data list --json
        tigra data fetch mnist
        tigra data show mnist-012 --out digits.png
    """


data.add_command(show)


def size_text(n_bytes: int) -> str:
    """Format a number of bytes.

    >>> size_text(512), size_text(28881), size_text(20_674_182), size_text(1_250_000_000)
    ('512 B', '28.9 kB', '20.7 MB', '1.2 GB')
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:.1f} {unit}"
    return f"{n_bytes} B"


def _source(ctx, name: str, as_json: bool, empty: dict):
    """Return the source of that name or of that data set; for the embedded data set, say so and exit."""
    from tigra.datasets.sources import source_named

    if name == EMBEDDED:
        sentence = f"{EMBEDDED} comes with tigra; there is nothing to fetch or to verify."
        print_json(empty) if as_json else say(sentence)
        ctx.exit()
    return source_named(name)


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


# --- list ---------------------------------------------------------------------------------------------


@data.command("list")
@data_dir_option
@json_option
def list_datasets(data_dir, as_json):
    """List the data sets and where their files were found.

    \b
    Example:
        tigra data list --data-dir DOWNLOADS
    """
    from tigra.datasets.sources import SOURCES
    from tigra.files.cache import cache_folder

    embedded = resources.files("tigra_data").joinpath("mnist-012.npz")
    entries: list[dict[str, Any]] = [
        {"name": EMBEDDED, "source": None, "found": True, "origin": "tigra", "paths": [str(embedded)],
         "bytes": len(embedded.read_bytes())}
    ]  # fmt: skip
    for source in SOURCES.values():
        entries += [{"name": name, "source": source.name} | _whereabouts(source, data_dir) for name in source.datasets]
    if as_json:
        print_json({"cache": str(cache_folder()), "decoded_bytes": _size_of(_decoded_pictures()), "datasets": entries})
        return
    rows = [
        (entry["name"], size_text(entry["bytes"]), entry["origin"], _folder(Path(entry["paths"][0])))
        if entry["found"]
        else (entry["name"], "-", "-", f"not found; run 'tigra data fetch {entry['source']}'")
        for entry in entries
    ]
    say(table(rows, header=("data set", "size", "found by", "in")))
    say(f"cache folder: {cache_folder()}, {size_text(_size_of(_decoded_pictures()))} of decoded pictures")


def _whereabouts(source, data_dir) -> dict:
    from tigra.datasets.sources import find

    found = find(source.name, data_dir)
    if found is None:
        return {"found": False, "origin": None, "paths": [], "bytes": 0}
    return {"found": True, "origin": found.origin, "paths": list(map(str, found.paths)), "bytes": found.n_bytes}


# --- fetch --------------------------------------------------------------------------------------------


@data.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--mirror",
    metavar="URL",
    help="Try this URL of a folder with the files first, for example if the official servers are down.",
)
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="FILE",
    help="Fetch this archive of ETH-80, by its file name, instead of the default one.",
)
@click.option(
    "--data-dir",
    type=click.Path(exists=True, file_okay=False),
    help="Put the files in a subfolder of this folder instead of the cache folder.",
)
@json_option
@click.pass_context
def fetch(ctx, name, mirror, files, data_dir, as_json):
    """Download the files of a data set.

    NAME is mnist, eth80, or a data set made from one of them. Files that are present and correct are not
    downloaded again. MNIST files are checked against their published SHA-256 checksums. ETH-80 has no
    published checksum, so tigra checks that every picture is present and opens.

    \b
    Example:
        tigra data fetch mnist
        tigra data fetch eth80 --file eth80-cropped256.tgz
    """
    from tigra.datasets import download
    from tigra.datasets.sources import find
    from tigra.files.cache import cache_folder

    source = _source(ctx, name, as_json, {"source": None, "folder": None, "fetched": []})
    with Progress() as progress:
        progress.show(f"looking for {source.name}")
        found, paths = _right_ones(source, files, data_dir), []
        if not found:

            def on_progress(file: str, done: int, total: int) -> None:
                part = f"{percent(done / total)} of {size_text(total)}" if total else size_text(done)
                progress.show(f"{part}  {file}", done if total else 0, total, phase=file)

            folder = (Path(data_dir) if data_dir else cache_folder()) / source.name
            paths = download.fetch(source, mirror, folder, on_progress, files=files)
    if as_json:
        folder = _folder((found.paths if found else paths)[0])
        print_json({"source": source.name, "folder": str(folder), "fetched": [path.name for path in paths]})
    elif found:
        say(f"{source.name} is already in {_folder(found.paths[0])} ({found.origin}).")
    else:
        say(f"{source.name}: {', '.join(path.name for path in paths)} in {folder}")
        for path in paths:
            _tell_sum(path)
    first = find(source.name, data_dir)
    if paths and first and not set(first.paths) & set(paths):
        say(f"Note: {first.paths[0]} ({first.origin}) takes precedence over the new files.", err=True)


def _right_ones(source, files, data_dir):
    """Return where the source, or the requested files of it, is on this machine; None if absent or damaged."""
    from tigra.datasets.sources import find, verify

    found = find(source.name, data_dir)
    if found is None or (data_dir and found.origin != "--data-dir"):
        return None
    if files and not {path.name for path in found.paths} >= set(files):
        return None
    return found if all(state == "ok" for _, state, _ in verify(source.name, data_dir)) else None


def _tell_sum(path: Path) -> None:
    kept = path.with_name(path.name + ".sha256")
    if kept.is_file():
        say(f"No SHA-256 of {path.name} is published; tigra only checked that all pictures are present and open.")
        say(f"Its SHA-256, {kept.read_text().split()[0]}, was saved in {kept.name}.")


# --- verify -------------------------------------------------------------------------------------------


@data.command()
@click.argument("name", metavar="[NAME]", required=False)
@data_dir_option
@json_option
@click.pass_context
def verify(ctx, name, data_dir, as_json):
    """Check the content of downloaded files.

    NAME is mnist, eth80, or a data set made from one of them; by default, all that are found.
    The exit status is 1 if a file is damaged or NAME is missing.

    \b
    Example:
        tigra data verify mnist
    """
    from tigra.datasets import sources

    names = [_source(ctx, name, as_json, {"passed": True, "files": []}).name] if name else list(sources.SOURCES)
    with Progress() as progress:
        results = []
        for source in names:
            progress.show(f"verifying {source}")
            results += [(source, *result) for result in sources.verify(source, data_dir)]
    if name and any(state == "absent" for _, _, state, _ in results):
        raise sources.missing(names[0], data_dir)
    passed = all(state != "damaged" for _, _, state, _ in results)
    if as_json:
        keys = ("source", "file", "state", "detail")
        print_json({"passed": passed, "files": [dict(zip(keys, result, strict=True)) for result in results]})
    else:
        say(table([(state, file, detail.removeprefix(f"{file} ")) for _, file, state, detail in results]))
    if not passed:
        ctx.exit(1)


# --- clear --------------------------------------------------------------------------------------------


@data.command()
@json_option
def clear(as_json):
    """Delete decoded pictures from the cache folder.

    The features computed from them are deleted, too. Both are computed again when needed. Downloaded files are kept.

    \b
    Example:
        tigra data clear
    """
    folders = _decoded_pictures()
    n_bytes = _size_of(folders)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    freed = n_bytes - _size_of(folders)
    print_json({"freed_bytes": freed}) if as_json else say(f"{size_text(freed)} freed")


def _decoded_pictures() -> list[Path]:
    from tigra.files.cache import cache_folder

    return [cache_folder() / name for name in ("images", "folders", "scattering")]


def _size_of(folders: list[Path]) -> int:
    return sum(path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file())
