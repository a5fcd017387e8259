"""The analysis of unseen objects, and the ideas that were tried for them."""

import doctest
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import object_ideas, objects
from benchmarks.lesser_layers import DROPPED, Dropped, replace_layers
from tigra.datasets.splits import Split, Splits
from tigra.experiments.recipe import Recipe
from tigra.experiments.runs import Watch
from tigra.layers import Dense
from tigra.options import FitOptions, NetworkOptions

FOLD = 3
CLASSES = ["cow", "horse"]
SMALL = Recipe(network=NetworkOptions(architecture="SC[2, 1]-S[1]-FC[3]"), fit=FitOptions(epochs=1, batch_size=16))


def views(number, first=0.3):
    """Pictures of one object: a square, brighter for each class, on grey."""
    images = np.full((objects.N_VIEWS, 10, 10), 0.2, np.float32)
    images[:, 3:7, 3:7] = first + 0.2 * number
    return images


@pytest.fixture
def splits():
    train = [n for n in range(objects.N_OBJECTS) if n not in (FOLD, FOLD + 1)]
    images = np.concatenate([views(label) + 0.001 * n for label in range(2) for n in train])
    labels = np.repeat([0, 1], objects.N_VIEWS * len(train))
    tested = Split(np.concatenate([views(0), views(1)]), np.repeat([0, 1], objects.N_VIEWS))
    return Splits("objects", Split(images, labels), tested, tested, tested, CLASSES, None)


def test_examples_in_docstrings_hold():
    results = doctest.testmod(objects)
    assert results.attempted > 0 and results.failed == 0


def test_an_object_is_known_mistaken_and_like_another(splits):
    """The model calls everything a cow whose square is not bright; then a horse is known only with more contrast."""
    model = SimpleNamespace(
        predict=lambda images: (images[:, 5, 5] > 0.55).astype(int), features=lambda images: images[:, 5, 5:6]
    )
    found = objects.objects_of_fold(model, splits, FOLD)
    assert found["cow"]["recall"] == 1 and found["cow"]["like"] is None and found["cow"]["mistaken for"] == {}
    horse = found["horse"]
    assert horse["recall"] == 0 and horse["mistaken for"] == {"cow": objects.N_VIEWS}
    assert horse["like"] == "horse 1"  # the first one has the same brightness
    assert horse["changed"]["contrast x 1.4"] == 1 and horse["changed"]["contrast x 0.7"] == 0
    assert objects.training_object(splits, FOLD, 4 * objects.N_VIEWS) == "cow 7"  # not 4 and 5: test and validation
    _, poor, others = objects.poor_table({str(FOLD): found})
    assert poor[:4] == ["horse 4", "0", "cow 41", "horse 1"] and others[:2] == ["the other 1", "100"]


def test_pictures_of_equal_contrast_do_not_depend_on_what_it_was(splits):
    flat, strong = (
        object_ideas.with_equal_contrast(replace(splits, test=splits.test._replace(images=images))).test.images
        for images in (splits.test.images, objects.with_contrast(splits.test.images, 0.5).astype(np.float32))
    )
    assert np.abs(flat - strong).max() < 1e-6
    assert np.allclose(np.sqrt(((flat - 0.2) ** 2).mean(axis=(1, 2))), 0.12, atol=1e-6)


def test_smaller_and_larger_keep_the_centre_and_continue_the_border():
    images = views(1)[:1]
    smaller, larger = objects.zoomed(images, 0.5), objects.zoomed(images, 2.0)
    assert (smaller > 0.3).sum() < (images > 0.3).sum() < (larger > 0.3).sum()
    assert np.allclose(smaller[0, 0], 0.2) and np.allclose(smaller, smaller[:, ::-1, ::-1])


def test_a_folder_without_models_is_named(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(sys, "argv", ["objects", str(tmp_path), "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="has no finished model"):
        objects.main()


def test_dropout_has_the_gradient_of_what_it_computes():
    rng = np.random.default_rng(0)
    layer = Dense(rng.normal(size=(3, 6)), rng.normal(size=3))
    layer.__class__, layer.is_training = Dropped, True
    x, upstream = rng.normal(size=(6, 4)), rng.normal(size=(3, 4))

    def value(x):
        layer.start()
        return float((upstream * layer.forward(x)).sum())

    value(x)
    gradient, step = layer.backward(upstream), 1e-6
    for place in np.ndindex(x.shape):
        moved = [value(x + sign * step * (np.arange(24).reshape(6, 4) == 4 * place[0] + place[1])) for sign in (1, -1)]
        assert abs((moved[0] - moved[1]) / (2 * step) - gradient[place]) < 1e-8
    assert (gradient == 0).any() and (gradient != 0).any()
    layer.is_training = False
    assert np.array_equal(layer.forward(x), Dense(*layer.params.values()).forward(x))


@pytest.mark.parametrize(
    "idea, n_networks, n_images",
    [
        (object_ideas.CONTRAST, 1, 3),
        (object_ideas.COLOUR, 1, 1),
        (object_ideas.AVERAGED, 2, 1),
        (object_ideas.MIXED, 2, 1),
        (DROPPED, 1, 1),
    ],
)
def test_ideas_do_what_they_say(splits, monkeypatch, idea, n_networks, n_images):
    started, asked = [], []
    method = object_ideas.find_method("tigranet")
    monkeypatch.setattr(object_ideas, "load_dataset", lambda name, **options: asked.append(options) or splits)
    monkeypatch.setattr(object_ideas, "replace_layers", lambda *args: started.append(args) or replace_layers(*args))
    seen = []
    start = type(method).start
    monkeypatch.setattr(type(method), "start", lambda self, data, *more: seen.append(data) or start(self, data, *more))
    valid, test = object_ideas.measured(SMALL, idea, FOLD, Watch())
    assert 0 <= valid <= 100 and 0 <= test <= 100 and len(started) == n_networks
    assert len(seen[0].train.labels) == n_images * len(splits.train.labels)
    colours = {object_ideas.COLOUR: [True], object_ideas.MIXED: [False, True]}.get(idea, [False])
    assert [("colour" in options, options["fold"]) for options in asked] == [(colour, FOLD) for colour in colours]
    assert isinstance(started[0][0].layers[-1], Dropped) == (idea == DROPPED)
