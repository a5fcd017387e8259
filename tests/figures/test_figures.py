"""Figures are drawn, for all kinds of networks, with every letter inside the picture and none over another."""

import io
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image
from tigra_cli.main import main

import tigra
from tests.documents.names import resolve
from tigra import figures
from tigra.errors import UsageError
from tigra.experiments.recipes import find_recipe
from tigra.figures.exhibit import exhibit
from tigra.training.epochs import Epoch

pytest.importorskip("matplotlib", reason="figures need matplotlib: pip install 'tigra[figures]'")
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
LONG = ["a rather long name of a class", "price $5_{", "猫", *map(str, range(9))]


def history(n_epochs):
    return [Epoch(n, 1 / n, 1 - 0.5 / n, 1.2 / n, 0.1, 1 - 0.6 / n, n in (1, n_epochs)) for n in range(1, n_epochs + 1)]


@pytest.fixture(scope="module")
def shown(small_splits):
    """Two spectral layers, three classes, a history."""
    network = tigra.build_network("SC[2, 2]-DP[60]-SC[3, 2]-DP[30]-S[3]-FC[8]", (14, 14), 3, margin=1)
    network.calibrate(small_splits.train.images)
    return replace(exhibit(network, small_splits), history=history(20))


@pytest.fixture(scope="module")
def oriented(small_splits):
    """Oriented convolutions, the second one on a coarse grid, and statistics scaled by batches."""
    options = {"margin": 1, "diffusion": 1, "batch_norm": True, "diagonal_weight": 0.25}
    return exhibit(tigra.build_network("OC[3, 2]-GC[2]-OC[9, 2]-S[2]-FC[8]", (14, 14), 3, **options), small_splits)


@pytest.fixture(scope="module")
def odd(small_splits):
    """Many filters and orders, many classes with odd names, wide images, no pooling, no history, nothing calibrated."""
    network = tigra.build_network("SC[9, 4]-S[40]", (10, 14), 12, boundary="free")
    network.class_names = LONG
    split = tigra.Split(small_splits.test.images[:, :10], np.arange(24) % 12)
    splits = tigra.Splits("odd", split, split, split, split, LONG, transform=None)
    return exhibit(network, splits)


@pytest.fixture(scope="module")
def bare(small_splits):
    """The least that a network can be: statistics and a linear layer, and one test image."""
    split = tigra.Split(small_splits.test.images[:1], small_splits.test.labels[:1])
    splits = tigra.Splits("bare", split, split, split, split, ["0", "1", "2"], transform=None)
    return exhibit(tigra.build_network("S[0]", (14, 14), 3, standardise=False), splits)


def drawn_letters(figure, monkeypatch):
    """(text, box in pixels) of all that is written in a figure, as it was drawn."""
    from matplotlib.text import Text

    seen, draw = [], Text.draw

    def noted(self, renderer, *arguments, **options):
        if self.get_visible() and self.get_text().strip():
            seen.append(self)
        return draw(self, renderer, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Text, "draw", noted)
        figure.canvas.draw()
    return [(text.get_text(), Text.get_window_extent(text)) for text in dict.fromkeys(seen)]


def check_letters(figure, monkeypatch):
    """No letter is clipped, and none lies over another."""
    with figures.drawing():
        letters = drawn_letters(figure, monkeypatch)
    assert letters
    for text, box in letters:
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= figure.bbox.x1 + 1 and box.y1 <= figure.bbox.y1 + 1
        assert inside, f"{text!r} is clipped"
    for i, (text, box) in enumerate(letters):
        for other, its_box in letters[:i]:
            apart = box.x0 > its_box.x1 - 1.5 or its_box.x0 > box.x1 - 1.5
            assert apart or box.y0 > its_box.y1 - 1.5 or its_box.y0 > box.y1 - 1.5, f"{text!r} lies over {other!r}"


@pytest.mark.parametrize("name", figures.FIGURES)
@pytest.mark.parametrize("case", ["shown", "odd", "bare"])
def test_no_letter_is_clipped_and_none_lies_over_another(case, name, request, monkeypatch):
    try:
        figure, caption = figures.draw(request.getfixturevalue(case), name)
    except UsageError as error:
        without = "no spectral layer|no pooling layer|no record of its training|no oriented convolution"
        assert (case != "shown" or name == "orientation") and re.search(without, str(error))
        return
    assert caption.endswith(".") and len(caption) > 80
    assert figure.get_figwidth() <= 7.3 and figure.get_figheight() < 10
    check_letters(figure, monkeypatch)


@pytest.mark.parametrize("name", ["filters", "orientation", "rotations", "statistics"])
def test_letters_of_an_oriented_network_have_room(oriented, name, monkeypatch):
    figure, caption = figures.draw(oriented, name)
    check_letters(figure, monkeypatch)
    words = {"filters": "products of gradients", "orientation": "mirror images", "rotations": "Red is above 0"}
    assert words.get(name, "coarse grid of 8x8 nodes") in " ".join(caption.split())


