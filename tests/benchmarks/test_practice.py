"""A tiny pass of every set and contender of `benchmarks.practice`; no number is looked at except by hand."""

import doctest
import importlib.util
import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks.peers import hog, lbp
from benchmarks.practice import __main__ as practice
from benchmarks.practice import contenders, few, records, sets
from benchmarks.practice.contenders import CONTENDERS, Conditions, absence, measured
from benchmarks.practice.drawing import TEST_FONTS, TRAINING_FONTS
from benchmarks.practice.sets import SETS, Counts, PictureSet, make, turned_by_interpolation
from benchmarks.results import block_of
from tigra.datasets.sources import ETH80_CLASSES
from tigra.errors import UsageError
from tigra.experiments.recipe import Recipe

DOCS = Path(__file__).parents[2] / "docs"
FEW = Counts(3, 2)
PARTS = "train", "test"


@pytest.fixture
def small_sources(monkeypatch):
    """Noise in place of MNIST and ETH-80."""
    rng = np.random.default_rng(0)
    digits = {part: (rng.integers(256, size=(99, 28, 28), dtype=np.uint8), np.arange(99) % 10) for part in PARTS}
    pictures = [
        (kind, f"{kind}{number}", str(view), as_png(rng.integers(256, size=(6, 6, 3), dtype=np.uint8)))
        for kind in ETH80_CLASSES
        for number in range(10)
        for view in range(2)
    ]
    monkeypatch.setattr(sets, "load_mnist", lambda data_dir: digits)
    monkeypatch.setattr(sets, "eth80_pictures", lambda data_dir: iter(pictures))


def as_png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize("name", [name for name in SETS if name not in ("digits-100", "digits-500")])
def test_a_seed_makes_a_set_and_another_seed_another(name, small_sources):
    needs = {"photographs": "sklearn", "letters": "matplotlib"}.get(name)
    if needs and importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is missing")
    pictures, again, other = (make(name, seed, counts=FEW) for seed in (0, 0, 1))
    n_classes = len(pictures.class_names)
    assert len(set(pictures.class_names)) == n_classes > 2
    assert pictures.train.dtype == pictures.upright.dtype == pictures.turned.dtype == np.uint8
    assert np.bincount(pictures.train_labels).tolist() == [FEW.train] * n_classes
    assert np.bincount(pictures.test_labels).tolist() == [FEW.test] * n_classes
    assert len(pictures.upright) == len(pictures.turned) == len(pictures.test_labels)
    assert pictures.digest == again.digest != other.digest
    pixels = {image.tobytes() for image in np.concatenate(pictures[:1] + pictures[2:4])}
    assert len(pixels) == n_classes * (FEW.train + 2 * FEW.test), "no picture is in two parts"


def test_fonts_of_the_test_are_of_other_families():
    assert not set(TRAINING_FONTS) & set(TEST_FONTS)


def two_kinds(n=6):
    """Thick and thin bars on black."""
    rng, images = np.random.default_rng(0), np.zeros((2 * n, 16, 16), np.uint8)
    for number, image in enumerate(images):
        top = 3 + rng.integers(3)
        image[top : top + (2 if number < n else 8), 3:13] = 200 + rng.integers(50)
    labels = np.repeat([0, 1], n)
    return PictureSet(images, labels, images, turned_by_interpolation(images, rng), labels, ["thin", "thick"])


@pytest.mark.parametrize("name", [name for name in CONTENDERS if name != "tigra-0.1"])
def test_contenders_learn_and_answer(name, monkeypatch):
    if absence(name):
        pytest.skip(absence(name))
    find = contenders.find_method
    if name.startswith("tigra"):  # a few steps are enough here

        class Short:
            start = find("tigranet").start

            @staticmethod
            def recipe(*words):
                return find("tigranet").recipe(*words).with_changes({"epochs": 2, "architecture": "OC[2, 1]-S[2]"})

        monkeypatch.setattr(contenders, "find_method", lambda _: Short)
    elif name.startswith("convnet"):
        monkeypatch.setattr("benchmarks.peers.torch_convnet.LEAST_STEPS", 2)
    run = measured(name, two_kinds(), Conditions(seed=0))
    assert 0 <= run["turned"] <= 100 and run["seconds"] >= 0
    assert run["upright"] >= (0 if "tigra" in name or "convnet" in name else 90), "these were learned from"


def test_what_is_missing_is_said_and_left_out(monkeypatch, capsys):
    assert "--version-0-1" in absence("tigra-0.1") and absence("tigra") is None
    monkeypatch.setattr(contenders.importlib.util, "find_spec", lambda name: None)
    assert "pip install scikit-learn" in absence("mlp")
    options = practice.parsed(["shapes", "--contender", "mlp", "--contender", "tigra", "--seeds", "2"])
    assert [(task.contender, task.seed) for task in practice.tasks_of(options)] == [("tigra", 0), ("tigra", 1)]
    assert "Left out MLP on pixels" in capsys.readouterr().err


