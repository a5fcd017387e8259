"""`tigra reproduce`: runs are kept, taken up again, and put into a table."""

import json
import statistics
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from tigra_cli.main import main

from tigra.datasets.loading import load_dataset
from tigra.datasets.splits import split_hash
from tigra.errors import TrainingError, UsageError
from tigra.experiments.methods import METHODS, DeepScatMethod, NetworkMethod
from tigra.experiments.recipes import RECIPES, DeepScatRecipe, find_recipe
from tigra.experiments.reproduction import Experiment
from tigra.experiments.runs import Stopped, Watch
from tigra.experiments.tables import TABLES, Row, Table
from tigra.figures.curves.rotations import STYLES, curves, draw, figure_of
from tigra.model_file import load_model
from tigra.models.classifier import accuracy
from tigra.seeding import generator
from tigra.training.views import Views

pytestmark = pytest.mark.slow

TABLE = Table(
    "A small table",
    (
        Row("net", "a network", "mnist-012", "94", runs=2),
        Row("near", "a neighbour", "mnist-012", method="nearest", runs=1),
    ),
    {"mnist-012": {"cubic": {}, "linear": {"interpolation": "linear"}}},
    transformations=2,
    quick_fit={"epochs": 1, "batch_size": 100},
    quick_transformations=2,
)


@pytest.fixture(autouse=True)
def small_recipe(monkeypatch):
    """A network that trains in no time stands in for the best."""
    small = {"architecture": "SC[2, 1]-DP[60]-S[2]-FC[4]", "margin": 0}
    monkeypatch.setitem(RECIPES["mnist-012"], "best", find_recipe("mnist-012").with_changes(small))


def experiment(folder, **options):
    return Experiment(TABLE, folder, quick=True, **options)


def test_a_run_is_kept_and_found_again(tmp_path, monkeypatch):
    loaded = []
    monkeypatch.setattr(
        "tigra.experiments.reproduction.load_dataset",
        lambda *words, **options: loaded.append(options.get("interpolation")) or load_dataset(*words, **options),
    )
    one = experiment(tmp_path)
    assert [(row.key, number) for row, number in one.runs()] == [("net", 0), ("near", 0)]
    row = TABLE.rows[0]
    assert one.record(row, 0) is None
    record = one.run(row, 0)
    assert experiment(tmp_path).record(row, 0) == json.loads(json.dumps(record))
    assert {name: len(values) for name, values in record["accuracy"]["test"].items()} == {"cubic": 2, "linear": 2}
    assert loaded == [None, "linear"]  # to train, and for the test that needs other images
    assert record["epochs"] == 1 and record["settings"]["recipe"]["fit"]["batch_size"] == 100
    assert load_model(tmp_path / "net-seed-0-quick.npz").resume is None


def test_a_run_is_measured_on_the_images_that_it_says(tmp_path, monkeypatch):
    seen = []

    def measure(model, split, threads, on_progress):
        seen.append(split)
        return accuracy(model, split, threads, on_progress)

    monkeypatch.setattr("tigra.experiments.reproduction.accuracy", measure)
    row, one = TABLE.rows[0], experiment(tmp_path)
    found = one.run(row, 1)["accuracy"]
    network = load_model(one.path(row, 1, ".npz")).network
    assert network.options.seed == 1
    cubic, linear = (load_dataset("mnist-012", seed=1, interpolation=name) for name in ("cubic", "linear"))
    expected = [splits.fresh_test(generator(0, f"evaluate {n}")) for splits in (cubic, linear) for n in range(2)]
    expected += [cubic.train, cubic.valid, cubic.test_upright]
    for split, (images, labels) in zip(seen, expected, strict=True):
        assert (split.images == images[:300]).all() and (split.labels == labels[:300]).all()
    assert np.abs(seen[0].images - seen[1].images).max() > 0.5, "each round has angles of its own"
    values = [
        *found["test"]["cubic"],
        *found["test"]["linear"],
        *(found[p] for p in ("train", "valid", "test_upright")),
    ]
    assert values == [accuracy(network, split) for split in seen]


