"""The tables of docs/results.md and docs/notebook.md, from docs/results, docs/ideas and docs/objects.json.

    python -m benchmarks.summary

Nothing is trained. Records are read as they are: which recipe is today's makes no difference to what was measured.
Rows have their order, words and paper's numbers from `tigra.experiments.tables`.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path

from benchmarks import ideas, objects
from benchmarks.results import with_block
from tigra.experiments.reproduction import table_markdown
from tigra.experiments.tables import ANGLES, TABLES, Row

DOCS = Path(__file__).parents[1] / "docs"
METHODS = {
    ("tigranet", "paper"): "TIGraNet, as printed",
    ("tigranet", "repaired"): "TIGraNet, repaired",
    ("tigranet", "achiral"): "TIGraNet, achiral",
    ("tigranet", "pooled"): "TIGraNet, pooled",
    ("tigranet", "best"): "TIGraNet, best",
    ("convnet", "best"): "ConvNet, He initialisation",
    ("convnet", "paper"): "ConvNet, U[-1, 1] initialisation",
    ("stn", "best"): "STN, He initialisation",
    ("stn", "paper"): "STN, U[-1, 1] initialisation",
    ("harmnet", "best"): "HarmNet",
    ("deepscat", "paper"): "DeepScat, as printed",
    ("deepscat", "best"): "DeepScat, tuned on validation images",
    ("nearest", "best"): "1 nearest neighbour on pixels",
}
NAMES = {"cubic": "rotated, cubic", "linear": "rotated, linear"} | {
    "whole pixels": "shifted, whole pixels",
    "real, cubic": "shifted, fractions of pixels",
}
ROWS = "paper", "repaired", "achiral", "best", "convnet-best"  # of TIGraNet, and of ConvNet
HEADLINES = [  # words, table, rows
    ("MNIST-012: digits 0, 1, 2 at any angle", "mnist-012", *ROWS),
    ("MNIST-rot: digits 0 to 8 at any angle", "mnist-rot-trans", *(f"rot-{key}" for key in ROWS)),
    ("MNIST-trans: digits 0 to 8, shifted", "mnist-rot-trans", *(f"trans-{key}" for key in ROWS)),
    ("ETH-80: objects seen from other views", "eth-80", *ROWS),
    ("ETH-80: objects never seen", "eth-80", *(f"{key}-object" for key in ROWS[:-1]), "object-convnet-best"),
]
Records = dict[int, dict]


def read_records(folder: Path) -> dict[str, Records]:
    """The records in a folder: of each row, by its key, the runs in the order of their seeds or folds."""
    found: dict[str, Records] = {}
    for path in folder.glob("*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        found.setdefault(record["row"], {})[record["number"]] = record
    return {key: dict(sorted(records.items())) for key, records in found.items()}


def spread(values: list[float]) -> str:
    """Mean and standard deviation, with one digit.

    >>> spread([96.0, 97.0]), spread([95.0]), spread([])
    ('96.5 +- 0.7', '95.0', '-')
    """
    if not values:
        return "-"
    deviation = f" +- {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{round(statistics.mean(values), 1) + 0.0:.1f}{deviation}"  # + 0.0: no -0.0


def method_of(row: Row) -> str:
    """How a row's method is called."""
    few = f", {n:,} digits" if (n := row.data.get("n_train")) and row.method == "deepscat" else ""
    views = f", {row.views} views" if row.views > 1 else ""
    return METHODS[row.method, row.recipe] + few + views


def tested(records: Records, name: str) -> list[float]:
    """Percent, run by run, in one of the tests."""
    return [100 * statistics.mean(record["accuracy"]["test"][name]) for record in records.values()]


def upright(records: Records) -> list[float]:
    """Percent, run by run, of the test images as they were before they were transformed."""
    return [100 * record["accuracy"]["test_upright"] for record in records.values()]


def runs_of(records: Records, over: str) -> str:
    """How many seeds or folds."""
    return f"{len(records)} {over}{'s' if len(records) != 1 else ''}"


def parameters_of(*found: Records) -> str:
    """The number of parameters, or its range over all runs."""
    known = sorted({record["parameters"] for records in found for record in records.values() if "parameters" in record})
    return "-".join(f"{number:,}" for number in dict.fromkeys([known[0], known[-1]])) if known else "-"


