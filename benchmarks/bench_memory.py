"""Memory of training, epoch by epoch: its peak, and page faults, which tell of memory fetched anew. Linux only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.problems import Settings, Size
from benchmarks.report import Report

PROGRAM = """
import json, resource, sys
import numpy as np
import tigra
architecture, height, width, n_classes, batch, n_images, epochs = json.loads(sys.argv[1])
rng = np.random.default_rng(0)
images = tigra.images.transforms.smooth(rng.uniform(size=(n_images, height, width)).astype(np.float32), 1.0)
labels = rng.integers(0, n_classes, n_images)
class Splits:
    train, valid = (images, labels), (images[:batch], labels[:batch])
network = tigra.build_network(architecture, (height, width), n_classes)
def peak():  # ru_maxrss would count the parent's memory, from before this program was loaded
    (line,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1]) // 1024
before, rows = resource.getrusage(resource.RUSAGE_SELF), []
for epoch in tigra.fit(network, Splits, epochs=epochs, batch_size=batch, threads=2):
    now = resource.getrusage(resource.RUSAGE_SELF)
    rows.append((peak(), now.ru_minflt - before.ru_minflt))
    before = now
print(json.dumps(rows))
"""


def epochs_of(size: Size, batch: int, n_images: int, epochs: int) -> list[tuple[int, int]]:
    """(peak of resident memory in MB, page faults in the epoch) after each epoch, in a fresh process."""
    words = json.dumps([size.architecture, *size.shape, size.n_classes, batch, n_images, epochs])
    done = subprocess.run([sys.executable, "-c", PROGRAM, words], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def run(settings: Settings, report: Report) -> None:
    """Each size for a few epochs of ten steps; once with batches of one size, once with micro-batches of many."""
    if not Path("/proc/self/status").exists():
        report.say("Skipped: this system does not tell the memory of a process as Linux does.")
        return
    epochs, n_steps = (3, 2) if settings.scale == 0 else (6, 10)
    n_cases = 1 if settings.scale == 0 else 2
    for size in settings.sizes:
        for batch, n_images in even_and_uneven(size.batch, n_steps)[:n_cases]:
            rows = epochs_of(size, batch, n_images, epochs)
            report.numbers[f"memory/{size.name}/{n_images} images, batch {batch}"] = {
                "peak_mb": [peak for peak, _ in rows],
                "page_faults": [faults for _, faults in rows],
            }
            report.table(
                f"Memory of training, {size.name}, {n_images} images, batch {batch}, 2 threads",
                ("epoch", *range(1, epochs + 1)),
                [("peak, MB", *(peak for peak, _ in rows)), ("page faults", *(faults for _, faults in rows))],
            )


def even_and_uneven(batch: int, n_steps: int) -> list[tuple[int, int]]:
    """(batch, number of images): whole batches, and batches and a last batch that cannot be cut into equal parts.

    >>> even_and_uneven(100, 10)  # 90 images are parts of 32, 32 and 26, the last 37 of 16 and 21
    [(100, 1000), (90, 847)]
    """
    uneven = max(1, batch * 9 // 10)
    return [(batch, n_steps * batch), (uneven, (n_steps - 1) * uneven + max(1, uneven * 2 // 5 + 1))]