def test_a_row_with_views_tests_the_model_of_another_row(tmp_path):
    rows = TABLE.rows[0], Row("net-views", "two views", "mnist-012", runs=2, views=2, model_of="net")
    one = Experiment(replace(TABLE, rows=rows), tmp_path, quick=True)
    plain, views = (one.run(row, 0) for row in rows)
    assert [path.name for path in tmp_path.glob("*.npz")] == ["net-seed-0-quick.npz"], "trained once"
    assert "views" not in plain["settings"] and views["settings"] == plain["settings"] | {"views": 2}
    assert views["protocol"] == f"{plain['protocol']}, scores averaged over 2 views"
    assert views["seconds"] == plain["seconds"]
    network, splits = load_model(one.path(rows[1], 0, ".npz")).network, load_dataset("mnist-012")
    assert views["accuracy"]["test_upright"] == accuracy(Views(network), splits.test_upright)
    assert one.record(rows[0], 0) == plain and one.record(rows[1], 0) == views
    assert one.run(rows[1], 1)["seconds"] > 0, "trains if the other row has not"


def test_records_of_other_settings_and_damaged_ones_do_not_count(tmp_path):
    row, one = TABLE.rows[1], experiment(tmp_path)
    one.run(row, 0)
    assert one.record(row, 0) and Experiment(TABLE, tmp_path).record(row, 0) is None  # not quick
    other = replace(TABLE, quick_transformations=3)
    assert Experiment(other, tmp_path, quick=True).record(row, 0) is None
    whole = json.loads(one.path(row, 0).read_text())
    changes = (
        {"accuracy": {}}, {"accuracy": 1}, {"accuracy": {"test": {}}}, {"accuracy": {"test": {"cubic": []}}},
        {"accuracy": {"test": {"cubic": ["x"]}}}, {"accuracy": {"test": {"cubic": [2]}}},
        {"accuracy": whole["accuracy"] | {"valid": None}}, {"seconds": None}, {"protocol": 1}, {"epochs": []},
        {"seconds": -1}, {"seconds": float("inf")}, {"parameters": True}, {"seconds": 10**400}, {"threads": 2**54},
        {"accuracy": {"test": {"linear": [0.5]}}}, {"accuracy": {"test": {"cubic": [0.5], "other": [0.5]}}},
        {"best_epoch": float("nan")}, {"best_epoch": -1}, {"more": [float("inf")]}, {"protocol": "\x1b[2J"},
        {"protocol": "\ud800"},
    )  # fmt: skip
    damaged = [json.dumps(whole | change) for change in changes]
    damaged += [
        json.dumps({key: value for key, value in whole.items() if key != lost}) for lost in ("seconds", "protocol")
    ]
    for content in ("", "[1]", '{"settings": 1}', "\x00", "[" * 100_000, *damaged):
        one.path(row, 0).write_text(content)
        assert one.record(row, 0) is None
        assert "| 0 seeds |" in one.markdown() and one.left_out() == [one.path(row, 0)]
    one.path(row, 0).write_text(json.dumps(whole))
    assert one.record(row, 0) == whole and one.left_out() == []


def test_an_unfinished_run_is_kept_now_and_then(tmp_path, monkeypatch):
    """Not only when it is told to stop: a power cut tells nobody."""
    row, one, kept = TABLE.rows[0], Experiment(replace(TABLE, quick_fit={"epochs": 3}), tmp_path, quick=True), []

    def look(text, done=0, total=0):
        if text.startswith("epoch 3") and not kept:
            kept.append(one.path(row, 0, ".npz").exists())

    for seconds, exists in ((10**9, False), (0, True)):
        monkeypatch.setattr("tigra.experiments.reproduction.SAVE_EVERY", seconds)
        one.path(row, 0, ".npz").unlink(missing_ok=True)
        kept.clear()
        one.run(row, 0, Watch(show=look))
        assert kept == [exists]


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    row = TABLE.rows[0]
    whole = experiment(tmp_path / "whole").run(row, 0)
    steps = []

    def stop_after_three():
        steps.append(None)
        return len(steps) > 4  # before loading, and before each step

    stopped = experiment(tmp_path / "parts")
    with pytest.raises(Stopped):
        stopped.run(row, 0, Watch(should_stop=stop_after_three))
    assert stopped.record(row, 0) is None
    kept = load_model(stopped.path(row, 0, ".npz"))
    assert kept.resume[1]["step"] == 3
    shown = []
    again = stopped.run(row, 0, Watch(show=lambda text, done=0, total=0: shown.append((text, done, total))))
    assert again["accuracy"] == whole["accuracy"] and again["seconds"] > kept.training["seconds"] > 0
    assert again["cpu_seconds"] > kept.training["cpu_seconds"] > 0
    assert ("epoch 1/1", 4, 5) in shown and ("epoch 1/1", 3, 5) not in shown