def markdown(header: list[str], rows: list[list[str]], n_left: int = 1) -> str:
    """A Markdown table whose first columns are flush left."""
    rule = "| " + " | ".join(["---"] * n_left + ["---:"] * (len(header) - n_left)) + " |"
    return "\n".join([f"| {' | '.join(header)} |", rule, *(f"| {' | '.join(row)} |" for row in rows)])


def headlines(found: dict[str, dict[str, Records]]) -> str:
    """The first test of each table, for those who read no further."""
    lines = []
    for words, table, *keys in HEADLINES:
        rows = {row.key: row for row in TABLES[table].rows}
        of_rows = [found[table].get(key, {}) for key in keys]
        best = rows[keys[3]]
        first = next(iter(TABLES[table].tests[best.dataset]))
        cells = [spread(tested(records, first)) for records in of_rows]
        lines.append([words, best.paper or "-", *cells])
    columns = [METHODS["tigranet", name] for name in ROWS[:-1]]
    return markdown(["tested on", "TIGraNet, the paper's number", *columns, METHODS["convnet", "best"]], lines)


def of_digits(table: str, dataset: str, found: dict[str, Records]) -> str:
    """Tables 2 and 3: both tests and the upright digits; where digits were rotated in training, a column says so."""
    tests, rows = list(TABLES[table].tests[dataset]), [row for row in TABLES[table].rows if row.dataset == dataset]
    turned = any("train_rotations" in row.data for row in rows)
    header = ["method", *(["trained on"] if turned else []), "paper", *(NAMES[test] for test in tests)]
    lines = []
    for row in sorted(rows, key=lambda row: "train_rotations" in row.data):
        records = found.get(row.key, {})
        cells = [method_of(row), *(["rotated" if "train_rotations" in row.data else "upright"] if turned else [])]
        cells += [row.paper or "-", *(spread(tested(records, test)) for test in tests), spread(upright(records))]
        lines.append([*cells, runs_of(records, row.over), parameters_of(records)])
    return markdown([*header, "upright", "runs", "parameters"], lines, 2 if turned else 1)


def of_photographs(found: dict[str, Records]) -> str:
    """Table 4: the random split beside the split by object."""
    rows = TABLES["eth-80"].rows
    methods = dict.fromkeys(method_of(row) for row in sorted(rows, key=lambda row: row.method == "nearest"))
    lines = []
    for method in methods:
        mine = {row.over: row for row in rows if method_of(row) == method}
        seeds, folds = (found.get(mine[over].key, {}) if over in mine else {} for over in ("seed", "fold"))
        cells = [mine["seed"].paper or "-", *(spread(tested(runs, "as photographed")) for runs in (seeds, folds))]
        runs = ", ".join(runs_of(records, over) for over, records in (("seed", seeds), ("fold", folds)) if records)
        lines.append([method, *cells, runs, parameters_of(seeds, folds)])
    return markdown(["method", "paper", "random split", "by object", "runs", "parameters"], lines)


def of_rotations(found: dict[str, Records]) -> str:
    """The curve: accuracy on rotated digits over the number of angles in training."""
    rows, tests = TABLES["rotations"].rows, TABLES["rotations"].tests["mnist-rot"]
    angles = (1, *ANGLES)
    lines = []
    for method in dict.fromkeys(METHODS[row.method, row.recipe] for row in rows):
        mine = [row for row in rows if METHODS[row.method, row.recipe] == method]
        runs = {row.data.get("train_rotations", 1): found.get(row.key, {}) for row in mine}
        for test in tests:
            cells = [spread(tested(runs[k], test)) for k in angles]
            lines.append([method, NAMES[test], *cells, parameters_of(*runs.values())])
    return markdown(["method", "test", *(f"K = {k}" for k in angles), "parameters"], lines, 2)


def of_numbers(found: dict[str, Records]) -> str:
    """Accuracy on rotated digits over the number of training digits."""
    tests, lines = TABLES["digits"].tests["mnist-rot"], []
    for row in TABLES["digits"].rows:
        records = found.get(row.key, {})
        trained = "rotated" if "train_rotations" in row.data else "upright"
        cells = [
            f"{row.data['n_train']:,}",
            *(spread(tested(records, test)) for test in tests),
            spread(upright(records)),
        ]
        runs = [runs_of(records, row.over), parameters_of(records)]
        lines.append([METHODS[row.method, row.recipe], "0-9" if "nines" in row.data else "0-8", trained, *cells, *runs])
    header = ["method", "digits", "trained on", "number", *(NAMES[test] for test in tests), "upright"]
    return markdown([*header, "runs", "parameters"], lines, 3)


