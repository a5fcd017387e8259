"""The machine, the versions, and one number of threads for everybody."""

from __future__ import annotations

import datetime
import importlib
import importlib.metadata
import os
import platform
from functools import cache
from pathlib import Path

from threadpoolctl import ThreadpoolController

PACKAGES = ("numpy", "scipy", "numba", "torch")


@cache
def torch_or_none():
    """The module torch, or None where it is not installed."""
    try:
        return importlib.import_module("torch")
    except ImportError:
        return None


@cache
def _controller() -> ThreadpoolController:
    torch_or_none()  # so that its libraries are found, too
    importlib.import_module("scipy.linalg")
    return ThreadpoolController()


def set_threads(n_threads: int) -> None:
    """The same number of threads for BLAS, for OpenMP and for torch, from now on."""
    _controller().limit(limits=n_threads)  # the limiter is dropped: what was set before does not come back
    if torch_or_none() is not None:
        torch_or_none().set_num_threads(n_threads)


def thread_counts() -> str:
    """What the libraries say they use."""
    counts = {}
    for library in _controller().info():
        counts.setdefault(f"{library['user_api']} ({library['internal_api']})", set()).add(library["num_threads"])
    if torch_or_none() is not None:
        counts["torch"] = {torch_or_none().get_num_threads()}
    return ", ".join(f"{name} {'/'.join(map(str, sorted(n)))}" for name, n in counts.items())


def cpu_model() -> str:
    """The processor's name, without the machine's."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def description() -> dict:
    """Date, processor, cores, system and versions."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions,
        "load": [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else None,
    }


def heading(about: dict) -> str:
    """The description in two lines of Markdown."""
    versions = ", ".join(f"{name} {version or 'missing'}" for name, version in about["versions"].items())
    return (
        f"{about['date']}, {about['cpu']}, {about['cores']} cores, {about['system']}, load at the start"
        f" {about['load']}\n\nPython {about['python']}, {versions}"
    )
