"""Every gradient against central differences, and the checker against wrong gradients."""

import re
from pathlib import Path

import numpy as np
import pytest

import tigra
from tigra.errors import ShapeError
from tigra.gradcheck import checks as gradcheck
from tigra.gradcheck.cases import NETWORK_CASES, SECTIONS
from tigra.gradcheck.checks import (
    LAYER_CASES,
    check_gradients,
    check_layer,
    numerical_gradient,
    relative_error,
    run_checks,
)
from tigra.graph.polynomials import chebyshev
from tigra.models.loss import negative_log_likelihood


@pytest.mark.parametrize("name", LAYER_CASES)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_backward_matches_central_differences(name, seed):
    layer, x = LAYER_CASES[name](np.random.default_rng(seed))
    layer.backward(np.ones_like(gradcheck.values_of(layer.forward(x))))
    assert all(grad.any() for grad in layer.grads.values()), "a gradient of zeros would check nothing"
    for check in check_layer(name, seed):
        assert check.error < 1e-7, f"{name}: dE/d{check.what} is off by {check.error:.1e}"


@pytest.mark.parametrize("seed", [0, 1])
def test_whole_network_with_its_loss_matches_central_differences(seed):
    checks = list(run_checks("Network", seed))
    assert {check.what.split(".")[-1] for check in checks} == {"alpha", "beta", "weight", "bias"}
    for check in checks:
        assert check.error < 1e-6, f"dE/d{check.what} is off by {check.error:.1e}"


@pytest.mark.parametrize("name", [name for name in NETWORK_CASES if name != "Network"])
def test_networks_to_compare_with_match_central_differences(name):
    checks = list(run_checks(name))
    assert len(checks) >= 6
    for check in checks:
        assert check.error < 1e-6, f"{name}: dE/d{check.what} is off by {check.error:.1e}"


def test_loss_matches_central_differences():
    plain, smoothed = run_checks("Loss")
    assert plain.error < 1e-7 and smoothed.error < 1e-7


def test_check_rejects_a_gradient_wrong_by_one_part_in_ten_thousand():
    x = np.linspace(1.0, 2.0, 5)
    numeric = numerical_gradient(lambda: float(np.sum(x**2)), x)
    assert relative_error(2.0 * x, numeric) < 1e-7 < relative_error(2.0002 * x, numeric)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYER_CASES)
def test_every_case_rejects_a_layer_wrong_by_one_part_in_ten_thousand(name, monkeypatch):
    """The real check on a layer whose gradients, one after the other, are spoilt a little."""
    layer_class = type(LAYER_CASES[name](np.random.default_rng(0))[0])
    right = layer_class.backward
    spoilt = ["input", *LAYER_CASES[name](np.random.default_rng(0))[0].params]
    for what in spoilt:

        def wrong(self, grad, what=what):
            grad_x = right(self, grad)
            if what == "input":
                return 1.0001 * grad_x
            self.grads[what] *= 1.0001
            return grad_x

        monkeypatch.setattr(layer_class, "backward", wrong)
        outcome = {check.what: check.passed for check in check_layer(name)}
        assert not outcome.pop(what), f"a wrong dE/d{what} was not noticed"
        assert all(outcome.values())


def test_gradients_of_another_shape_or_with_nan_are_rejected():
    assert relative_error(np.zeros(2), np.zeros(3)) == np.inf
    assert not gradcheck.Check("", "", 1, relative_error(np.array([np.nan]), np.array([1.0])), 1e-7).passed


def test_zero_gradients_agree():
    assert relative_error(np.zeros(3), np.zeros(3)) == 0


@pytest.mark.parametrize("seed", range(5))
def test_cases_of_the_oriented_layers_stay_away_from_kinks(seed):
    pool, x = LAYER_CASES["DynamicPool, by size"](np.random.default_rng(seed))
    sizes = np.sort(np.abs(x.values), axis=1)
    assert pool.by_size and np.diff(sizes, axis=1).min() > gradcheck.MARGIN and sizes.min() > gradcheck.MARGIN
    for name in ("MapNorm", "MapNorm, in training", "MapNorm, in training, diffusion"):
        layer, x = LAYER_CASES[name](np.random.default_rng(seed))
        layer.forward(x)
        values, count, _, _, scale, shift, _ = layer._cache
        assert (count is not None) == ("training" in name)
        assert shift.max() > gradcheck.MARGIN and shift.min() < -gradcheck.MARGIN
        assert np.abs(scale[:, None] * values + shift[:, None]).min() > gradcheck.MARGIN


@pytest.mark.parametrize("name", ["DynamicPool", "Statistics", "Statistics, free boundary", "ReLU", "MaxPool"])
@pytest.mark.parametrize("seed", range(5))
def test_cases_stay_away_from_kinks(name, seed):
    """At a kink central differences mean nothing; each case must keep its distance."""
    layer, x = LAYER_CASES[name](np.random.default_rng(seed))
    values = gradcheck.values_of(x)
    if name == "DynamicPool":
        inside = np.where(x.active, values, np.nan)
        gaps = np.diff(np.sort(inside, axis=1), axis=1)
        assert np.nanmin(gaps) > gradcheck.MARGIN
    elif name == "MaxPool":
        assert np.diff(np.sort(values.ravel())).min() > gradcheck.MARGIN
    elif name == "ReLU":
        assert np.abs(values).min() > gradcheck.MARGIN
    else:
        t = np.abs([t.copy() for t in chebyshev(layer.graph, values, layer.max_order)])
        assert not np.any((t > 0) & (t < gradcheck.MARGIN))


def test_gradient_after_ten_steps_of_training(small_network, small_splits):
    """Once at the start (above), and once where training has led: directional derivatives of the loss."""
    network = small_network(dtype="float64")
    list(tigra.fit(network, small_splits, epochs=5, batch_size=24))  # two steps an epoch
    images, labels = small_splits.train.images[:4], small_splits.train.labels[:4]
    signal = network.signal(network.prepare(images))

    def loss():
        return float(negative_log_likelihood(network.forward(signal), labels)[0])

    _, grad = negative_log_likelihood(network.forward(signal), labels)
    network.backward(grad)
    gradient, start = network.gradients.copy(), network.parameters.copy()
    direction, step, errors = np.random.default_rng(0).standard_normal((5, start.size)), 1e-7, []
    for along in direction:
        network.parameters[:] = start + step * along
        above = loss()
        network.parameters[:] = start - step * along
        errors.append(relative_error(gradient @ along[:, None], np.array([(above - loss()) / (2 * step)])))
    # one of the five directions may cross a kink (a swap in a pooling), hence the median; 1e-5 because the
    # loss after training is small next to its rounding error over the step
    assert np.median(errors) < 1e-5


def test_every_case_says_where_its_gradient_is_computed_and_derived():
    derivations = (Path(__file__).parents[2] / "docs" / "derivations.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (\d+)\. (.*)$", derivations, re.MULTILINE))
    for name, section in SECTIONS.items():
        assert str(section) in sections, name
    assert {name.split(",")[0] for name in LAYER_CASES} <= set(SECTIONS)
    (check,) = check_gradients(tigra.ReLU(), np.array([[-1.0, 2.0]]))
    assert check.where == "ReLU.backward in tigra/layers/dense.py, derived in docs/derivations.md, section 3"


def test_single_precision_is_refused_because_rounding_would_hide_the_difference():
    with pytest.raises(ShapeError, match="Gradients are checked in float64, but the input is float32; convert it"):
        check_gradients(tigra.ReLU(), np.ones((2, 2), np.float32))