def test_letters_beside_very_flat_images_have_room(small_splits, monkeypatch):
    network = tigra.build_network("SC[2, 1]-DP[30]-SC[2, 1]-DP[30]-S[1]", (3, 14), 3, boundary="free")
    split = tigra.Split(small_splits.test.images[:3, 5:8], small_splits.test.labels[:3])
    splits = tigra.Splits("flat", split, split, split, split, ["0", "1", "2"], transform=None)
    for name in ("rotations", "pooling"):
        check_letters(figures.draw(exhibit(network, splits), name)[0], monkeypatch)


def test_captions_name_the_papers_figure():
    for entry in figures.FIGURES.values():
        assert re.search(r"fig:\w+|not in the paper", entry.paper)


@pytest.fixture(scope="module")
def twins(small_splits):
    """Two layers of each name, and a filter for every pair of maps; the first map of the first layer is dead."""
    network = tigra.build_network("SC[2, 1]-DP[60]-SC[2, 1]-DP[60]-S[1]", (14, 14), 3, mixing="pairs")
    network.calibrate(small_splits.train.images)
    network.layers[0].params["threshold"][0] = 1e3
    return exhibit(network, small_splits)


@pytest.mark.parametrize("name", ["rotations", "pooling", "mistakes", "filters"])
def test_layers_of_one_name_can_be_told_apart(twins, name):
    figure, caption = figures.draw(twins, name)
    kind = "DP[60]" if name == "pooling" else "SC[2, 1]"
    headings = [text.get_text() for text in figure.axes[0].texts] + [axes.get_title() for axes in figure.axes]
    headings = [heading for heading in headings if kind in heading]
    assert len(headings) == len(set(headings)) == {"filters": 2, "pooling": 6}.get(name, 4)
    assert {heading[:7] for heading in headings} == {"layer 1", "layer 2"}
    if name == "filters":
        assert all("sum over input maps" in heading for heading in headings)
        assert "s_i" in caption


def test_a_map_that_is_0_everywhere_is_called_so_and_has_no_scale(twins, shown):
    for subject in (twins, shown):
        (axes,) = figures.draw(subject, "rotations")[0].axes
        maps = [image for image in axes.images if image.get_array().shape == subject.network.graph.shape][8:]
        is_live = np.array([image.get_array().any() for image in maps]).reshape(-1, 8)
        assert [text.get_text() for text in axes.texts].count("all 0") == (~is_live).sum()
        scales = [image for image in axes.images if image.get_array().shape == (64, 1)]
        assert len(scales) == is_live.any(axis=1).sum() > 0
        assert not is_live[0].any() if subject is twins else is_live.all()


def test_a_long_label_stays_in_its_tile(shown, monkeypatch):
    monkeypatch.setattr(shown.network, "class_names", ["a rather long name", "WWWWWWWWWWWW", "WWWWWWWWWWWW2"])
    figure, _ = figures.draw(shown, "labels")
    (axes,) = figure.axes
    left_edges = [image.get_extent()[0] for image in axes.images]
    with figures.drawing():
        figure.canvas.draw()
    for text in axes.texts:
        if text.get_bbox_patch() is not None:
            inches = text.get_bbox_patch().get_window_extent().transformed(figure.dpi_scale_trans.inverted())
            x = text.get_position()[0]
            assert inches.x0 >= max(edge for edge in left_edges if edge < x), text.get_text()


def test_the_first_and_lowest_accuracy_lies_off_the_axes(shown):
    figure, _ = figures.draw(replace(shown, history=history(60)), "training")
    with figures.drawing():
        figure.canvas.draw()
    axes = figure.axes[1]
    lowest = min(line.get_ydata()[0] for line in axes.get_lines()[:2])
    (x, y), (left, bottom) = axes.transData.transform((1, lowest)), axes.transAxes.transform((0, 0))
    assert min(axes.get_xticks()) >= 1 and x - left > 6 and y - bottom > 6, "a mark is about 7 pixels wide"


def test_filters_that_are_no_sums_are_not_called_so(shown):
    figure, caption = figures.draw(shown, "filters")
    assert "sum" not in caption and [axes.get_title() for axes in figure.axes] == [
        "layer 1, SC[2, 2]", "layer 2, SC[3, 2]"
    ]  # fmt: skip


def test_wrong_images_are_framed_and_right_ones_are_not(shown):
    figure, caption = figures.draw(shown, "mistakes")
    n_wrong = int(shown.is_wrong.sum())
    (axes,) = figure.axes
    crosses = [text for text in axes.texts if "✗" in text.get_text()]
    assert len(axes.patches) == len(crosses) == min(n_wrong, 5) > 0
    assert f"{len(crosses)} of the {n_wrong} misclassified among 24" in caption


