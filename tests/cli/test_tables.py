"""Folders in, tables out: predict --csv, and features."""

import csv
import itertools
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tigra
from tests.cli.running import run
from tigra.files.csv_rows import csv_row, safe_path
from tigra.images import streaming
from tigra.model_file import packaged_models

MODEL = packaged_models()["mnist-012"]


@pytest.fixture
def pictures(tmp_path, monkeypatch, mnist_012):
    """Five digits in two folders, and a text that is no picture; batches of two."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(streaming, "AT_ONCE", 2)
    names = ["a.png", "=b.png", "c,\n.png", "inside/d.png", "inside/e.png"]
    Path("photos", "inside").mkdir(parents=True)
    for name, image in zip(names, mnist_012.test.images, strict=False):
        Image.fromarray(np.uint8(255 * image)).save(Path("photos", name))
    Path("photos", "note.txt").write_text("no picture")
    Path("photos", ".hidden").write_text("nor this")
    return names


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_folder_becomes_a_table(pictures):
    run("predict", MODEL, "photos", "--recursive", "--csv", "out.csv", expect=1)
    rows = rows_of("out.csv")
    assert list(rows[0]) == ["path", "label", "probability", "0", "1", "2", "distance", "doubt", "error"]
    assert [row["path"] for row in rows] == [
        *(f"photos/{name}" for name in ("=b.png", "a.png", "c,\n.png", "note.txt")),
        *("photos/inside/d.png", "photos/inside/e.png"),
    ]
    (bad,) = (row for row in rows if row["error"])
    assert "not a picture" in bad["error"] and bad["label"] == bad["probability"] == bad["0"] == ""
    network = tigra.load(MODEL)
    for row in rows[:3]:
        (expected,) = network.predict_proba(tigra.read_image(row["path"], (28, 28))[None])
        assert [float(row[name]) for name in "012"] == pytest.approx(expected, abs=1e-6)
        assert float(row["probability"]) == max(float(row[name]) for name in "012")
        assert row["label"] == "012"[expected.argmax()]


def test_folders_inside_are_read_only_if_asked_for(pictures):
    said = run("predict", MODEL, "photos", expect=1)
    assert said.stdout.count("\n") == 3 and "inside" not in said.output
    assert "add --recursive" in run("predict", MODEL, ".", expect=1).stderr


def test_cells_cannot_become_formulas_and_names_of_columns_stay_apart(pictures, monkeypatch):
    assert csv_row(["=1+1", "@a", '"', -1.5]) == '\'=1+1,\'@a,"""",-1.5\r\n'
    monkeypatch.chdir("photos")
    network = tigra.build_network("S[0]", (28, 28), 3)
    network.class_names = ["error", "=cmd", "path"]
    tigra.save(network, "odd.npz")
    run("predict", "odd.npz", "=b.png", "--csv", "out.csv")
    (row,) = rows_of("out.csv")
    columns = ["path", "label", "probability", "error (class)", "'=cmd", "path (class)"]
    columns += ["distance", "doubt", "error"]
    assert list(row) == columns and row["path"] == "./=b.png" and Path(row["path"]).exists()
    assert safe_path(os.fsdecode(b"\xff.png")) == r"\xff.png"


@pytest.mark.usefixtures("heeds_signals")
def test_ctrl_c_keeps_the_rows_so_far(pictures, monkeypatch):
    right, calls = tigra.Network.predict_proba, itertools.count()

    def interrupted(self, *more):
        if next(calls) == 1:  # the second batch
            os.kill(os.getpid(), signal.SIGINT)
        return right(self, *more)

    monkeypatch.setattr(tigra.Network, "predict_proba", interrupted)
    said = run("predict", MODEL, "photos", "--csv", "out.csv", expect=130).stderr
    assert "out.csv has the rows of the 2 pictures so far" in said and len(rows_of("out.csv")) == 2
    assert sorted(path.name for path in Path().iterdir()) == ["out.csv", "photos"]


def test_pictures_are_read_only_a_few_batches_ahead():
    asked = []
    files = (asked.append(number) or streaming.Listed(str(number)) for number in itertools.count())
    batches = streaming.decoded_batches(files, lambda path: np.full((2, 2), float(path)), (2, 2), threads=2)
    assert [int(image[0, 0]) for image in next(batches).images] == list(range(streaming.AT_ONCE))
    assert len(asked) == streaming.AT_ONCE * (1 + streaming.AHEAD)
    batches.close()


def test_the_message_names_the_first_picture_that_cannot_be_read(pictures):
    for words in (("predict", MODEL, "photos", "--csv", "out.csv"), ("features", MODEL, "photos", "--out", "out.npz")):
        said = run(*words, expect=1).stderr
        assert (
            said.startswith("Error: 1 of 4 pictures could not be read") and "photos/note.txt is not a picture" in said
        )
    (Path("photos") / "other.txt").write_text("neither")
    assert (
        "says why. The first: photos/note.txt" in run("predict", MODEL, "photos", "--csv", "out.csv", expect=1).stderr
    )


def test_features_have_names_and_are_those_of_the_network(pictures):
    run("features", MODEL, "photos", "--out", "out.csv", expect=1)
    run("features", MODEL, "photos", "--out", "out.npz", expect=1)
    names = tigra.load(MODEL).feature_names()
    place = tigra.load(MODEL)._feature_place
    assert names[:2] == [f"layer{place}_map0_T0_mean", f"layer{place}_map0_T0_var"] and len(set(names)) == len(names)
    with np.load("out.npz") as found:
        assert found["names"].tolist() == names
        assert found["paths"].tolist() == [f"photos/{name}" for name in ("=b.png", "a.png", "c,\n.png")]
        assert found["error_paths"].tolist() == ["photos/note.txt"] and "not a picture" in found["errors"][0]
        image = tigra.read_image("photos/a.png", (28, 28))
        np.testing.assert_array_equal(found["features"][1], tigra.load(MODEL).features(image[None])[0])
        rows = rows_of("out.csv")
        assert list(rows[0]) == ["path", *names, "error"] and rows[3]["error"]
        np.testing.assert_allclose([float(rows[1][name]) for name in names], found["features"][1], rtol=1e-6)


def test_scattering_features_need_no_model(pictures):
    run("features", "W[2, 2]", "photos/a.png", "--size", "16x16", "--out", "out.npz")
    scattering = tigra.Scattering(2, 2, (16, 16))
    with np.load("out.npz") as found:
        assert found["names"].tolist() == scattering.feature_names() and len(set(found["names"])) == 41
        expected = scattering.features(tigra.read_image("photos/a.png", (16, 16)))
        np.testing.assert_allclose(found["features"][0], expected, rtol=1e-5)
    for model, words in (("W[0, 2]", "one feature"), ("W[2, 2]-PCA[3]", "W[order, octaves]"), ("W[2, 7]", "octaves")):
        assert words in run("features", model, "photos", "--out", "o.npz", expect=2).stderr
    assert "must end in .npz or .csv" in run("features", MODEL, "photos", "--out", "o.txt", expect=2).stderr
    assert "has no effect" in run("features", MODEL, "photos", "--out", "o.npz", "--size", "9x9", expect=2).stderr
