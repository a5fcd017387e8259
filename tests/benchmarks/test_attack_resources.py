"""A short pass of the attack on memory and time; the cage notices what takes too much."""

import numpy as np
import pytest

from benchmarks.attack import resources


def test_hostile_sizes_are_refused_or_done():
    outcome = resources.attack(1.0, 4, lambda *_: None)
    assert outcome.failures == [] and outcome.tried >= 1


def test_every_kind_is_tried_and_foreign_errors_are_found(tmp_path, monkeypatch):
    tried, kinds = [], resources.KINDS
    noting = [lambda *_, kind=kind: tried.append(kind.__name__) for kind in kinds]
    monkeypatch.setattr(resources, "KINDS", noting)
    for seed in range(len(kinds)):
        resources.attempt(seed, tmp_path)
    assert set(tried) == {"picture", "model", "claims", "crowd", "size"}

    def evil(rng, place):
        raise KeyError("a")

    monkeypatch.setattr(resources, "KINDS", [evil])
    with pytest.raises(AssertionError, match="evil: KeyError"):
        resources.attempt(0, tmp_path)


def test_pictures_that_are_whole_can_be_read(tmp_path):
    for colour in resources.COLOURS:
        resources._write_png(tmp_path / "black.png", 30, 20, colour, is_whole=True)
        assert resources.read_image(tmp_path / "black.png", (30, 20)).max() == (colour in (4, 6))  # transparent: white


def test_models_that_are_written_by_hand_load(tmp_path):
    options = {"architecture": "SC[3, 2]-DP[9]-S[2]-FC[4]", "image_shape": (6, 6), "n_classes": 3}
    resources._write_model(tmp_path / "model.npz", options)
    assert resources.tigra.load(tmp_path / "model.npz").predict(np.zeros((1, 6, 6))).tolist() == [0]
