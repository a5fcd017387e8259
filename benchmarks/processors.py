"""The same bits on every x86-64 processor: python -m benchmarks.processors [SETTING ...] [--results FILE] [--quick]

Each setting is a process of its own that takes another processor for granted: OPENBLAS_CORETYPE chooses the kernels
of BLAS, NPY_DISABLE_CPU_FEATURES those of NumPy, GLIBC_TUNABLES those of the C library, NUMBA_CPU_NAME and
NUMBA_CPU_FEATURES the instructions of our own kernels. In each, images are moved, resized and smoothed, and every
recipe of TIGraNet, and a network of oriented convolutions, is trained for three steps on a few digits and predicts.
All digests must be equal; the exit status is 1 if they are not. The first run compiles the kernels anew for every
processor, which takes some minutes. Settings that this processor cannot run are left out with a message.

--results FILE keeps digests as they come. A run that was stopped goes on from there, and digests of other processors
in FILE are compared, too, if they were made by the same code.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import itertools
import json
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLAS = {"host": {}} | {name: {"OPENBLAS_CORETYPE": name} for name in ("Haswell", "SkylakeX", "Sandybridge")}
NO_AVX512 = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4"
LIBRARIES = {
    "host": {},
    "no AVX-512": {"NPY_DISABLE_CPU_FEATURES": NO_AVX512, "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F"},
    "no AVX2": {
        "NPY_DISABLE_CPU_FEATURES": f"{NO_AVX512} AVX2 FMA3 X86_V3",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable",
    },
}
KERNELS = {"host": {}} | {
    name: {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": ""} for name in ("haswell", "nehalem", "x86-64")
}

NOT_HERE = "not for this processor, which lacks its instructions"
N_IMAGES = 24  # digits to train on, in three steps, and as many to predict
ORIENTED = "OC[4, 2]-GC[2]-OC[6, 2]-DP[60]-S[2]-FC[8]"  # for layers that no recipe has


def settings() -> dict[str, dict[str, str]]:
    """Name -> environment of every combination; a name is "BLAS / NumPy and C library / kernels".

    Those with the same kernels follow each other, so that a run that is stopped has compiled few of them.
    """
    return {
        f"{blas} / {libraries} / {kernels}": BLAS[blas] | LIBRARIES[libraries] | KERNELS[kernels]
        for kernels, blas, libraries in itertools.product(KERNELS, BLAS, LIBRARIES)
    }


def digests(quick: bool) -> dict[str, str]:
    """Name -> digest of the bits that this process computes."""
    from tigra.experiments.recipes import RECIPES

    oriented = {"oriented": RECIPES["mnist-012"]["best"].with_changes({"architecture": ORIENTED})}
    chosen = {
        f"{dataset} {name}": settled(dataset, recipe)
        for dataset, recipes in (RECIPES | {"digits": oriented}).items()
        for name, recipe in recipes.items()
        if not quick or (dataset == "mnist-012" and name in ("paper", "best"))
    }
    return {"images": _digest(*_images())} | {name: _digest(*_trained(*options)) for name, options in chosen.items()}


def _images():
    """Images after every transformation that comes before training and prediction."""
    import numpy as np

    from tigra import load_dataset
    from tigra.images import transforms

    upright = load_dataset("mnist-012").test_upright.images[:8]
    angles = np.random.default_rng(0).uniform(0, 360, len(upright))
    shifts = np.random.default_rng(1).uniform(-3, 3, (len(upright), 2))
    for dtype in (np.float32, np.float64):
        images = upright.astype(dtype)
        for interpolation in transforms.INTERPOLATIONS:
            yield transforms.rotate(images, angles, interpolation)
            yield transforms.translate(images, shifts, interpolation)
        yield transforms.resize(images, (26, 37))
        yield transforms.downsample(images, 3, antialias=True)
        yield transforms.smooth(images, 0.7)
        yield transforms.standardise(images)


def settled(dataset: str, recipe):
    """Options of the network and of the training, as a run has them; the digits of `_trained` are black around."""
    from tigra import METHODS

    size = (50, 50) if dataset in ("eth-80", "folder") else (28, 28)
    options, fit = METHODS["tigranet"].settled(recipe, size, n_classes=3, n_images=N_IMAGES, seed=0)
    return options, fit.with_changes({"epochs": 1, "batch_size": N_IMAGES // 3})


def _trained(options, fit):
    """Parameters, constants and losses after three steps of a recipe, then scores and probabilities."""
    import numpy as np

    from tigra import Split, Training, build_network, load_dataset
    from tigra.images.transforms import pad

    digits = load_dataset("mnist-012")
    parts = (Split(part.images[:N_IMAGES], part.labels[:N_IMAGES]) for part in (digits.train, digits.valid))
    train, valid = (Split(pad(part.images, options.image_shape), part.labels) for part in parts)
    network = build_network(**dict(options))
    run = Training(network, (train, valid), fit, threads=2)
    epochs = list(run.run())
    yield np.array([(epoch.loss, epoch.valid_loss, epoch.valid_error) for epoch in epochs])
    yield network.learned
    yield from (array for layer in network.layers for array in layer.state.values())
    yield run.current
    yield network.scores(valid.images)
    yield network.predict_proba(valid.images)


def _digest(*arrays) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()[:16]


def in_setting(environment: dict[str, str], quick: bool) -> dict[str, str] | str:
    """Digests of a process with this environment, or why there are none."""
    words = [sys.executable, "-m", "benchmarks.processors", "--digests", *(["--quick"] if quick else [])]
    done = subprocess.run(words, env=os.environ | environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGILL:
        return NOT_HERE
    if done.returncode < 0:
        return f"ended by signal {-done.returncode}; not compared"
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    return json.loads(done.stdout)


class Results:
    """Digests by setting; with a path, in a file of JSON lines, whose digests by other code do not count."""

    def __init__(self, path: Path | None, quick: bool):
        self.path, self.quick = path, quick
        self.key = {"code": code_digest(), "quick": quick}
        lines = path.read_text(encoding="utf-8").splitlines() if path and path.exists() else []
        self.records = [record for record in map(json.loads, lines) if record | self.key == record]

    def of(self, name: str, environment: dict[str, str]) -> dict[str, str] | str:
        """Digests of a setting on this processor, kept or new, or why there are none."""
        for record in self.records:
            if (record["cpu"], record["setting"]) == (this_cpu(), name):
                return record["found"]
        found = in_setting(environment, self.quick)
        if isinstance(found, dict):
            self.records.append({"cpu": this_cpu(), "setting": name, **self.key, "found": found})
            if self.path:
                with open(self.path, "a", encoding="utf-8") as file:
                    file.write(json.dumps(self.records[-1]) + "\n")
        return found

    def elsewhere(self) -> dict[str, dict[str, str]]:
        """Digests of other processors, by processor and setting."""
        others = [record for record in self.records if record["cpu"] != this_cpu()]
        return {f"{record['cpu']}, {record['setting']}": record["found"] for record in others}


@cache
def this_cpu() -> str:
    """Name of the processor, with that of its family; virtual machines often hide the former."""
    from llvmlite.binding import get_host_cpu_name

    from benchmarks.machine import cpu_model

    return f"{cpu_model()} ({get_host_cpu_name()})"


@cache
def code_digest() -> str:
    """Digest of all that decides about bits: this file, the sources of tigra and the versions of its dependencies."""
    digest = hashlib.sha256(sys.version.encode())
    for name in ("numpy", "scipy", "numba", "pillow"):
        digest.update(importlib.metadata.version(name).encode())
    for path in (Path(__file__), *sorted((ROOT / "tigra").rglob("*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def main(words: list[str] | None = None) -> int:
    """Compare the settings; return 1 if bits differ or a process failed, else 0."""
    parser = argparse.ArgumentParser("python -m benchmarks.processors", description=__doc__)
    parser.add_argument("settings", nargs="*", metavar="SETTING", help="as --list prints them; all by default")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep digests there, and go on from those it has")
    parser.add_argument("--quick", action="store_true", help="only two recipes of mnist-012")
    parser.add_argument("--list", action="store_true", help="print the settings and end")
    parser.add_argument("--digests", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.digests:
        print(json.dumps(digests(options.quick)))
        return 0
    if options.list:
        print("\n".join(settings()))
        return 0
    chosen = dict.fromkeys(options.settings or settings())
    if unknown := [name for name in chosen if name not in settings()]:
        parser.error(f"unknown setting {unknown[0]!r}; --list prints them")
    return compare({name: settings()[name] for name in chosen}, Results(options.results, options.quick))


def compare(chosen: dict[str, dict[str, str]], results: Results) -> int:
    """Print a line for each setting; return 1 if bits differ or a process failed, else 0."""
    reference, failed = results.of("this processor", {}), False
    if isinstance(reference, str):
        print(f"this processor: {reference}")
        return 1
    found = ((name, results.of(name, environment)) for name, environment in chosen.items())
    for name, digest in itertools.chain(results.elsewhere().items(), found):
        if isinstance(digest, str):
            verdict, failed = digest, failed or digest != NOT_HERE
        elif different := [what for what in reference if digest[what] != reference[what]]:
            verdict, failed = f"OTHER BITS: {', '.join(different)}", True
        else:
            verdict = f"equal bits ({len(digest)} digests)"
        print(f"{name}: {verdict}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