def differences_by_object(found: dict[str, Records]) -> str:
    """ETH-80 by object: how many points each method is above two others, over the folds."""
    rows = {method_of(row): found.get(row.key, {}) for row in TABLES["eth-80"].rows if row.over == "fold"}
    shares = {m: dict(zip(rows[m], tested(rows[m], "as photographed"), strict=True)) for m in rows}
    others = METHODS["tigranet", "best"], METHODS["nearest", "best"]

    def above(method: str, other: str) -> list[float]:
        mine, theirs = shares[method], shares[other]
        return [mine[fold] - theirs[fold] for fold in mine if fold in theirs and method != other]

    lines = [[method, *(spread(above(method, other)) for other in others)] for method in rows]
    return markdown(["method", *(f"minus {other}" for other in others)], lines)


def unseen_objects(path: Path) -> dict[str, str]:
    """ETH-80 by object: each object's recall, and those that are known least, as `benchmarks.objects` found them."""
    folds = json.loads(path.read_text(encoding="utf-8"))["folds"]
    (known, *rows), (poor, *poor_rows) = objects.recall_table(folds), objects.poor_table(folds)
    return {"objects": markdown(known, rows), "objects known least": markdown(poor, poor_rows)}


def not_run_yet(found: dict[str, dict[str, Records]]) -> str:
    """How many runs of which rows are missing, table by table."""
    lines = []
    for name, table in TABLES.items():
        missing = {row.key: row.runs - len(found[name].get(row.key, {})) for row in table.rows}
        if rows := ", ".join(f"`{key}` {number}" for key, number in missing.items() if number > 0):
            lines.append([f"`{name}`", rows])
    return markdown(["table", "runs that are missing"], lines, 2) if lines else "None: all rows have all their runs."


def results_blocks(folder: Path = DOCS / "results") -> dict[str, str]:
    """The blocks of docs/results.md, by name."""
    found = {table: read_records(folder / table) for table in TABLES}
    return {
        "headlines": headlines(found),
        "mnist-012": of_digits("mnist-012", "mnist-012", found["mnist-012"]),
        "mnist-rot": of_digits("mnist-rot-trans", "mnist-rot", found["mnist-rot-trans"]),
        "mnist-trans": of_digits("mnist-rot-trans", "mnist-trans", found["mnist-rot-trans"]),
        "eth-80": of_photographs(found["eth-80"]),
        **unseen_objects(folder.parent / "objects.json"),
        "rotations": of_rotations(found["rotations"]),
        "digits": of_numbers(found["digits"]),
        "not run yet": not_run_yet(found),
    }


def notebook_blocks(docs: Path = DOCS) -> dict[str, str]:
    """The blocks of docs/notebook.md, by name: every column of every table, and the ideas that were tried."""
    found = {table: read_records(docs / "results" / table) for table in TABLES}
    blocks = {
        f"all columns, {name}": table_markdown(
            table, [row for row in table.rows if row.key in found[name]], lambda row, name=name: found[name][row.key]
        )
        for name, table in TABLES.items()
    }
    blocks["eth-80, differences by object"] = differences_by_object(found["eth-80"])
    for path in sorted((docs / "ideas").glob("*.json")):
        tried = json.loads(path.read_text(encoding="utf-8"))["ideas"]
        blocks[f"ideas, {path.stem}"] = "\n".join(ideas.table(path.stem, {idea: tried[idea]["runs"] for idea in tried}))
    return blocks


def main() -> None:
    """Write all blocks anew."""
    for name, blocks in {"results.md": results_blocks(), "notebook.md": notebook_blocks()}.items():
        text = (DOCS / name).read_text(encoding="utf-8")
        for block, content in blocks.items():
            text = with_block(text, content, block)
        (DOCS / name).write_text(text, encoding="utf-8")
        print(f"Written: docs/{name}, {len(blocks)} tables.")


if __name__ == "__main__":
    main()