def never(*_, **__):
    raise AssertionError("this should not have been called")


def test_a_trained_model_is_only_measured_again(tmp_path, monkeypatch):
    row, one = TABLE.rows[0], experiment(tmp_path)
    whole = one.run(row, 0)
    one.path(row, 0).write_text("half a rec")  # a crash, or a stop, between the model and its record
    monkeypatch.setattr(NetworkMethod, "start", never)
    assert one.record(row, 0) is None and one.run(row, 0) == whole


def test_a_stop_while_testing_costs_no_training(tmp_path, monkeypatch):
    row, one, shown = TABLE.rows[0], experiment(tmp_path), []
    watch = Watch(lambda *what: shown.append(what), lambda: len(shown) > 0 and shown[-1][0] == "testing, linear")
    with pytest.raises(Stopped):
        one.run(row, 0, watch)
    assert one.record(row, 0) is None and ("testing, cubic", 200, 200) in shown
    with monkeypatch.context() as patch:
        patch.setattr(NetworkMethod, "start", never)
        again = one.run(row, 0, Watch(lambda *what: shown.append(what)))
    assert ("measuring, train", 300, 300) in shown  # no more, for a quick one
    whole = experiment(tmp_path / "whole").run(row, 0)
    assert again["accuracy"] == whole["accuracy"] and set(again) == set(whole)
    assert (again["epochs"], again["best_epoch"], again["threads"]) == (1, 1, 1)


def test_a_fitted_model_is_only_measured_again(tmp_path, monkeypatch):
    monkeypatch.setenv("TIGRA_CACHE", str(tmp_path / "cache"))
    small = DeepScatRecipe(architecture="W[1, 2]-PCA[2]")
    monkeypatch.setattr(DeepScatMethod, "recipe", lambda *_: small)
    row, shown = Row("fitted", "a fitted one", "mnist-012", method="deepscat", runs=1), []
    one = Experiment(Table("Fitted", (row,), {"mnist-012": {"cubic": {}}}), tmp_path, quick=True)
    with pytest.raises(Stopped):
        one.run(row, 0, Watch(lambda *what: shown.append(what), lambda: len(shown) > 0 and "testing" in shown[-1][0]))
    monkeypatch.setattr(DeepScatMethod, "start", never)
    seen = []
    monkeypatch.setattr(
        "tigra.experiments.reproduction.accuracy",
        lambda model, *more: seen.append(model.cache) or accuracy(model, *more),
    )
    record = one.run(row, 0)
    assert set(seen) == {tmp_path / "cache"}, "test images that were scattered before the stop are not scattered again"
    assert one.record(row, 0) == record and record["threads"] == 1 and record["accuracy"]["train"] > 0.5


def test_models_that_are_damaged_or_of_other_settings_are_trained_anew(tmp_path, monkeypatch):
    row, one = TABLE.rows[0], experiment(tmp_path)
    whole = one.run(row, 0)
    path, started = one.path(row, 0, ".npz"), []
    content = path.read_bytes()
    start = METHODS["tigranet"].start
    monkeypatch.setattr(NetworkMethod, "start", lambda self, *words: started.append(words) or start(*words))
    path.write_bytes(content[:-100])
    assert one.run(row, 0)["accuracy"] == whole["accuracy"] and len(started) == 1
    monkeypatch.setattr("tigra.experiments.reproduction.split_hash", lambda splits: "of other images")
    assert one.run(row, 0)["accuracy"] == whole["accuracy"] and len(started) == 2
    monkeypatch.setattr("tigra.experiments.reproduction.split_hash", split_hash)
    other = replace(TABLE, quick_fit={"epochs": 1, "batch_size": 250})
    assert Experiment(other, tmp_path, quick=True).run(row, 0)["accuracy"] != whole["accuracy"] and len(started) == 3


