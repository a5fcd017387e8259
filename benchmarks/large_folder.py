"""A folder of very many pictures: how long loading takes, and that memory does not grow with it.

    python -m benchmarks.large_folder [--images 20000 200000] [--place FOLDER]

Small random digits-like pictures are written below FOLDER (a temporary one by default; kept and used again
if named). For each number of pictures `tigra train` runs one epoch with a small network, twice: the first
time pictures are decoded, the second time they come from the cache. Reported are the time until the
first training step, and the largest amount of memory of its own that the process held ("anonymous"; pages
of the mapped file come on top of that, and are given back when others need them). Linux only.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from tigra.images.transforms import smooth

TRAIN = ["train", "FOLDER", "--epochs", "1", "--batch-size", "100", "--architecture", "SC[2, 2]-DP[100]-S[3]-FC[8]"]
CODE = """
import sys, time
started = time.monotonic()
from tigra.training.gradient import BatchGradient
step = BatchGradient.__call__
def first(self, *arguments):
    print("first step", time.monotonic() - started, file=sys.stderr, flush=True)
    BatchGradient.__call__ = step
    return step(self, *arguments)
BatchGradient.__call__ = first
from tigra_cli.main import main
main()
"""


def write_pictures(folder: Path, n_pictures: int) -> None:
    """n_pictures of 28x28 pixels in ten classes; what is there stays."""
    for start in range(0, n_pictures, 1000):
        target = folder / str(start // 1000 % 10)
        if (target / f"{start + 999}.png").exists():
            continue
        target.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(start)
        images = smooth(rng.uniform(size=(1000, 28, 28)) ** 4, 1.0 + 0.1 * (start // 1000 % 10))
        for number, image in enumerate(images, start):
            Image.fromarray((255 * image / image.max()).astype(np.uint8)).save(target / f"{number}.png")


def measured_run(folder: Path, cache: Path, out: Path) -> dict:
    """Seconds to the first step, seconds in all, and the peak of anonymous and of all resident memory in MB."""
    words = [sys.executable, "-c", CODE, *(str(folder) if word == "FOLDER" else word for word in TRAIN)]
    started, peak = time.monotonic(), {"RssAnon": 0, "VmHWM": 0}
    with subprocess.Popen(
        [*words, "--out", str(out)],
        env=os.environ | {"TIGRA_CACHE": str(cache)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while process.poll() is None:
            try:
                lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            except OSError:
                break
            for name, value in (line.split(":", 1) for line in lines if ":" in line):
                if name in peak:
                    peak[name] = max(peak[name], int(value.split()[0]) // 1000)
            time.sleep(0.05)
        said = process.stderr.read()
    if process.returncode:
        sys.exit(said)
    (first_step,) = [float(line.split()[-1]) for line in said.splitlines() if line.startswith("first step")]
    return {"first step": first_step, "all": time.monotonic() - started, **peak}


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, nargs="+", default=[20_000, 200_000])
    parser.add_argument("--place", type=Path)
    options = parser.parse_args()
    print("| pictures | cache | first step after | in all | own memory, peak | resident, peak |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as temporary:
        place = options.place or Path(temporary)
        for n_pictures in options.images:
            folder = place / str(n_pictures)
            write_pictures(folder, n_pictures)
            cache = Path(tempfile.mkdtemp(dir=temporary))
            for state in ("empty", "filled"):
                run = measured_run(folder, cache, Path(temporary, "model.npz"))
                print(
                    f"| {n_pictures} | {state} | {run['first step']:.0f} s | {run['all']:.0f} s"
                    f" | {run['RssAnon']} MB | {run['VmHWM']} MB |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
