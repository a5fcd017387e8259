"""Attack by `kill -9`: at random moments of decoding, training, saving, the report, and the caching of features.

A try starts `tigra train` on a folder of pictures in a process of its own, kills it one to four times, each time goes
on as a user would (--resume if there is a model file, else the same command), and lets it finish. At every kill the
model file must be absent or complete. In the end it must have the bits of an undisturbed run, and nothing may be left
beside it or in the cache. Kills are counted by what they hit; one that comes after the end of the process hits
nothing, and does not count.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
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
from tigra.model_file import load_model

N_PICTURES, SIDE = 40, 16  # pictures per class, and their height and width
PICTURES, MODEL, CACHE, LOG = "pictures", "out/model.npz", "cache", "log"
TRAIN = ["train", PICTURES, "--architecture", "SC[2, 1]-DP[20]-S[2]-FC[4]", "--epochs", "4", "--batch-size", "8"]
FIT = ["train", PICTURES, "--method", "deepscat", "--architecture", "W[2, 1]-PCA[2]"]
MOST_KILLS = 4


class Command(NamedTuple):
    """A command line, what an undisturbed run leaves behind, and how long that takes."""

    words: list[str]
    model: bytes
    cached: set[str]
    seconds: float


def attack(seconds: float, seed: int, progress: Progress) -> Outcome:
    """Kill processes for some seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        draw_pictures(folder / PICTURES)
        commands = [undisturbed(words, folder) for words in (TRAIN, FIT)]
        kills: Counter[str] = Counter()
        outcome = repeat(lambda number: attempt(commands, number, folder, kills), seconds, seed, progress, "kill")
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


def undisturbed(words: list[str], folder: Path) -> Command:
    """Run a command without a kill, once to compile its kernels and once to measure its time."""
    with tempfile.TemporaryDirectory(dir=folder) as name, _as_it_was():
        _work(words, folder, Path(name))
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place, started = Path(name), time.monotonic()
        _finish(words, folder, place)
        seconds = time.monotonic() - started
        return Command(words, (place / MODEL).read_bytes(), _cached(place), seconds)


def attempt(commands: list[Command], seed: int, folder: Path, kills: Counter[str]) -> None:
    """Kill one of the commands, go on, and compare; count the kills by what they hit."""
    rng = np.random.default_rng(seed)
    command = commands[seed % len(commands)]
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place, words = Path(name), command.words
        for _ in range(int(rng.integers(1, MOST_KILLS + 1))):
            moment = command.seconds * rng.random()
            status = forked(lambda words=words: _work(words, folder, place), folder / LOG, moment)
            _check_status(status, folder)
            words, phase = _next_words(command.words, place)
            kills.update([phase] if status is None else [])
            if not words:
                break
        if words:
            _finish(words, folder, place)
        if (place / MODEL).read_bytes() != command.model:
            raise Broken("the model has other bits than that of an undisturbed run")
        _check_left(_tree(place) - _tree(place / CACHE, CACHE), {MODEL}, "the model")
        _check_left(_cached(place), command.cached, "the cache")


def _next_words(words: list[str], place: Path) -> tuple[list[str], str]:
    """What a user would write after a kill, nothing if the run is finished and has its report; and what was hit."""
    if not (place / MODEL).exists():
        has_images = any(not path.name.startswith(".") for path in (place / CACHE / "images").glob("*"))
        learning = "computing and caching features" if "deepscat" in words else "before the first save"
        return words, learning if has_images else "starting and decoding"
    model = load_model(place / MODEL)  # complete, whenever the kill was
    try:
        check_resumable(model, MODEL)
    except ModelFileError:
        return [], "ending"
    phase = "reporting" if model.resume is None else "training and saving"
    return ["train", "--resume", str(place / MODEL)], phase


def _finish(words: list[str], folder: Path, place: Path) -> None:
    _check_status(forked(lambda: _work(words, folder, place), folder / LOG), folder)
    if not (place / MODEL).exists():
        raise Broken("there is no model file")


def _check_status(status: int | None, folder: Path) -> None:
    if status not in (0, None):
        raise Broken(f"exit status {status}: {(folder / LOG).read_text(errors='replace')[-250:]}")


def _work(words: list[str], folder: Path, place: Path) -> None:
    """Run a command of tigra in this process; it saves after every step."""
    (place / MODEL).parent.mkdir(exist_ok=True)
    os.environ["TIGRA_CACHE"] = str(place / CACHE)
    os.chdir(folder)
    runs.perform.__defaults__ = (None, None, 0.0, None)
    out = [] if "--resume" in words else ["--out", str(place / MODEL)]
    main([*words, *out, "--threads", "2"], standalone_mode=False)


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


def _cached(place: Path) -> set[str]:
    """All files of the cache but remembered digests, which are kept only once the pictures are some seconds old."""
    return {name for name in _tree(place / CACHE) if not re.fullmatch(r"folders.[0-9a-f]{32}\.json", name)}


def _check_left(found: set[str], expected: set[str], where: str) -> None:
    if found != expected:
        raise Broken(f"left beside {where}: {sorted(found - expected)}, missing: {sorted(expected - found)}")
