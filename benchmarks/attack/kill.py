"""Attack by `kill -9` at random moments of starting, decoding, training, saving, the report, and caching features.

A try starts `tigra train` on a folder of pictures in a process of its own, kills it one to four times, each time goes
on as a user would (--resume if there is a model file, else the same command), and lets it finish. At every kill the
model file must be absent or complete. In the end it must have the bits of an undisturbed run, and nothing may be left
beside it or in the cache. Kills are counted by what they hit; one that comes after the end of the process hits
nothing, and does not count.

Most processes are forked from this one, which has imported and compiled everything, so that kills hit the work and
not the start of Python. In every tenth try they are new ones: `python -m tigra train`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image
from tigra_cli.main import main

from benchmarks.attack.cage import Broken, forked
from benchmarks.attack.outcome import Outcome, Progress, repeat
from tigra.errors import ModelFileError
from tigra.experiments import runs
from tigra.experiments.resuming import check_resumable
from tigra.files.atomic import TEMPORARY
from tigra.images.store import BUILDING
from tigra.model_file import load_model

N_PICTURES, SIDE = 40, 16  # pictures per class, and their height and width
PICTURES, MODEL, CACHE, LOG = "pictures", "out/model.npz", "cache", "log"
TRAIN = ["train", PICTURES, "--architecture", "SC[2, 1]-DP[20]-S[2]-FC[4]", "--epochs", "4", "--batch-size", "8"]
FIT = ["train", PICTURES, "--method", "deepscat", "--architecture", "W[2, 1]-PCA[2]"]
LONGER = [*TRAIN, "--epochs", "40"]  # for new processes, which need seconds to begin
MOST_KILLS = 4
COMMANDS = {"train": TRAIN, "fit": FIT, "new train": LONGER, "new fit": FIT}
NEW = "new train", "new fit"
TURNS = ["train", "fit"] * 9 + [*NEW]  # of the tries
AT_EVERY_STEP = (None, None, 0.0, None)  # defaults of `runs.perform`, with no time between two saves
EAGER = "eager.py"  # does the same in a new process


class Command(NamedTuple):
    """A command line, what an undisturbed run leaves behind, and how long that takes."""

    words: list[str]
    is_new: bool  # whether its processes are new ones, or forked
    model: bytes
    cached: set[str]
    seconds: float


def attack(seconds: float, seed: int, progress: Progress) -> Outcome:
    """Kill processes for some seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        draw_pictures(folder / PICTURES)
        command = cache(lambda name: undisturbed(COMMANDS[name], folder, name in NEW))  # measured at its first turn
        kills: Counter[str] = Counter()

        def once(number: int) -> None:
            attempt(command(TURNS[number % len(TURNS)]), number, folder, kills)

        outcome = repeat(once, seconds, seed, progress, "kill")
        outcome.hits = kills
        return outcome


def draw_pictures(folder: Path) -> None:
    """Draw rings and spots."""
    rng = np.random.default_rng(0)
    for name in ("ring", "spot"):
        (folder / name).mkdir(parents=True)
        for number in range(N_PICTURES):
            distance = np.hypot(*(np.mgrid[:SIDE, :SIDE] - rng.uniform(6, 10, (2, 1, 1))))
            light = np.abs(distance - 4) < 1 if name == "ring" else distance < 2.5
            pixels = np.uint8(200 * light + rng.integers(50, size=light.shape))
            Image.fromarray(pixels).save(folder / name / f"{number}.png")


def undisturbed(words: list[str], folder: Path, is_new: bool = False) -> Command:
    """Run a command without a kill to measure its time; before a fork, also in this process to compile its kernels."""
    if not is_new:
        with tempfile.TemporaryDirectory(dir=folder) as name, _as_it_was():
            _work(words, folder, Path(name))
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place, started = Path(name), time.monotonic()
        _finish(words, folder, place, is_new)
        seconds = time.monotonic() - started
        return Command(words, is_new, (place / MODEL).read_bytes(), _cached(place), seconds)


