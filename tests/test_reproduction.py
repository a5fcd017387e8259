"""`tigra reproduce`: runs are kept, taken up again, and put into a table."""

import json

import pytest
from click.testing import CliRunner
from tigra_cli.main import main

import tigra
from tigra.datasets import load_dataset
from tigra.errors import UsageError
from tigra.model_file import load_model
from tigra.reproduction import Experiment, Stopped, Watch
from tigra.tables import Row, Table

TABLE = Table(
    "A small table",
    (
        Row("net", "a network", "mnist-012", "94", runs=2),
        Row("near", "a neighbour", "mnist-012", method="nearest", runs=1),
    ),
    {"mnist-012": {"cubic": {}, "linear": {"interpolation": "linear"}}},
    transformations=2,
    quick_fit={"epochs": 1, "batch_size": 100},
)


def experiment(folder, **options):
    return Experiment(TABLE, folder, quick=True, **options)


def test_a_run_is_kept_and_found_again(tmp_path, monkeypatch):
    loaded = []
    monkeypatch.setattr(
        "tigra.reproduction.load_dataset",
        lambda *words, **options: loaded.append(options.get("interpolation")) or load_dataset(*words, **options),
    )
    one = experiment(tmp_path)
    assert [(row.key, number) for row, number in one.runs()] == [("net", 0), ("near", 0)]
    row = TABLE.rows[0]
    assert one.record(row, 0) is None
    record = one.run(row, 0)
    assert experiment(tmp_path).record(row, 0) == json.loads(json.dumps(record))
    assert {name: len(values) for name, values in record["accuracy"]["test"].items()} == {"cubic": 2, "linear": 2}
    assert loaded == [None, None, "linear"]  # to train, then for each of the two tests
    assert record["epochs"] == 1 and record["settings"]["recipe"]["fit"]["batch_size"] == 100
    assert load_model(tmp_path / "net-seed-0-quick.npz").resume is None


def test_records_of_other_settings_and_damaged_ones_do_not_count(tmp_path):
    row, one = TABLE.rows[1], experiment(tmp_path)
    one.run(row, 0)
    assert one.record(row, 0) and Experiment(TABLE, tmp_path).record(row, 0) is None  # not quick
    other = Table(TABLE.title, TABLE.rows, TABLE.tests, transformations=3, quick_fit=TABLE.quick_fit)
    assert Experiment(other, tmp_path, quick=True).record(row, 0) is None
    for content in ("", "[1]", '{"settings": 1}', "\x00"):
        one.path(row, 0).write_text(content)
        assert one.record(row, 0) is None


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    row = TABLE.rows[0]
    whole = experiment(tmp_path / "whole").run(row, 0)
    steps = []

    def stop_after_three():
        steps.append(None)
        return len(steps) > 3

    stopped = experiment(tmp_path / "parts")
    with pytest.raises(Stopped):
        stopped.run(row, 0, Watch(should_stop=stop_after_three))
    assert stopped.record(row, 0) is None
    kept = load_model(stopped.path(row, 0, ".npz"))
    assert kept.resume[1]["step"] == 3
    shown = []
    again = stopped.run(row, 0, Watch(show=lambda text, done=0, total=0: shown.append((text, done, total))))
    assert again["accuracy"] == whole["accuracy"] and again["seconds"] > 0
    assert ("epoch 1/1", 4, 5) in shown and ("epoch 1/1", 3, 5) not in shown


def test_seeds_rows_and_folds_are_limited(tmp_path):
    assert len(experiment(tmp_path, seeds=3).runs()) == 6
    assert [row.key for row, _ in experiment(tmp_path, only=["near"]).runs()] == ["near"]
    with pytest.raises(UsageError, match="no row 'far'; it has net, near"):
        experiment(tmp_path, only=["far"])
    folds = Table("Folds", (Row("f", "folds", "eth-80", over="fold", runs=10),), {"eth-80": {"": {}}})
    assert Experiment(folds, tmp_path, seeds=99).n_runs(folds.rows[0]) == 10
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


def test_the_command(tmp_path, monkeypatch):
    words = ["reproduce", "mnist-012", "--quick", "--row", "best", "--out", str(tmp_path), "--threads", "1"]
    first = CliRunner().invoke(main, words)
    assert first.exit_code == 0 and "QUICK" in first.stdout and "| TIGraNet, best |" in first.stdout
    monkeypatch.setattr(Experiment, "run", None)  # the second time nothing is left to run
    second = CliRunner().invoke(main, [*words, "--json"])
    content = json.loads(second.stdout)
    assert content["quick"] is True and content["runs"][0]["row"] == "best"
    wrong = CliRunner().invoke(main, ["reproduce", "mnist-012", "--row", "none"])
    assert wrong.exit_code == 2 and "it has paper, best" in wrong.stderr


def test_a_stop_is_heeded_while_a_fitted_classifier_is_tested(tmp_path, small_splits, monkeypatch):
    """Its features take minutes and are kept; a network's test takes seconds, and a stop would cost its training."""
    monkeypatch.setattr("tigra.reproduction.accuracy", lambda model, split, threads, show: show(1, 9) or 0.5)
    one, settings, shown = experiment(tmp_path), {"tests": {}, "transformations": 1}, []
    watch = Watch(lambda text, done=0, total=0: shown.append((text, done, total)), lambda: True)
    with pytest.raises(Stopped):
        one._measured(tigra.build_deepscat("W[1, 2]-PCA[1]", (14, 14), 3), settings, small_splits, watch)
    network = tigra.build_network("C[2]", (14, 14), 3)
    found = one._measured(network, settings, small_splits, watch)
    assert found == {"train": 0.5, "valid": 0.5, "test_upright": 0.5, "test": {}}
    assert shown == [(f"testing: {part}", 1, 9) for part in ("train", "valid", "test_upright")]
