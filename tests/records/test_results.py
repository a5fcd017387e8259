"""Tables in the documents are what the records beside them say, computed here by another way.

Records are history: none has to be of today's recipe.
"""

import doctest
import functools
import json
import statistics
import sys
from pathlib import Path

import numpy as np
import pytest

import tigra
from benchmarks import ideas, object_ideas, summary
from benchmarks.lesser_layers import DROPPED, LAYERS, replace_layers
from benchmarks.results import block_of
from tigra.experiments.methods import find_method
from tigra.experiments.recipe import Recipe
from tigra.experiments.recipes import find_recipe
from tigra.experiments.records import is_whole
from tigra.experiments.tables import TABLES

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOK = (DOCS / "notebook.md").read_text(encoding="utf-8").splitlines()  # every column of every table
OTHERS = {object_ideas.CONTRAST, object_ideas.EQUAL, object_ideas.COLOUR, object_ideas.AVERAGED, object_ideas.MIXED}
NO_OPTIONS = OTHERS | {*LAYERS, DROPPED}
BLOCKS = {"results.md": summary.results_blocks, "notebook.md": summary.notebook_blocks}
ROWS = [(table.name, row) for table in sorted((DOCS / "results").iterdir()) for row in TABLES[table.name].rows]


@functools.cache
def files_of(table):
    """[(row, number, content)] of the records of a table, in the order of the numbers."""
    texts = [path.read_text(encoding="utf-8") for path in (DOCS / "results" / table).glob("*.json")]
    return sorted((record["row"], record["number"], text) for text in texts for record in [json.loads(text)])


def records_of(table, row):
    return [json.loads(text) for key, _, text in files_of(table) if key == row.key]


def mean_and_deviation(values):
    mean = sum(values) / len(values)
    if len(values) == 1:
        return f"{mean:.2f}"
    return f"{mean:.2f} +- {(sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5:.2f}"


@pytest.mark.parametrize("page", BLOCKS)
def test_tables_are_those_that_the_records_make(page):
    """Else: python -m benchmarks.summary."""
    text, blocks = (DOCS / page).read_text(encoding="utf-8"), BLOCKS[page]()
    assert text.count(": begin (python -m benchmarks.summary) -->") == len(blocks)
    for name, block in blocks.items():
        assert block_of(text, name) == block, name


def fake_record(row, number, shares, upright, **facts):
    accuracy = {"test": {name: [share] for name, share in shares.items()}, "test_upright": upright}
    return {"row": row, "number": number, "accuracy": accuracy} | facts


def test_a_summary_of_few_records_can_be_done_by_hand(tmp_path):
    """Also of a recipe that is nowhere to be found any more."""
    records = [
        fake_record("rot-best", 0, {"cubic": 0.9, "linear": 0.8}, 0.95, parameters=1000, settings={"recipe": "lost"}),
        fake_record("rot-best", 1, {"cubic": 0.92, "linear": 0.8}, 0.95, parameters=2000),
    ]
    for record in records:
        (tmp_path / f"{record['number']}.json").write_text(json.dumps(record))
    lines = summary.of_digits("mnist-rot-trans", "mnist-rot", summary.read_records(tmp_path)).splitlines()
    expected = "83.8 | 91.0 +- 1.4 | 80.0 +- 0.0 | 95.0 +- 0.0 | 2 seeds | 1,000-2,000 |"
    assert f"| TIGraNet, best | {expected}" in lines
    assert "| HarmNet | - | - | - | - | 0 seeds | - |" in lines


def test_examples_in_docstrings_hold():
    results = doctest.testmod(summary)
    assert results.attempted > 0 and results.failed == 0


@pytest.mark.parametrize("table, row", ROWS, ids=lambda value: getattr(value, "key", value))
def test_every_row_is_what_its_records_say(table, row):
    """Computed by another way than the program's."""
    records = records_of(table, row)
    if not records:
        return
    accuracies = [record["accuracy"] for record in records]
    cells = [row.words, row.paper or "-"]
    for name in records[0]["settings"]["tests"]:
        cells.append(mean_and_deviation([100 * sum(a["test"][name]) / len(a["test"][name]) for a in accuracies]))
    for part in ("test_upright", "valid", "train"):
        cells.append(mean_and_deviation([100 * a[part] for a in accuracies]) if part in accuracies[0] else "-")
    cells.append(f"{len(records)} {row.over}{'s' if len(records) > 1 else ''}")
    for key in ("parameters", "epochs"):
        known = {record[key] for record in records if key in record}
        cells.append("-" if not known else str(*known) if len(known) == 1 else f"{min(known)}-{max(known)}")
    for key in ("seconds", "cpu_seconds"):
        known = [record[key] for record in records if key in record]
        cells.append(f"{sum(known) / len(known):.0f}" if known else "-")
    assert NOTEBOOK.count(f"| {' | '.join(cells)} |") == 1
    for record in records:
        fold = f"fold {record['number']}"
        assert f"Protocol: {record['protocol'].replace(fold, 'each object in turn')}." in NOTEBOOK


