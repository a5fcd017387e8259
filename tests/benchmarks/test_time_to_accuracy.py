"""benchmarks.time_to_accuracy: a race that was stopped ends as if it had not been."""

from benchmarks.time_to_accuracy import race
from tigra.experiments.recipe import Recipe
from tigra.options import FitOptions, NetworkOptions


def test_a_stopped_race_goes_on_to_the_same_weights_and_stops_at_its_goal(small_splits, tmp_path):
    fit = FitOptions(epochs=2, batch_size=16, learning_rate=0.01)
    recipe = Recipe(network=NetworkOptions(architecture="SC[2, 2]-DP[60]-S[3]-FC[8]"), fit=fit)
    whole = race(small_splits, recipe, tmp_path / "whole", goal=2, every=2)
    assert [one["step"] for one in whole][-1] == 6 and len(whole) >= 3
    stopped = race(small_splits, recipe, tmp_path / "stopped", goal=0, every=2)
    assert len(stopped) == 1 and stopped[0]["wall"] > 0
    resumed = race(small_splits, recipe, tmp_path / "stopped", goal=2, every=2)
    assert resumed[-1]["accuracy"] == whole[-1]["accuracy"] and resumed[-1]["numbers"] == whole[-1]["numbers"]
    assert [one["wall"] for one in resumed] == sorted(one["wall"] for one in resumed)
