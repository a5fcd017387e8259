"""How fast tigra is: python -m benchmarks [NAME ...] [--quick] [--threads N] [--json FILE] [--out FOLDER] [--write]

Names are kernels, layers, selection, step, inference, growth, roofline, startup, memory, baselines and defaults; all
by default. Contestants first have to agree on the result. Then they take turns in one process, after warm-up and
compilation, on the same number of threads. README.md in this folder describes the benchmarks and the peers, RESULTS.md
has the numbers of a whole run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks import (
    bench_baselines,
    bench_defaults,
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
from benchmarks.results import RESULTS, block_of, with_block, with_section
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
    "defaults": bench_defaults.run,
}


def main(words: list[str] | None = None) -> None:
    """Run benchmarks, print Markdown, and write the numbers if wanted."""
    options = _options(words)
    settings = Settings(threads=tuple(options.threads or (1, 2)), out=options.out)
    if options.quick:
        settings = settings.quick()
    if options.size:
        settings = replace(settings, sizes=tuple(size for size in SIZES if size.name in options.size))
    settings = replace(settings, compiled=not options.no_compile, cpu_time=options.cpu_time)
    try:
        _, text = run_all(options.names or list(BENCHMARKS), settings, options.json)
    except KeyboardInterrupt:
        sys.exit(f"\nStopped. The numbers so far are in {options.json}." if options.json else "\nStopped.")
    if options.write:
        page = RESULTS.read_text(encoding="utf-8")
        block = _renewed(block_of(page), text, words or sys.argv[1:]) if options.names else text
        RESULTS.write_text(with_block(page, block), encoding="utf-8")
        print(f"\nWritten into {RESULTS.name}.")


def _renewed(block: str, text: str, words: list[str]) -> str:
    """The results with the sections of a partial run in the place of theirs; the targets of the whole run stay."""
    about, *sections = text.split("\n\n#### ")
    command = " ".join(word for word in words if word != "--write")
    for section in sections:
        name, _, tables = section.partition("\n\n")
        tables = tables.partition("**Targets**")[0]
        block = with_section(block, name, f"Measured apart: {about}\n\n`python -m benchmarks {command}`\n\n{tables}")
    return block


def run_all(names: list[str], settings: Settings, file: Path | None = None) -> tuple[dict, str]:
    """Run benchmarks by name; returns all numbers, and the results as Markdown.

    The file is written after each table, so that no number is lost.
    """
    about = description()
    numbers, text = {}, [heading(about)]
    print(heading(about), flush=True)

    def save():
        if file:
            part = file.with_name(file.name + ".part")
            part.write_text(json.dumps({"machine": about, "numbers": numbers}, indent=1) + "\n", encoding="utf-8")
            part.replace(file)

    settings = replace(settings, networks=tuple(name for name in settings.networks if name in names))
    for run in dict.fromkeys(BENCHMARKS[name] for name in names):  # step and inference are one, with the same peers
        report = Report(", ".join(name for name in names if BENCHMARKS[name] is run), numbers, text, save)
        report.write(f"#### {report.name}")
        run(settings, report)
        save()
    print_targets(Report("targets", numbers, text), numbers, settings.threads)
    return numbers, "\n\n".join(text)


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
    parser.add_argument("--cpu-time", action="store_true", help="measure CPU time in `defaults`, for a busy machine")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="draw the growth there")
    parser.add_argument(
        "--write",
        "--readme",  # its name when the results were part of the README
        action="store_true",
        help="put the results into benchmarks/RESULTS.md; with NAMEs only their sections",
    )
    options = parser.parse_args(words)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]}; there are {', '.join(BENCHMARKS)}")
    if options.threads and min(options.threads) < 1:
        parser.error(f"--threads must be at least 1, got {min(options.threads)}")
    if options.write and not options.names and (options.quick or options.size or options.threads):
        parser.error(
            "--write takes a whole run: name the sections to write, or leave out --quick, --size and --threads"
        )
    _check_places(options, parser)
    return options


def _check_places(options, parser) -> None:
    """Complain about what cannot be written before the work, not after it."""
    if options.json:
        folder = options.json.absolute().parent
        if options.json.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
            parser.error(f"--json {options.json}: no file can be written there; name one in a folder that exists")
    if options.out:
        try:
            options.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            parser.error(f"--out {options.out}: this folder cannot be made ({error.strerror})")


if __name__ == "__main__":
    main()