@pytest.mark.parametrize("table, row", ROWS, ids=lambda value: getattr(value, "key", value))
def test_records_differ_in_nothing_but_the_seed_and_are_complete(table, row):
    records, method = records_of(table, row), find_method(row.method)
    settings = [record["settings"] | {"recipe": method.read_recipe(record["settings"]["recipe"])} for record in records]
    for number, (record, chosen) in enumerate(zip(records, settings, strict=True)):
        assert record["number"] == number and chosen["data"].pop(row.over) == number
        assert chosen == settings[0] and (chosen["method"], chosen["dataset"]) == (row.method, row.dataset)
        assert chosen["data"] == row.data and "valid upright" in record["protocol"]
        rounds = chosen["transformations"]
        assert all(len(values) in (1, rounds) for values in record["accuracy"]["test"].values())
        assert record.get("best_epoch", 0) <= record.get("epochs", 0)


@pytest.mark.parametrize("table, row", ROWS, ids=lambda value: getattr(value, "key", value))
def test_records_are_whole_and_their_recipes_can_still_be_read(table, row):
    """Whether these are today's recipes does not matter; the names of their options must be known."""
    method = find_method(row.method)
    for record in records_of(table, row):
        assert is_whole(record, TABLES[table].tests[row.dataset])
        recipe = record["settings"]["recipe"]
        assert recipe is None or type(method.read_recipe(recipe)) is type(method.recipe(row.dataset, row.recipe))


def test_no_row_stands_there_without_records_and_no_record_without_a_row():
    words = {row.words for _, row in ROWS}
    blocks = [block for name, block in summary.notebook_blocks().items() if name.startswith("all columns")]
    lines = [line for block in blocks for line in block.splitlines()]
    shown = [line for line in lines if line.startswith("| ") and line[2:].split(" | ")[0] in words]
    assert len(shown) == sum(bool(records_of(table, row)) for table, row in ROWS)
    n_files = sum(1 for table in (DOCS / "results").iterdir() for _ in table.glob("*.json"))
    assert n_files == sum(len(records_of(table, row)) for table, row in ROWS)


def test_rows_with_views_test_the_networks_that_they_name():
    pairs = [(table, row) for table, row in ROWS if row.model_of]
    assert pairs
    for table, row in pairs:
        own, other = ({record["number"]: record for record in records_of(table, r)} for r in (row, row_of(table, row)))
        assert own.keys() <= other.keys()
        for number, record in own.items():
            for fact in ("seconds", "cpu_seconds", "best_epoch", "parameters"):
                assert record[fact] == other[number][fact], "trained once"


def row_of(table, row):
    return next(other for other in TABLES[table].rows if other.key == row.model_of)


def test_what_is_not_run_yet_is_said():
    lines = (DOCS / "results.md").read_text(encoding="utf-8").splitlines()
    for name, table in TABLES.items():
        missing = {row.key: row.runs - len(records_of(name, row)) for row in table.rows}
        texts = [f"`{key}` {number}" for key, number in missing.items() if number > 0]
        said = [line for line in lines if line.startswith(f"| `{name}` | `")]
        assert said == ([f"| `{name}` | {', '.join(texts)} |"] if texts else [])


@pytest.mark.parametrize("path", sorted((DOCS / "ideas").glob("*.json")), ids=lambda path: path.stem)
def test_what_was_tried_is_what_the_records_say(path):
    content = json.loads(path.read_text(encoding="utf-8"))
    assert Recipe.from_json(content["settings"]["recipe"])
    for idea, entry in content["ideas"].items():
        columns, n = list(zip(*entry["runs"], strict=True)), len(entry["runs"])
        assert n >= 3 or idea not in ideas.IDEAS[path.stem], f"{idea}: run it, or give it up"
        deviations = [f" +- {statistics.stdev(values):.1f}" if n > 1 else "" for values in columns]
        cells = [f"{statistics.mean(v):.1f}{deviation}" for v, deviation in zip(columns, deviations, strict=True)]
        assert f"| {idea} | {' | '.join(cells)} | {n} |" in NOTEBOOK