def test_all_files_are_written_with_a_page_that_shows_them(shown, tmp_path, monkeypatch):
    few = {name: figures.FIGURES[name] for name in ("filters", "confusion")}  # each is drawn above
    for_others = {"orientation": figures.FIGURES["orientation"]}  # neither drawn nor missed
    monkeypatch.setattr(figures, "FIGURES", few | for_others)
    monkeypatch.setattr(figures, "turning", partial(figures.turning, n_frames=6))
    seen = []
    entries, skipped = figures.write(shown, tmp_path / "a" / "b", on_progress=lambda *report: seen.append(report))
    assert skipped == [] and [entry["figure"] for entry in entries] == [*few, "turning"]
    assert seen[0] == ("filters", 0, 4) and seen[-1] == ("turning", 3, 4)
    files = {name for entry in entries for name in entry["files"]}
    assert {path.name for path in (tmp_path / "a" / "b").iterdir()} == files | {"index.html"}
    page = (tmp_path / "a" / "b" / "index.html").read_text()
    for entry in entries:
        for name in entry["files"]:
            path = tmp_path / "a" / "b" / name
            assert f'"{name}"' in page
            if name.endswith(".svg"):
                assert ElementTree.parse(path).getroot().tag.endswith("svg")
            else:
                with Image.open(path) as picture:
                    picture.load()
                    assert max(picture.size) <= 1600
    with Image.open(tmp_path / "a" / "b" / "turning.gif") as picture:
        assert picture.n_frames == 6 and picture.info["loop"] == 0
    assert (tmp_path / "a" / "b" / "turning.gif").stat().st_size < 1.5e6


def test_the_same_figure_is_the_same_file(shown):
    contents = []
    for _ in range(2):
        figure, caption = figures.draw(shown, "confusion")
        with figures.drawing():
            contents.append(figures.as_files(figure, ["png", "svg"], "title", caption))
    assert contents[0] == contents[1] and set(contents[0]) == {"png", "svg"}


def test_the_animation_shows_active_nodes_or_cross_products_and_does_without(shown, odd, bare, oriented):
    for subject, n_panels, words in (
        (shown, 3, "with the active nodes of its first map after pooling and the class"),
        (odd, 1, "with the class"),
        (bare, 1, "with the class"),
        (oriented, 3, "with a cross product of gradients"),
    ):
        content, caption = figures.turning(subject, n_frames=4)
        assert words in caption
        with Image.open(io.BytesIO(content)) as picture:
            assert abs(picture.width - 100 * (1.95 * n_panels + 2.4)) <= 1 and 1 <= picture.n_frames <= 4
        assert " of 4 angles" in caption


def test_without_matplotlib_one_sentence_says_how_to_get_it(shown, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    words = "install it with: pip install 'tigra[figures]'"
    with pytest.raises(UsageError, match=re.escape(words)):
        figures.write(shown, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(UsageError, match="choose one of labels, graph, filters"):
        figures.draw(shown, "picture")


# --- the command --------------------------------------------------------------------------------------------


def run(*words, expect=0):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == expect, result.output
    return result


def test_the_command_lists_its_files_and_says_what_it_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(figures, "FIGURES", {name: figures.FIGURES[name] for name in ("graph", "training")})
    tigra.save(tigra.build_network("SC[2, 1]-S[1]", (28, 28), 3), "model.npz")
    words = ["figures", "model.npz", "--dataset", "mnist-012", "--no-gif", "--format", "png", "--out", "pictures"]
    result = run(*words, "--json", "--image", "3")
    content = json.loads(result.stdout)
    assert set(content) == {"model", "dataset", "protocol", "notes", "files", "figures", "skipped"}
    assert content["files"] == ["pictures/index.html", "pictures/graph.png"]
    assert {path.name for path in Path("pictures").iterdir()} == {"index.html", "graph.png"}
    assert content["skipped"] == [{"figure": "training", "reason": "the model file has no record of its training"}]
    assert "Note: no figure training" in result.stderr
    lines = run(*words).stdout.splitlines()
    assert lines[0].startswith("From pixels to a graph (") and lines[-1].endswith("pictures/index.html")


def test_listing_commands_and_importing_tigra_load_no_matplotlib():
    import subprocess

    code = "import sys, tigra, tigra.figures, tigra_cli.figures; print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


# --- the tour -------------------------------------------------------------------------------------------------


def test_the_tour_shows_the_pictures_that_its_command_makes():
    text = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[.+?\]\(tour/(\w+)\.png\)", text)
    assert pictures == [name for name in figures.FIGURES if (ROOT / "docs" / "tour" / f"{name}.png").exists()]
    assert {path.name for path in (ROOT / "docs" / "tour").iterdir()} == {
        "index.html", "turning.gif", *(f"{name}.png" for name in pictures)
    }  # fmt: skip
    assert (ROOT / "docs" / "tour" / "turning.gif").stat().st_size < 1.5e6


def test_the_tour_names_code_and_an_architecture_that_exist():
    text = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    named = [name for line in re.findall(r"^Code: (.*)$", text, re.MULTILINE) for name in re.findall("`(.+?)`", line)]
    assert len(named) >= 9
    for name in named:
        assert resolve(name) is not None, name
    (architecture,) = set(re.findall(r"`([SO]C\[.+?-S\[.+?)`", text))
    assert architecture == find_recipe("mnist-012").network.architecture, "which the command of the tour trains"