def test_results_are_written_at_once_not_measured_again_and_not_mixed_with_other_pictures(
    tmp_path, monkeypatch, capsys
):
    found = []
    run = {"upright": 90.0, "turned": 80.0, "seconds": 1.5}
    monkeypatch.setattr(practice, "measured", lambda name, *_: found.append(name) or run)
    few = {"shapes": SETS["shapes"]._replace(counts=FEW)}
    monkeypatch.setattr(practice, "SETS", few)
    monkeypatch.setattr("benchmarks.practice.sets.SETS", few)
    words = ["shapes", "--contender", "tigra", "--seeds", "2", "--out", str(tmp_path)]
    for _ in range(2):
        practice.main(words)
        assert "| tigra | 90.0 / 80.0 |" in capsys.readouterr().out
    assert found == ["tigra", "tigra"] and [path.name for path in tmp_path.iterdir()] == ["shapes.json"]
    path = tmp_path / "shapes.json"
    whole = path.read_text()
    digest = json.loads(whole)["tigra"]["0"]["digest"]
    path.write_text(whole.replace(digest, "another"))
    with pytest.raises(SystemExit, match="differ from those of the records"):
        practice.main([*words, "--contender", "tigra-achiral"])
    for broken in ("[1]", whole[:-4], whole.replace("90.0", "NaN"), whole.replace("80.0", '"x"'), "[" * 99999):
        path.write_text(broken)
        with pytest.raises(UsageError, match="damaged"):
            records.read(tmp_path, "shapes")


def test_the_tables_of_the_page_are_those_of_the_records():
    """Else: python -m benchmarks.practice --table --write docs/own-pictures.md."""
    page = (DOCS / "own-pictures.md").read_text(encoding="utf-8")
    assert block_of(page, "practice") == practice.tables(DOCS / "practice")
    for path in (DOCS / "practice").glob("*.json"):
        by_contender = records.read(path.parent, path.stem)
        ours = by_contender.get("tigra", {})
        assert all(Recipe.from_json(run["recipe"]) for run in ours.values())
        for seed in {seed for runs in by_contender.values() for seed in runs}:
            assert len({runs[seed]["digest"] for runs in by_contender.values() if seed in runs}) == 1, (
                "the same pictures"
            )
        assert not ours or f" / {sum(run['turned'] for run in ours.values()) / len(ours):.1f} |" in page


def test_ideas_for_few_pictures_are_trained_judged_and_recorded(tmp_path, monkeypatch, capsys):
    short = {"epochs": 0.03, "architecture": "OC[2, 1]-S[2]"}
    monkeypatch.setattr(few, "IDEAS", {few.RECIPE: short, "rotated": short | {"train_rotations": "random"}})
    monkeypatch.setattr(few, "JUDGED", 2)
    out = tmp_path / "few.json"
    words = ["--sets", "shapes", "--numbers", "3", "--out", str(out)]
    few.main(words)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 2 + len(few.PATIENCES) and "| 3 | rotated |" in lines[-1]
    run = json.loads(out.read_text())["shapes, 3, the recipe, 0"]
    assert run["epochs"] == 12 and set(run["patience"]) == {"0.1", "0.2", "0.3"}  # 3 % of 400 epochs of one step
    assert run["patience"]["0.1"]["epoch"] <= run["best_epoch"]
    monkeypatch.setattr(few, "measured", None)  # nothing is computed again
    few.main(words)
    assert capsys.readouterr().out.splitlines() == lines


def test_the_table_of_few_pictures_is_that_of_the_records():
    """Else: python -m benchmarks.practice.few --table --write docs/notebook.md."""
    page = (DOCS / "notebook.md").read_text(encoding="utf-8")
    results = json.loads((DOCS / "few-pictures.json").read_text(encoding="utf-8"))
    assert block_of(page, "few pictures") == "\n".join(few.table(results))


def test_examples_in_docstrings_hold():
    for module in (few, hog, lbp, records):
        results = doctest.testmod(module)
        assert results.attempted > 0 and results.failed == 0


def test_hog_agrees_with_a_loop_over_pixels():
    image = np.random.default_rng(0).random((8, 8))
    side = hog.cell_side(8, 8)
    cells = np.zeros((8 // side, 8 // side, hog.ORIENTATIONS))
    for row in range(8):
        for column in range(8):
            down = image[row + 1, column] - image[row - 1, column] if 0 < row < 7 else 0.0
            right = image[row, column + 1] - image[row, column - 1] if 0 < column < 7 else 0.0
            place = np.degrees(np.arctan2(down, right)) % 180 / 20
            for step, share in ((0, 1 - place % 1), (1, place % 1)):
                cells[row // side, column // side, (int(place) + step) % 9] += np.hypot(down, right) * share
    block = cells[1:3, 2:4].ravel()
    block = np.minimum(block / np.sqrt((block**2).sum() + 1e-5), 0.2)
    expected = block / np.sqrt((block**2).sum() + 1e-5)
    found = hog.hog_features(image[None]).reshape(3, 3, 36)[1, 2]
    assert np.allclose(found, expected)