def test_ideas_change_one_thing_of_a_recipe_that_exists():
    for study, tried in ideas.IDEAS.items():
        recipe = find_recipe(*ideas.BASES[study])
        known = dict(recipe.network.items()) | dict(recipe.fit.items()) | ideas.CHANGES.get(study, {})
        assert not tried[ideas.RECIPE]
        for words, number in (("one spectral", 1), ("two layers", 2), ("three spectral", 3), ("four", 4)):
            for idea in (idea for idea in tried if idea.startswith(words)):
                assert tried[idea]["architecture"].count("SC[") == number
        for idea, changes in list(tried.items())[1:]:
            assert (changes or idea in NO_OPTIONS) and all(known[name] != changes[name] for name in changes)


@pytest.mark.parametrize("idea", LAYERS)
def test_a_layer_without_a_part_keeps_what_it_leaves_out(idea, small_splits):
    network = tigra.build_network("OC[2, 2]-OC[2, 2]-S[0]-FC[4]", (14, 14), 3, batch_norm=True)
    replace_layers(network, idea)
    left_out = {"no cross products": ("alpha", 2)}
    name, n = left_out.get(idea, ("pairs", 0))
    before = [layer.params[name][:, -n:].copy() for layer in network.layers if name in layer.params]
    learned = network.parameters.copy()
    for _ in tigra.fit(network, small_splits, epochs=1, batch_size=8):
        pass
    after = [layer.params[name][:, -n:] for layer in network.layers if name in layer.params]
    assert all(np.array_equal(a, b) for a, b in zip(before[1:], after[1:], strict=True))
    assert len(after) == 2 and not np.array_equal(learned, network.parameters)
    assert n == 0 or not after[1].any()


def test_ideas_of_another_recipe_are_not_mixed_with_todays_and_damaged_files_are_named(tmp_path, monkeypatch, capsys):
    path, words = tmp_path / "mnist-012.json", ["ideas", "mnist-012", "--seeds", "1", "--out", str(tmp_path)]
    tried = []
    monkeypatch.setattr(ideas, "measured", lambda _, idea, seed, *more: tried.append(idea) or [90.0, 80.0, 70.0])
    for wrong in (["--seeds", "0"], ["--match", "zzz"]):
        monkeypatch.setattr(sys, "argv", [*words, *wrong])
        with pytest.raises(SystemExit) as stop:
            ideas.main()
        assert stop.value.code == 2 and wrong[1] in capsys.readouterr().err
    monkeypatch.setitem(ideas.IDEAS, "mnist-012", {ideas.RECIPE: {}, "margin 0": {"margin": 0}})
    monkeypatch.setattr(sys, "argv", words)
    for n_tried in (2, 2):  # the second time all are there
        ideas.main()
        assert len(tried) == n_tried and "| margin 0 | 90.0 | 80.0 | 70.0 | 1 |" in capsys.readouterr().out
    monkeypatch.setitem(ideas.IDEAS, "mnist-012", {ideas.RECIPE: {}, "margin 0": {"margin": 1}})
    ideas.main()
    assert tried[2:] == ["margin 0"], "it means something else now"
    monkeypatch.setitem(ideas.IDEAS, "mnist-012", {ideas.RECIPE: {}, "margin 2": {"margin": 2}})
    ideas.main()
    kept = json.loads(path.read_text())["ideas"]
    assert kept.pop("margin 0") == {"changes": {"margin": 1}, "runs": [[90.0, 80.0, 70.0]]}, "no longer asked for"
    assert list(kept) == [ideas.RECIPE, "margin 2"]
    whole = path.read_text()
    broken = ("", "[1]", "[" * 100_000, "{}", whole[:-9], whole.replace("90.0", "NaN"), whole.replace("80.0", '"x"'))
    for content in (*broken, whole.replace("90.0,", ""), whole.replace('"epochs": 60', '"epochs": 61')):
        path.write_text(content)
        with pytest.raises(SystemExit, match="damaged" if "61" not in content else "another recipe than today's"):
            ideas.main()
    monkeypatch.setattr(sys, "argv", [*words[:-1], str(path)])
    with pytest.raises(SystemExit, match="Error: .*File exists"):
        ideas.main()


