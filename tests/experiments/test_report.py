"""The report: counts by hand, remarks where they apply and only there, and a page that is safe to open."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

import tigra
from tests.cli.running import run
from tigra.datasets.splits import Split, Splits
from tigra.experiments.report.counts import Counts, Outcomes, calibration_error, outcomes, wilson
from tigra.experiments.report.page import LARGEST_MATRIX, Report, confident_mistakes, page
from tigra.experiments.report.remarks import is_achiral, on_training, remarks
from tigra.model_file import packaged_models


def test_counts_are_those_counted_by_hand():
    runs = [Outcomes(np.array([0, 0, 1, 2]), np.array(p), np.ones((4, 3)) / 3) for p in ([0, 1, 1, 1], [0, 0, 1, 1])]
    counts = Counts.of(["a", "b", "c"], runs)
    assert counts.confusion.tolist() == [[3, 1, 0], [0, 2, 0], [0, 2, 0]] and counts.images.tolist() == [2, 1, 1]
    assert counts.accuracy == 5 / 8 and counts.macro_recall == pytest.approx((3 / 4 + 1 + 0) / 3)
    assert counts.precision[:2].tolist() == [1, 2 / 5] and np.isnan(counts.precision[2])
    assert counts.to_json()["classes"][2] == {"name": "c", "images": 1, "recall": 0.0, "precision": None}
    assert counts.confused()[0] == (2, 1, 1.0) and counts.interval == wilson(5 / 8, 4)


def test_the_interval_solves_the_equation_of_wilson():
    """Its limits p satisfy |accuracy - p| = z sqrt(p (1 - p) / n)."""
    for accuracy, n in ((0.9, 50), (0.0, 7), (1.0, 1)):
        for limit in wilson(accuracy, n):
            assert abs(accuracy - limit) == pytest.approx(1.959964 * np.sqrt(limit * (1 - limit) / n), abs=1e-7)


def test_the_calibration_error_is_the_mean_gap_of_the_bins():
    probabilities = np.array([[0.9, 0.1]] * 10 + [[0.3, 0.7]] * 10)
    labels = np.array([0] * 5 + [1] * 5 + [1] * 10)  # 90 % sure and 50 % right, 70 % sure and always right
    assert calibration_error(probabilities, labels) == pytest.approx((0.4 + 0.3) / 2)


def test_outcomes_are_the_predictions(mnist_012):
    network = tigra.load(packaged_models()["mnist-012"])
    found = outcomes(network, mnist_012.test)
    assert (found.predicted == network.predict(mnist_012.test.images)).all()
    assert found.probabilities.tobytes() == network.predict_proba(mnist_012.test.images).tobytes()


def letters(kinds, n=12):
    """Images of an L, or of its mirror image, with a stroke of random strength."""
    images = np.zeros((n * len(kinds), 9, 9))
    for image, strength in zip(images, np.random.default_rng(0).uniform(0.6, 1, len(images)), strict=True):
        image[1:8, 2] = image[7, 2:6] = strength
    labels = np.repeat(np.arange(len(kinds)), n)
    for label, kind in enumerate(kinds):
        images[labels == label] = images[labels == label][:, :, ::-1] if kind == "J" else images[labels == label]
    return Split(images, labels)


def test_mirror_classes_are_named_for_a_network_that_cannot_tell_them_apart():
    split = letters("LJ")
    splits = Splits("letters", split, split, split, split, ["L", "J"], transform=abs)
    counts = Counts(["L", "J"], np.array([[6, 6], [6, 6]]))
    achiral, oriented = tigra.build_network("SC[2, 2]-S[2]", (9, 9), 2), tigra.load(packaged_models()["mnist-012"])
    said = remarks(counts, splits, achiral)
    assert "50 % of L is taken for J, and 50 % of J for L" in said
    assert any("J looks like the mirror image of L" in text for text in said)
    assert is_achiral(achiral, split.images) and not is_achiral(
        oriented, np.pad(split.images, ((0, 0), (9, 10), (9, 10)))
    )
    same = letters("LL")
    assert not any("mirror" in text for text in remarks(counts, replace(splits, test=same, test_upright=same), achiral))


def test_small_and_unequal_classes_are_named():
    few, rare = on_training(np.array([12, 120, 120]), ["a", "b", "c"])
    assert "few training images of a (12)" in few and "train with --class-weights balanced" in rare
    assert on_training(np.array([30, 60]), ["a", "b"]) == on_training(np.zeros(2, int), ["a", "b"]) == []
    assert len(on_training(np.array([12, 120]), ["a", "b"], is_weighted=True)) == 1


def test_remarks_on_a_folder_name_colour_size_and_upright_tests(tmp_path, mnist_012):
    for label in range(3):
        (tmp_path / "012"[label]).mkdir()
        for number, image in enumerate(mnist_012.test.images[mnist_012.test.labels == label][:6]):
            red = np.kron(image, np.ones((3, 3)))[:, :, None] * [255, 60, 0]
            Image.fromarray(red.astype(np.uint8)).save(tmp_path / "012"[label] / f"{number}.png")
    (tmp_path / "1" / "5.png").rename(tmp_path / "0" / "5.png")  # a mistake to be found
    report = tmp_path / "report.html"
    said = run("evaluate", "mnist-012", tmp_path, "--report", report)
    assert "as in the files; add --test-rotations" in said.stderr and "the network sees grey" in said.stderr
    assert "pictures of 84x84 pixels were reduced to 28x28" in said.stderr and "few test images of 1 (5)" in said.stderr
    assert "the network sees grey" in report.read_text() and "<span class=soft>0/5.png<" in report.read_text()
    assert "mean recall of the classes" in said.stdout
    assert "leave one out" in run("evaluate", "mnist-012", "--invariance", "--report", "x.html", expect=2).stderr


class Loads(HTMLParser):
    """Tags of a page, and every address in it."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.addresses = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "data", "srcset", "action")]


def test_the_page_escapes_names_and_loads_nothing(mnist_012):
    names = ['<script src="//x">', "&", "'\">"]
    test = Outcomes(np.array([0, 1, 2]), np.array([1, 1, 0]), np.array([[0.1, 0.9, 0], [0, 1, 0], [0.6, 0.2, 0.2]]))
    mistakes = confident_mistakes(test, mnist_012.test.images[:3], names, ["<0>.png", "1.png", "2.png"])
    assert [mistake[1:] for mistake in mistakes] == [
        (names[0], "&", 0.9, "<0>.png"),
        (names[2], names[0], 0.6, "2.png"),
    ]
    assert confident_mistakes(test, mnist_012.test.images[:3], names)[0][4] == ""
    counts = Counts.of(names, [test])
    text = page(Report("<title>", "<i>", counts, ["<u>"], {"<s>": "<s>"}, [(0, 1, 1), (360, 1, 1)], mistakes))
    found = Loads(text)
    assert not found.tags & {"script", "i", "u", "s", "link", "iframe", "object", "form"}
    assert len(found.addresses) == 2 and all(a.startswith("data:image/png;base64,") for a in found.addresses)
    policy = re.search(r'content="(default-src .*?)"', text)[1]
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and policy.endswith("img-src data:")
    many = [str(number) for number in range(LARGEST_MATRIX + 1)]
    assert "most frequent mistakes" in page(Report("t", "p", Counts(many, np.ones((len(many),) * 2, int))))
