"""Accuracy of the default `tigra train mnist-012` over seeds: does it come from the design or from luck?

    python -m benchmarks.seeds [--seeds 5] [--runs 10] [--out FILE]

Each seed is trained and then evaluated on freshly rotated test digits, through the command line.
Finished seeds are kept in FILE (JSON lines), and skipped by the next start.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tigra.recipes import RECIPES


def tigra(*words) -> dict:
    """Run a command of tigra and return its JSON object."""
    command = [sys.executable, "-c", "from tigra_cli.main import main; main()", *map(str, words), "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def one_seed(seed: int, runs: int) -> dict:
    """Train and evaluate with one seed."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "model.npz")
        trained = tigra("train", "mnist-012", "--seed", seed, "--out", model)
        rotated = {
            kind: tigra("evaluate", model, "--runs", runs, "--interpolation", kind) for kind in ("cubic", "linear")
        }
    return {
        "seed": seed,
        "runs": runs,
        "recipe": RECIPES["mnist-012"],
        "seconds": trained["seconds"],
        **trained["accuracy"],
        **{kind: result["accuracy"]["mean"] for kind, result in rotated.items()},
        **{f"{kind}_std": result["accuracy"]["std"] for kind, result in rotated.items()},
    }


def main() -> None:
    """Run what is missing, then print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("seeds.jsonl"))
    options = parser.parse_args()
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    done = {
        record["seed"]: record
        for record in map(json.loads, lines)
        if record["runs"] == options.runs and record["recipe"] == RECIPES["mnist-012"]
    }
    for seed in range(options.seeds):
        if seed not in done:
            done[seed] = one_seed(seed, options.runs)
            with options.out.open("a") as file:
                file.write(json.dumps(done[seed]) + "\n")
            print(f"seed {seed}: {done[seed]['cubic']:.1%}", file=sys.stderr)
    print(f"| seed | train | valid | test upright | rotated, cubic ({options.runs} runs) | rotated, linear |")
    print("| --- | --- | --- | --- | --- | --- |")
    rows = [done[seed] for seed in range(options.seeds)]
    for row in rows:
        upright = " | ".join(f"{100 * row[name]:.1f}" for name in ("train", "valid", "test_upright"))
        print(f"| {row['seed']} | {upright} | {100 * row['cubic']:.1f} +- {100 * row['cubic_std']:.1f}", end="")
        print(f" | {100 * row['linear']:.1f} +- {100 * row['linear_std']:.1f} |")
    means = [
        100 * statistics.mean(row[name] for row in rows)
        for name in ("train", "valid", "test_upright", "cubic", "linear")
    ]
    print("| mean | " + " | ".join(f"{mean:.1f}" for mean in means) + " |")


if __name__ == "__main__":
    main()