def test_one_run_that_fails_does_not_stop_the_others(tmp_path, monkeypatch):
    def run(self, row, number, watch):
        if row.key == "paper":
            raise TrainingError("The loss is no longer finite.")
        return {"accuracy": {"test": {"cubic": [0.5]}}, "seconds": 1.0}

    monkeypatch.setattr(Experiment, "run", run)
    words = ["reproduce", "mnist-012", "--quick", "--row", "paper", "--row", "best", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 1 and "(2/2): 50.00 % (cubic)" in result.stderr
    assert "as printed, seed 0 (1/2): no result. The loss is no longer finite." in result.stderr


def test_a_folder_that_cannot_be_written_is_named_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("tigra.experiments.reproduction.load_dataset", never)
    (tmp_path / "file").write_text("")
    below, taken = tmp_path / "file" / "folder", tmp_path / "taken"
    (taken / "best-seed-0-quick.json").mkdir(parents=True)
    for out in (below, taken):
        result = CliRunner().invoke(main, ["reproduce", "mnist-012", "--quick", "--row", "best", "--out", str(out)])
        assert result.exit_code == 1 and result.stdout == "" and str(out) in result.stderr
        assert "Traceback" not in result.stderr


def test_seeds_rows_and_folds_are_limited(tmp_path):
    assert len(experiment(tmp_path, seeds=3).runs()) == 6
    assert [row.key for row, _ in experiment(tmp_path, only=["near"]).runs()] == ["near"]
    with pytest.raises(UsageError, match="no row 'far'; it has net, near"):
        experiment(tmp_path, only=["far"])
    fixed = Row("fixed", "always the same", "mnist-012", method="deepscat", runs=1, is_fixed=True)
    assert experiment(tmp_path, seeds=3).numbers(fixed) == [0]
    folds = Table("Folds", (Row("f", "folds", "eth-80", over="fold", runs=10),), {"eth-80": {"": {}}})
    assert Experiment(folds, tmp_path, seeds=99).numbers(folds.rows[0]) == list(range(10))
    assert Experiment(folds, tmp_path).settings(folds.rows[0], 4)["data"] == {"fold": 4}


def test_the_table_shows_what_is_finished(tmp_path):
    one = experiment(tmp_path, seeds=2)
    for row, number in one.runs():
        if (row.key, number) != ("near", 1):
            one.run(row, number)
    lines = one.markdown().splitlines()
    network, neighbour = (
        next(line for line in lines if line.startswith(f"| {w} ")) for w in ("a network", "a neighbour")
    )
    assert "| 94 |" in network and "+-" in network and "2 seeds" in network
    assert "| - |" in neighbour and "1 seed |" in neighbour and "+-" not in neighbour
    assert any(line.startswith("Protocol: train and valid upright") for line in lines)
    assert len({line.count("|") for line in lines if line.startswith("|")}) == 1


def test_what_is_finished_counts_though_the_table_asks_for_fewer(tmp_path):
    row, one = TABLE.rows[1], experiment(tmp_path, seeds=4)
    for number in (0, 3):
        one.run(row, number)
    (tmp_path / "near-seed-x-quick.json").write_text("")
    (tmp_path / "near-seed-7.json").write_text("")  # not a quick one
    assert "| 1 seed |" in experiment(tmp_path).markdown()
    found = experiment(tmp_path, finished=True)
    assert found.numbers(row) == [0, 3] and "| 2 seeds |" in found.markdown()
    assert experiment(tmp_path, finished=True, seeds=1).numbers(row) == [0]
    (tmp_path / "near-seed-20261117-quick.json").write_text("")  # a copy with a date, say
    assert found.numbers(row) == [0, 3, 20261117] and [path.name for path in found.left_out()] == [
        "near-seed-20261117-quick.json"
    ]
    fixed = Row("near", "always the same", "mnist-012", method="deepscat", runs=1, is_fixed=True)
    assert found.numbers(fixed) == [0]
    folds = Table("Folds", (Row("f", "folds", "eth-80", over="fold", runs=10),), {"eth-80": {"": {}}})
    (tmp_path / "f-fold-12.json").write_text("")
    assert Experiment(folds, tmp_path, finished=True).numbers(folds.rows[0]) == list(range(10))
    for number in (0, 2, 12):
        (tmp_path / f"f-fold-{number}-quick.json").write_text("")
    assert Experiment(folds, tmp_path, quick=True, finished=True).numbers(folds.rows[0]) == [0, 2]
    for path in tmp_path.glob("near-seed-0-*"):
        path.unlink()
    assert experiment(tmp_path, finished=True).finished_rows() == [row], "of seed 3 alone"


def test_folds_have_one_protocol_and_runs_keep_their_threads(tmp_path):
    folds = Table("Folds", (Row("f", "folds", "eth-80", over="fold", runs=3),), {"eth-80": {"as they are": {}}})
    one = Experiment(folds, tmp_path, threads=7)
    assert one.n_threads() == "-"
    for number, share in ((1, 0.5), (2, 1.0)):
        record = {
            "protocol": f"split by object, fold {number}, test",
            "settings": one.settings(folds.rows[0], number),
            "accuracy": {"test": {"as they are": [share]}},
        }
        record |= {"seconds": 1, "threads": number}
        one.path(folds.rows[0], number).write_text(json.dumps(record))
    lines = one.markdown().splitlines()
    assert "| 75.00 +- 35.36 |" in lines[2] and "| 2 folds |" in lines[2]
    assert lines[4:] == ["Protocol: split by object, each object in turn, test."]
    assert one.n_threads() == "1-2"  # as they were, not the seven of today


def test_the_command(tmp_path, monkeypatch):
    words = ["reproduce", "mnist-012", "--quick", "--row", "best", "--out", str(tmp_path), "--threads", "1"]
    first = CliRunner().invoke(main, words)
    assert first.exit_code == 0 and "QUICK" in first.stdout and "| TIGraNet, best |" in first.stdout
    monkeypatch.setattr(Experiment, "run", None)  # the second time nothing is left to run
    second = CliRunner().invoke(main, [*words, "--json"])
    content = json.loads(second.stdout)
    assert content["quick"] is True and content["runs"][0]["row"] == "best"
    words = ["reproduce", "mnist-012", "--quick", "--finished", "--out"]
    table = CliRunner().invoke(main, [*words, str(tmp_path)])
    assert table.exit_code == 0 and table.stdout == first.stdout and "as printed" not in table.stdout
    assert "seconds of training on 1 thread." in table.stdout and table.stderr == ""
    nothing = CliRunner().invoke(main, [*words, str(tmp_path / "other")])
    assert nothing.exit_code == 2 and "has no finished quick runs of this table" in nothing.stderr
    nothing = CliRunner().invoke(main, [*words, str(tmp_path), "--row", "paper"])
    assert nothing.exit_code == 2 and "has no finished quick runs of these rows" in nothing.stderr
    empty = CliRunner().invoke(main, [*words, ""])
    assert empty.exit_code == 2 and "--out must be a folder, got an empty name" in empty.stderr
    (tmp_path / "best-seed-0-quick.json").write_text("half a rec")
    (tmp_path / "paper-seed-0-quick.json").write_text("{}")
    nothing = CliRunner().invoke(main, [*words, str(tmp_path)])
    assert nothing.exit_code == 2 and "Note: paper-seed-0-quick.json and 1 more left out: damaged" in nothing.stderr
    wrong = CliRunner().invoke(main, ["reproduce", "mnist-012", "--row", "none"])
    assert wrong.exit_code == 2 and "it has paper, repaired" in wrong.stderr


def test_the_curve_over_training_rotations_is_drawn(tmp_path):
    one = Experiment(TABLES["rotations"], tmp_path)
    shares = {"upright": [0.8, 0.9], "turned-4": [0.95], "turned-random": [0.96], "turned-4-convnet-best": [0.5]}
    for row in one.rows:
        for number, share in enumerate(shares.get(row.key, [])):
            record = {"protocol": "", "settings": one.settings(row, number), "seconds": 1}
            record["accuracy"] = {"test": {"cubic": [share]}}
            one.path(row, number).write_text(json.dumps(record))
    lines = curves(one)
    assert list(lines) == [("tigranet", "best"), ("convnet", "best")]
    assert lines["convnet", "best"] == {"4": (50.0, 0.0)}
    mean, deviation = lines["tigranet", "best"]["1"]
    assert (mean, deviation) == pytest.approx((85.0, 50**0.5)) and lines["tigranet", "best"]["random"] == (96.0, 0.0)
    words = ["reproduce", "rotations", "--finished", "--out", str(tmp_path), "--figure"]
    done = CliRunner().invoke(main, [*words, str(tmp_path / "curve.png")])
    assert done.exit_code == 0 and (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert done.stderr == f"Figure: {tmp_path / 'curve.png'}\n"
    assert "| 2 seeds |" in done.stdout
    upright = next(row for row in one.rows if row.key == "upright")
    record = json.loads(one.path(upright, 0).read_text()) | {"settings": one.settings(upright, 9)}
    one.path(upright, 9).write_text(json.dumps(record))
    assert "| 3 seeds |" in CliRunner().invoke(main, words[:-1]).stdout, "0, 1 and 9; the table asks for 0, 1 and 2"
    kept = Experiment(TABLES["rotations"], tmp_path, finished=True)
    shares = [statistics.mean(kept.record(upright, n)["accuracy"]["test"]["cubic"]) for n in (0, 1, 9)]
    assert curves(kept)["tigranet", "best"]["1"][0] == pytest.approx(100 * statistics.mean(shares))
    for file in ("curve.txt", "png", ""):
        wrong = CliRunner().invoke(main, [*words, file and str(tmp_path / file)])
        assert wrong.exit_code == 2 and ".png, .svg or .pdf" in wrong.stderr
    wrong = CliRunner().invoke(main, [*words, str(tmp_path / "none" / "curve.png")])
    assert wrong.exit_code == 1 and "Cannot write the figure to" in wrong.stderr
    assert "choose another file with --figure." in wrong.stderr
    new = tmp_path / "new"
    words = ["reproduce", "rotations", "--quick", "--row", "upright", "--data-dir", str(tmp_path), "--out", str(new)]
    early = CliRunner().invoke(main, [*words, "--figure", str(new / "curve.png")])  # stops only for want of MNIST
    assert early.exit_code == 1 and "mnist" in early.stderr.lower() and "figure" not in early.stderr
    unmade = tmp_path / "unmade"
    for table, words, message in (
        ("mnist-012", ["--figure", "curve.png"], "tables rotations and digits"),
        ("rotations", ["--figure", str(unmade / "curve.png"), "--row", "none"], "no row 'none'"),
        ("rotations", ["--figure", str(tmp_path / "none" / "curve.png")], "Cannot write the figure"),
        ("rotations", ["--figure", str(unmade / "curve.png"), "--finished"], "give the folder of the runs with --out"),
    ):
        wrong = CliRunner().invoke(main, ["reproduce", table, *words, "--out", str(unmade)])
        assert wrong.exit_code in (1, 2) and message in wrong.stderr and not unmade.exists()


def test_the_curve_over_training_digits_is_drawn(tmp_path):
    one = Experiment(TABLES["digits"], tmp_path)
    shares = {"best-100": 0.8, "best-1000": 0.9, "turned-convnet-1000": 0.7, "best-ten": 0.1}
    for row in one.rows:
        if row.key in shares:
            record = {"protocol": "", "settings": one.settings(row, 0), "seconds": 1}
            record["accuracy"] = {"test": {"cubic": [shares[row.key]]}}
            one.path(row, 0).write_text(json.dumps(record))
    lines = curves(one)
    assert {key: list(line) for key, line in lines.items()} == {
        ("tigranet", "best"): ["100", "1000"],
        ("convnet", "best"): ["1000"],
    }, "ten digits are another task"
    words = ["reproduce", "digits", "--finished", "--out", str(tmp_path), "--figure", str(tmp_path / "curve.svg")]
    assert CliRunner().invoke(main, words).exit_code == 0
    drawn = (tmp_path / "curve.svg").read_text()
    assert "1,000" in drawn or "<!-- 1,000 -->" in drawn


def test_a_figure_of_nothing_is_not_drawn_and_that_is_said(tmp_path, monkeypatch):
    def fail(*_):
        raise TrainingError("Diverged.")

    monkeypatch.setattr(Experiment, "run", fail)
    words = ["reproduce", "rotations", "--quick", "--row", "upright", "--out", str(tmp_path)]
    done = CliRunner().invoke(main, [*words, "--figure", str(tmp_path / "curve.png")])
    assert done.exit_code == 1 and "No figure: no run has a result." in done.stderr
    assert not (tmp_path / "curve.png").exists()


def test_the_curve_says_what_it_shows_and_is_the_same_file_each_time(tmp_path, monkeypatch):
    one = Experiment(TABLES["rotations"], tmp_path)
    lines = {("stn", "paper"): {"4": (40.0, 0.0)}, ("stn", "best"): {"4": (45.0, 0.0)}}
    monkeypatch.setattr("tigra.figures.curves.rotations.curves", lambda _: lines)
    alone = draw(one, "x.svg").decode()
    assert "bars" not in alone and "thin line" not in alone and "QUICK" not in alone
    assert alone.index("<!-- STN, He initialisation") < alone.index("<!-- STN, U[-1, 1]"), "in the order of the styles"
    lines["tigranet", "best"] = {"1": (80.0, 2.0), "random": (85.0, 0.0)}
    svg, pdf = draw(one, "x.svg"), draw(one, "x.PDF")
    assert "bars: one standard deviation over runs" in svg.decode() and "thin line" in svg.decode()
    one.quick = True
    quick = draw(one, "x.svg").decode()
    assert "QUICK: the numbers mean nothing" in quick and "500 training digits" in quick and "10,000" not in quick
    one.quick = False
    monkeypatch.setattr("time.time", lambda: 2e9)
    assert draw(one, "x.svg") == svg and draw(one, "x.PDF") == pdf and pdf.startswith(b"%PDF")
    assert b"<dc:date>" not in svg and b"CreationDate" not in pdf


def test_the_curve_has_its_points_bars_and_markers_where_they_belong(tmp_path, monkeypatch):
    one = Experiment(TABLES["rotations"], tmp_path)
    lines = {
        ("tigranet", "best"): {"16": (95.0, 0.0), "random": (96.0, 0.0), "1": (90.0, 1.5), "2": (92.0, 0.5)},
        ("convnet", "paper"): {"2": (40.0, 0.0), "16": (60.0, 0.0)},
        ("convnet", "best"): {"2": (50.0, 0.0)},
    }
    monkeypatch.setattr("tigra.figures.curves.rotations.curves", lambda _: lines)
    figure = figure_of(one)
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "16", "any"]
    drawn = {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}
    for key, points in (
        (("tigranet", "best"), [(0, 90.0), (1, 92.0), (2, 95.0), (3, 96.0)]),
        (("convnet", "paper"), [(1, 40.0), (2, 60.0)]),
        (("convnet", "best"), [(1, 50.0)]),
    ):
        colour, marker, inside, dashes, words = STYLES[key]
        line = drawn.pop(words)
        assert list(zip(*line.get_data(), strict=True)) == points
        assert (line.get_marker(), line.get_markerfacecolor(), line.get_color()) == (marker, inside, colour)
        assert line.get_linestyle() == dashes
    assert not drawn
    level = [list(line.get_ydata()) for line in axes.get_lines() if line.get_linewidth() == 0.8]
    assert level == [[90.0, 90.0]], "the thin line: training on upright digits alone"
    (bars,) = [bar for bar in axes.containers if bar.has_yerr]
    (segments,) = bars[2]
    assert [segment.tolist() for segment in segments.get_segments()] == [
        [[0, 88.5], [0, 91.5]],
        [[1, 91.5], [1, 92.5]],
    ]
    caption = figure.get_supxlabel()
    assert "10,000 training digits" in caption and "cubic interpolation" in caption and "bars" in caption
    figure.draw_without_rendering()
    for text in (figure._supxlabel, figure.legends[0]):
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= figure.bbox.width and box.y0 >= 0 and box.y1 <= figure.bbox.height
    lines = axes.get_window_extent(), axes.get_tightbbox()
    assert figure.legends[0].get_window_extent().y0 >= lines[0].y1, "above the curves, not upon them"
    assert figure._supxlabel.get_window_extent().y1 <= lines[1].y0, "below the axis and its words"


def test_a_run_that_another_process_has_finished_meanwhile_is_not_done_again(tmp_path, monkeypatch):
    done = []

    def record(self, row, number):
        found = {"accuracy": {"test": {"cubic": [0.5]}}, "seconds": 1.0, "protocol": "", "threads": 1}
        return found if done else None

    def run(self, row, number, watch):
        done.append((row.key, number))  # and while it ran, another process did all the others
        return record(self, row, number)

    monkeypatch.setattr(Experiment, "run", run)
    monkeypatch.setattr(Experiment, "record", record)
    words = ["reproduce", "mnist-012", "--quick", "--row", "paper", "--row", "best", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0 and done == [("paper", 0)] and result.stdout.count("1 seed") == 2
