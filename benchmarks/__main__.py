"""How fast tigra is: python -m benchmarks [NAME ...] [--quick] [--threads N] [--json FILE] [--out FOLDER]

Names are kernels, layers, selection, step, inference, growth, roofline, startup, memory and baselines; all by
default. What
is compared runs in turns in one process, warm-up and compilation apart, with the same number of threads on
both sides, after it was found to compute the same. README.md in this folder describes the benchmarks and the peers.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from benchmarks import (
    bench_baselines,
    bench_growth,
    bench_kernels,
    bench_layers,
    bench_memory,
    bench_network,
    bench_roofline,
    bench_selection,
    bench_startup,
)
from benchmarks.machine import description, heading
from benchmarks.problems import SIZES, Settings
from benchmarks.report import Report
from benchmarks.targets import print_targets

BENCHMARKS = {
    "kernels": bench_kernels.run,
    "layers": bench_layers.run,
    "selection": bench_selection.run,
    "step": bench_network.run,
    "inference": bench_network.run,
    "growth": bench_growth.run,
    "roofline": bench_roofline.run,
    "startup": bench_startup.run,
    "memory": bench_memory.run,
    "baselines": bench_baselines.run,
}


def main(words: list[str] | None = None) -> None:
    """Run benchmarks, print Markdown, and write the numbers if wanted."""
    options = _options(words)
    settings = Settings(threads=tuple(options.threads or (1, 2)), out=options.out)
    if options.quick:
        settings = settings.quick()
    if options.size:
        settings = replace(settings, sizes=tuple(size for size in SIZES if size.name in options.size))
    settings = replace(settings, compiled=not options.no_compile)
    run_all(options.names or list(BENCHMARKS), settings, options.json)


def run_all(names: list[str], settings: Settings, file: Path | None = None) -> dict:
    """Run benchmarks by name; returns all numbers. The file is written after each, so that none is lost."""
    about, numbers = description(), {}
    print(heading(about), flush=True)
    settings = replace(settings, networks=tuple(name for name in settings.networks if name in names))
    for run in dict.fromkeys(BENCHMARKS[name] for name in names):  # step and inference are one, with the same peers
        report = Report(", ".join(name for name in names if BENCHMARKS[name] is run))
        report.say(f"\n## {report.name}\n")
        run(settings, report)
        numbers |= report.numbers
        if file:
            file.write_text(json.dumps({"machine": about, "numbers": numbers}, indent=1) + "\n")
    print_targets(Report("targets"), numbers, settings.threads)
    return numbers


def _options(words) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sizes = [size.name for size in SIZES]
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="two sizes, few rounds")
    parser.add_argument("--threads", type=int, action="append", metavar="N", help="can be repeated; by default 1 and 2")
    parser.add_argument("--size", action="append", choices=sizes, help="can be repeated; by default all")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out: it takes minutes to start")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="draw the growth there")
    options = parser.parse_args(words)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]}; there are {', '.join(BENCHMARKS)}")
    return options


if __name__ == "__main__":
    main()