def attempt(command: Command, seed: int, folder: Path, kills: Counter[str]) -> None:
    """Kill a command, go on, and compare; count the kills by what they hit."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place, words = Path(name), command.words
        for _ in range(int(rng.integers(1, MOST_KILLS + 1))):
            before, moment = _stamps(place), command.seconds * rng.random()
            work = partial(_work, words, folder, place, command.is_new)
            status = forked(work, folder / LOG, moment)
            _check_status(status, folder)
            words, phase = _next_words(command.words, place, before)
            kills.update([phase + ", new process" * command.is_new] if status is None else [])
            if not words:
                break
        if words:
            _finish(words, folder, place, command.is_new)
        if (place / MODEL).read_bytes() != command.model:
            raise Broken("the model has other bits than that of an undisturbed run")
        _check_left(_tree(place) - _tree(place / CACHE, CACHE), {MODEL}, "the model")
        _check_left(_cached(place), command.cached, "the cache")


def _next_words(words: list[str], place: Path, before: set[tuple] = frozenset()) -> tuple[list[str], str]:
    """What a user would write after a kill, nothing if the run is finished and has its report; and what was hit."""
    written = {name for name, *_ in _stamps(place) - before}
    if not (place / MODEL).exists():
        return words, _hit(
            written, "starting", "computing features" if "deepscat" in words else "before the first save"
        )
    model = load_model(place / MODEL)  # complete, whenever the kill was
    try:
        check_resumable(model, MODEL)
    except ModelFileError:
        return [], "ending"
    is_trained = model.resume is None
    phase = "reporting" if is_trained else "training" if MODEL in written else "resuming"
    return ["train", "--resume", str(place / MODEL)], _hit(written, phase, phase)


def _hit(written: set[str], phase: str, with_pictures: str) -> str:
    """What a kill hit, by what the process has written: unfinished files tell, else the phase."""
    folders = [os.path.split(name) for name in written]
    if any(f"{os.sep}{BUILDING}" in name for name in written):
        return "decoding"
    if any(name.startswith(TEMPORARY) for _, name in folders):
        return "saving"
    if any(name.endswith(("-journal", "-wal")) for _, name in folders):
        return "caching features"
    return with_pictures if any(folder.startswith(os.path.join(CACHE, "images")) for folder, _ in folders) else phase


def _finish(words: list[str], folder: Path, place: Path, is_new: bool) -> None:
    _check_status(forked(lambda: _work(words, folder, place, is_new), folder / LOG), folder)
    if not (place / MODEL).exists():
        raise Broken("there is no model file")


def _check_status(status: int | None, folder: Path) -> None:
    if status not in (0, None):
        raise Broken(f"exit status {status}: {(folder / LOG).read_text(errors='replace')[-250:]}")


def _work(words: list[str], folder: Path, place: Path, is_new: bool = False) -> None:
    """Run a command of tigra, which saves after every step, in this process, or put a new one in its place."""
    (place / MODEL).parent.mkdir(exist_ok=True)
    os.environ["TIGRA_CACHE"] = str(place / CACHE)
    os.chdir(folder)
    out = [] if "--resume" in words else ["--out", str(place / MODEL)]
    words = [*words, *out, "--threads", "2"]
    if is_new:
        Path(EAGER).write_text(f"from tigra.experiments import runs\nruns.perform.__defaults__ = {AT_EVERY_STEP}\n")
        os.execv(sys.executable, [sys.executable, "-m", "tigra", *words, "--import", EAGER])
    runs.perform.__defaults__ = AT_EVERY_STEP
    main(words, standalone_mode=False)


@contextlib.contextmanager
def _as_it_was() -> Iterator[None]:
    """Undo what `_work` changes in this process, and drop what it prints."""
    cache, folder, defaults = os.environ.get("TIGRA_CACHE"), Path.cwd(), runs.perform.__defaults__
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        os.chdir(folder)
        runs.perform.__defaults__ = defaults
        os.environ.pop("TIGRA_CACHE", None)
        os.environ.update({"TIGRA_CACHE": cache} if cache is not None else {})


def _tree(folder: Path, before: str = "") -> set[str]:
    """All files below a folder, by their names in it, with something before them."""
    return {os.path.join(before, path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def _stamps(folder: Path) -> set[tuple]:
    """Name, file number and time of all files below a folder."""
    found = ((name, os.stat(folder / name)) for name in _tree(folder))
    return {(name, stat.st_ino, stat.st_mtime_ns) for name, stat in found}


def _cached(place: Path) -> set[str]:
    """All files of the cache but remembered digests, which are kept only once the pictures are some seconds old."""
    return {name for name in _tree(place / CACHE) if not re.fullmatch(r"folders.[0-9a-f]{32}\.json", name)}


def _check_left(found: set[str], expected: set[str], where: str) -> None:
    if found != expected:
        raise Broken(f"left beside {where}: {sorted(found - expected)}, missing: {sorted(expected - found)}")
