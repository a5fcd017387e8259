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
images = tigra.transforms.smooth(rng.uniform(size=(n_images, height, width)).astype(np.float32), 1.0)
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


def epochs_of(size: Size, n_images: int, epochs: int) -> list[tuple[int, int]]:
    """(peak of resident memory in MB, page faults in the epoch) after each epoch, in a fresh process."""
    words = json.dumps([size.architecture, *size.shape, size.n_classes, size.batch, n_images, epochs])
    done = subprocess.run([sys.executable, "-c", PROGRAM, words], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def run(settings: Settings, report: Report) -> None:
    """Each size for a few epochs of ten steps."""
    if not Path("/proc/self/status").exists():
        report.say("Skipped: this system does not tell the memory of a process as Linux does.")
        return
    epochs, n_steps = (3, 2) if settings.scale == 0 else (6, 10)
    for size in settings.sizes:
        rows = epochs_of(size, n_steps * size.batch, epochs)
        report.numbers[f"memory/{size.name}"] = {"peak_mb": [peak for peak, _ in rows]}
        report.table(
            f"Memory of training, {size.name}, batch {size.batch}, 2 threads",
            ("epoch", *range(1, epochs + 1)),
            [("peak, MB", *(peak for peak, _ in rows)), ("page faults", *(faults for _, faults in rows))],
        )
