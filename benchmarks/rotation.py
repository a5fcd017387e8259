"""`tigra.images.transforms.rotate` against a loop over `scipy.ndimage.rotate`, on as many images as mnist-rot tests.

    python -m benchmarks.rotation [--images 8991] [--rounds 5]

Both run on one thread, in turns in one process, after their results were found equal; compilation is not counted.
"""

import argparse
import statistics
import time

import numpy as np
from scipy import ndimage

from tigra.images.transforms import rotate, smooth

ORDERS = {"cubic": 3, "linear": 1}


def loop(images, angles, order):
    """One image at a time."""
    turned = [
        ndimage.rotate(image, angle, reshape=False, order=order) for image, angle in zip(images, angles, strict=True)
    ]
    return np.clip(turned, 0.0, 1.0)


def main() -> None:
    """Print a Markdown table of best and median times, and the ratio of the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=8991)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    images = np.clip(smooth(rng.uniform(size=(options.images, 26, 26)), 1.0), 0, 1)
    angles = rng.uniform(0, 360, options.images)
    print("| interpolation | loop over scipy, best / median | tigra, best / median | ratio of medians |")
    print("| --- | --- | --- | --- |")
    for kind, order in ORDERS.items():
        few = slice(0, 50)
        np.testing.assert_allclose(
            rotate(images[few], angles[few], kind), loop(images[few], angles[few], order), atol=1e-12
        )
        times = {"loop": [], "tigra": []}
        for _ in range(options.rounds):
            for name, call in (
                ("loop", lambda: loop(images, angles, order)),  # noqa: B023
                ("tigra", lambda: rotate(images, angles, kind)),  # noqa: B023
            ):
                started = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - started)
        words = [f"{min(times[name]):.2f} s / {statistics.median(times[name]):.2f} s" for name in ("loop", "tigra")]
        ratio = statistics.median(times["loop"]) / statistics.median(times["tigra"])
        print(f"| {kind} | {words[0]} | {words[1]} | {ratio:.1f} |", flush=True)


if __name__ == "__main__":
    main()
