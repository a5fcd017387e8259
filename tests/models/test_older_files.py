"""Model files and unfinished runs of version 0.1 load, predict what they predicted, and go on.

The files were written by commit 1cfe078; scores.json holds its scores for five test digits, and those of the unfinished
run had it never been stopped. On the machine that wrote them all are equal to the last bit; other processors round in
other ways, so that float32 scores are compared to 1e-4.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import tigra
from tigra.experiments.resuming import resume
from tigra.experiments.runs import perform
from tigra.model_file import load_model

FOLDER = Path(__file__).parent / "version_0_1"
SCORES = json.loads((FOLDER / "scores.json").read_text())


@pytest.mark.parametrize("name", ["finished", "deepscat"])
def test_older_models_load_and_predict_the_same(name, mnist_012):
    scores = tigra.load(FOLDER / f"{name}.npz").scores(mnist_012.test.images[:5])
    np.testing.assert_allclose(scores, SCORES[name], rtol=1e-4, atol=1e-4)


def test_older_names_of_options_have_become_todays():
    options = load_model(FOLDER / "finished.npz").network.options
    assert (options.active_set, options.dense_init, options.background) == ("union", "he", "border")
    assert (options.deviation_floor, options.log_offset, options.mixing) == (0.02, 0.03, "products")


def test_an_unfinished_run_of_an_older_version_goes_on(tmp_path, mnist_012):
    model = load_model(FOLDER / "unfinished.npz")
    assert (len(model.resume[1]["history"]), model.resume[1]["step"]) == (1, 4)
    run = resume(model, mnist_012, "unfinished.npz")
    perform(run, tmp_path / "finished.npz")
    scores = tigra.load(tmp_path / "finished.npz").scores(mnist_012.test.images[:5])
    np.testing.assert_allclose(scores, SCORES["resumed"], rtol=1e-4, atol=1e-4)


def test_a_file_that_is_saved_again_is_of_todays_version(tmp_path):
    model = load_model(FOLDER / "finished.npz")
    tigra.save(model.network, tmp_path / "new.npz")
    again = tigra.load(tmp_path / "new.npz")
    assert again.options == model.network.options
    assert (again.parameters == model.network.parameters).all()