def test_ideas_that_two_processes_try_at_once_are_all_kept(tmp_path, monkeypatch):
    words = ["ideas", "mnist-012", "--seeds", "1", "--out", str(tmp_path), "--match"]

    def measured(dataset, idea, *more):
        if idea == "margin 0":  # while this one runs, another process tries something else
            monkeypatch.setattr(sys, "argv", [*words, "smoothing 0.5"])
            ideas.main()
        return [90.0, 80.0, 70.0]

    monkeypatch.setattr(ideas, "measured", measured)
    monkeypatch.setattr(sys, "argv", [*words, "margin 0"])
    ideas.main()
    assert list(ideas.read(tmp_path / "mnist-012.json", "mnist-012")) == ["smoothing 0.5", "margin 0"]


def test_seeds_of_an_idea_that_another_process_does_meanwhile_are_left_to_it(tmp_path, monkeypatch):
    words, tried = ["ideas", "mnist-012", "--out", str(tmp_path), "--match", "margin 0", "--seeds"], []

    def measured(dataset, idea, seed, *more):
        tried.append(seed)
        if len(tried) == 1:
            monkeypatch.setattr(sys, "argv", [*words, "3"])
            ideas.main()
        return [90.0 + seed, 80.0, 70.0]

    monkeypatch.setattr(ideas, "measured", measured)
    monkeypatch.setattr(sys, "argv", [*words, "2"])
    ideas.main()
    kept = ideas.read(tmp_path / "mnist-012.json", "mnist-012")
    assert kept == {"margin 0": [[90.0 + seed, 80.0, 70.0] for seed in range(3)]} and tried == [0, 1, 2]


def test_ideas_of_a_data_set_without_any_that_match_are_not_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(ideas, "measured", lambda *_: [90.0, 80.0, 70.0])
    monkeypatch.setattr(sys, "argv", ["ideas", "--match", "two layers", "--seeds", "1", "--out", str(tmp_path)])
    ideas.main()
    assert "**mnist-rot**" in (out := capsys.readouterr().out) and "mnist-012" not in out


def test_the_difference_by_object_is_what_the_folds_say():
    shares = {
        row.key: [record["accuracy"]["test"]["as photographed"][0] for record in records_of("eth-80", row)]
        for row in TABLES["eth-80"].rows
        if row.over == "fold"
    }

    def above(better, worse):
        differences = [100 * (a - b) for a, b in zip(shares[better], shares[worse], strict=False)]  # best has fewer
        if len(differences) < 2:
            return f"{differences[0]:.1f}" if differences else "-"
        return f"{statistics.mean(differences):.1f} +- {statistics.stdev(differences):.1f}".replace("-0.0 ", "0.0 ")

    methods = {
        "ConvNet, He initialisation": "object-convnet-best",
        "ConvNet, U[-1, 1] initialisation": "object-convnet-paper",
        "STN, He initialisation": "object-stn-best",
        "STN, U[-1, 1] initialisation": "object-stn-paper",
        "HarmNet": "object-harmnet-best",
        "DeepScat, as printed": "object-deepscat-paper",
        "DeepScat, tuned on validation images": "object-deepscat-best",
    }
    for method, key in methods.items():
        assert f"| {method} | {above(key, 'best-object')} | {above(key, 'nearest-object')} |" in NOTEBOOK
    assert f"| TIGraNet, best | - | {above('best-object', 'nearest-object')} |" in NOTEBOOK


HEADLINES = {  # of the README: (table, rows of TIGraNet, row of ConvNet)
    "MNIST-012": ("mnist-012", "achiral", "best", "convnet-best"),
    "MNIST-rot": ("mnist-rot-trans", "rot-achiral", "rot-best", "rot-convnet-best"),
    "MNIST-trans": ("mnist-rot-trans", "trans-achiral", "trans-best", "trans-convnet-best"),
    "ETH-80": ("eth-80", "achiral", "best", "convnet-best"),
}


@pytest.mark.parametrize("name", HEADLINES)
def test_headlines_of_the_readme_are_what_the_records_say(name):
    table, *keys = HEADLINES[name]
    rows = [next(row for row in TABLES[table].rows if row.key == key) for key in keys]
    cells = [rows[0].paper]
    for row in rows:
        tests = [next(iter(record["accuracy"]["test"].values())) for record in records_of(table, row)]
        values = [100 * statistics.mean(shares) for shares in tests]
        spread = f" +- {statistics.stdev(values):.1f}" if len(values) > 1 else ""
        cells.append(f"{statistics.mean(values):.1f}{spread}" if values else "not run yet")
    lines = (DOCS.parent / "README.md").read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in lines if line.startswith(f"| {name}, "))
    assert line.endswith(f" | {' | '.join(cells)} |")
