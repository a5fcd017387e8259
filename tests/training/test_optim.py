"""Adam against closed forms and against numbers of another implementation."""

import numpy as np
import pytest

from tigra import UsageError
from tigra.options import SCHEDULES
from tigra.training.adam import Adam, learning_rate

# Parameters after each of ten steps of torch.optim.Adam (PyTorch 2.13, float64, lr 0.1) from (1, -2, 0.5) on
# the energy sum(a p^2) / 2 + sum(sin 3p), a = (1, 10, 0.1).
TRACE = [
    [1.09999999949238, -1.900000000058413, 0.4000000038137136],
    [1.1998144267469208, -1.8001139021819978, 0.3123439629041471],
    [1.2982129747845303, -1.7003596753494283, 0.22201681299528142],
    [1.3917546413520359, -1.6007280167097946, 0.12931695027651252],
    [1.4731685273087813, -1.501200308186481, 0.034406381755928805],
    [1.5324367209251675, -1.401767428401689, -0.06253840683270229],
    [1.5638044931814925, -1.302448118234983, -0.16116176820042682],
    [1.569556162454504, -1.2033067378119753, -0.26073185383054637],
    [1.5556779789973347, -1.1044706846560342, -0.3598598721890257],
    [1.5281012793773694, -1.0061474208936882, -0.4561554662858929],
]
AFTER_TEN_WITH_DECAY = [1.359142556453903, -0.42231240669715614, -0.4643868950413147]  # AdamW, weight_decay 0.5


def gradient(p):
    return np.array([1.0, 10.0, 0.1]) * p + 3 * np.cos(3 * p)


def test_ten_steps_follow_the_trace():
    p = np.array([1.0, -2.0, 0.5])
    adam = Adam(p)
    for expected in TRACE:
        adam.step(gradient(p), rate=0.1)
        np.testing.assert_allclose(p, expected, rtol=1e-12)


def test_ten_steps_with_decay_end_at_the_known_place():
    p = np.array([1.0, -2.0, 0.5])
    adam = Adam(p, decay=np.full(3, 0.5))
    for _ in range(10):
        adam.step(gradient(p), rate=0.1)
    np.testing.assert_allclose(p, AFTER_TEN_WITH_DECAY, rtol=1e-12)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
def test_first_step_is_rate_times_sign_whatever_the_gradients_size(size):
    p = np.zeros(2)
    Adam(p).step(np.array([size, -size]), rate=0.05)
    np.testing.assert_allclose(p, [-0.05, 0.05], rtol=1e-4)  # up to epsilon = 1e-8 against 1e-3


def test_under_a_constant_gradient_bias_correction_makes_every_step_the_same():
    p = np.zeros(1)
    adam = Adam(p)
    for n in range(1, 11):
        adam.step(np.array([2.0]), rate=0.1)
        assert p[0] == pytest.approx(-0.1 * n, rel=1e-7)


def test_parameters_are_updated_in_place_and_keep_their_dtype():
    p = np.ones(3, np.float32)
    adam = Adam(p)
    adam.step(np.ones(3, np.float32), rate=0.1)
    assert adam.parameters is p and p.dtype == adam.mean.dtype == adam.square.dtype == np.float32


def test_one_cycle_rises_then_falls_and_stays_positive():
    rates = [learning_rate(0.01, step, 100) for step in range(100)]
    top = int(np.argmax(rates))
    assert 25 <= top <= 35 and rates[top] == pytest.approx(0.01, rel=1e-2)
    assert np.all(np.diff(rates[: top + 1]) > 0) and np.all(np.diff(rates[top:]) < 0) and rates[-1] > 0


def test_constant_rate_is_constant_and_a_single_step_is_possible():
    assert {learning_rate(0.3, step, 7, "constant") for step in range(7)} == {0.3}
    assert all(learning_rate(0.3, 0, 1, schedule) > 0 for schedule in SCHEDULES)


def test_unknown_schedule_is_refused():
    with pytest.raises(UsageError, match="one-cycle, constant, cosine"):
        learning_rate(0.1, 0, 1, "linear")


def test_a_cosine_falls_from_the_peak_to_almost_nothing():
    rates = [learning_rate(0.01, step, 100, "cosine") for step in range(100)]
    assert rates[0] == 0.01 and rates[50] == pytest.approx(0.005) and 0 < rates[-1] < 1e-5
    assert np.all(np.diff(rates) < 0)
