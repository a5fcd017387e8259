"""The same bits on every x86-64 processor: python -m benchmarks.processors [SETTING ...] [--quick] [--list]

Each setting is a process of its own that takes another processor for granted: OPENBLAS_CORETYPE chooses the kernels
of BLAS, NPY_DISABLE_CPU_FEATURES those of NumPy, GLIBC_TUNABLES those of the C library, NUMBA_CPU_NAME and
NUMBA_CPU_FEATURES the instructions of our own kernels. In each, images are moved, resized and smoothed, and every
recipe of TIGraNet, and a network of oriented convolutions, is trained for three steps on a few digits and predicts.
All digests must be equal; the exit status is 1 if they are not. The first run compiles the kernels anew for every
processor, which takes some minutes. Settings that this processor cannot run are left out with a message.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

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
ORIENTED = "OC[4, 2]-GC[2]-OC[6, 2]-DP[60]-S[2]-FC[8]"  # for layers that no recipe has


def settings() -> dict[str, dict[str, str]]:
    """Name -> environment of every combination; a name is "BLAS / NumPy and C library / kernels"."""
    return {
        " / ".join(names): BLAS[names[0]] | LIBRARIES[names[1]] | KERNELS[names[2]]
        for names in itertools.product(BLAS, LIBRARIES, KERNELS)
    }


def digests(quick: bool) -> dict[str, str]:
    """Name -> digest of the bits that this process computes."""
    from tigra.experiments.recipes import RECIPES

    found = {"images": _digest(*_images())}
    oriented = {"oriented": RECIPES["mnist-012"]["best"].with_changes({"architecture": ORIENTED})}
    for dataset, recipes in (RECIPES | {"digits": oriented}).items():
        for name, recipe in recipes.items():
            if not quick or (dataset == "mnist-012" and name in ("paper", "best")):
                found[f"{dataset} {name}"] = _digest(*_trained(dataset, recipe))
    return found


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


def _trained(dataset, recipe):
    """Parameters, constants and losses after three steps of a recipe, then scores and probabilities."""
    import numpy as np

    from tigra import Split, Training, build_network, load_dataset
    from tigra.images.transforms import pad

    digits = load_dataset("mnist-012")
    size = (50, 50) if dataset in ("eth-80", "folder") else (28, 28)
    train, valid = (Split(pad(part.images[:24], size), part.labels[:24]) for part in (digits.train, digits.valid))
    network = build_network(**recipe.network, image_shape=size, n_classes=3)
    run = Training(network, (train, valid), recipe.fit.with_changes({"epochs": 1, "batch_size": 8}), threads=2)
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
    folder = Path(__file__).resolve().parent.parent
    done = subprocess.run(words, env=os.environ | environment, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGILL:
        return NOT_HERE
    if done.returncode < 0:
        return f"ended by signal {-done.returncode}; not compared"
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    return json.loads(done.stdout)


def main(words: list[str] | None = None) -> int:
    """Compare the settings; return 1 if bits differ or a process failed, else 0."""
    parser = argparse.ArgumentParser("python -m benchmarks.processors", description=__doc__)
    parser.add_argument("settings", nargs="*", metavar="SETTING", help="as --list prints them; all by default")
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
    return compare({name: settings()[name] for name in chosen}, options.quick)


def compare(chosen: dict[str, dict[str, str]], quick: bool) -> int:
    """Print a line for each setting; return 1 if bits differ or a process failed, else 0."""
    reference, failed = in_setting({}, quick), False
    if isinstance(reference, str):
        print(f"this processor: {reference}")
        return 1
    for name, environment in chosen.items():
        found = in_setting(environment, quick)
        if isinstance(found, str):
            verdict, failed = found, failed or found != NOT_HERE
        elif different := [what for what in reference if found[what] != reference[what]]:
            verdict, failed = f"OTHER BITS: {', '.join(different)}", True
        else:
            verdict = f"equal bits ({len(found)} digests)"
        print(f"{name}: {verdict}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
