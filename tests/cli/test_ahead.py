"""A helper compiles what a training needs later: the right kernels for the right types, and nothing is left behind."""

import os
import pickle
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from tigra_cli.shared import ahead

import tigra
from tigra.experiments.runs import NetworkRun
from tigra.options import FitOptions
from tigra.processes.team import Team

ARCHITECTURE = "OC[2, 2]-GC[2]-OC[2, 2]-S[1]-FC[4]"
TRAINING = f"""
from types import SimpleNamespace
import numpy as np, tigra
from numba.core import event
from tigra.options import FitOptions
from tigra.training import Training

network = tigra.build_network({ARCHITECTURE!r}, (12, 12), 2, batch_norm=True, diffusion=1)
part = tigra.Split(np.zeros((6, 12, 12)), np.arange(6) % 2)
training = Training(network, SimpleNamespace(train=part, valid=part), FitOptions(epochs=1, batch_size=6, jitter=0.5))
"""
SENDING = "import pickle, sys; sys.stdout.buffer.write(pickle.dumps((network, training.options, 6, part.images[0])))"
COMPILED = """
class Names(event.Listener):
    def on_start(self, event):
        print(event.data["dispatcher"].__name__, event.data["args"])

    def on_end(self, event):
        pass

with event.install_listener("numba:compile", Names()):
    for _ in training.run():
        pass
"""


class Sleep:
    """Unpickling it takes a minute."""

    def __reduce__(self):
        return time.sleep, (60,)


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout


@pytest.mark.slow
def test_after_the_helper_a_training_compiles_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with ahead.Helper(()) as helper:
        helper.content = python(TRAINING + SENDING)
        helper.start()
        assert helper.process.wait(300) == 0
    assert python(TRAINING + COMPILED) == b""


@pytest.fixture
def started(monkeypatch):
    """What `Helper.start` was called for."""
    jobs = []
    monkeypatch.setattr(ahead.Helper, "start", lambda self: jobs.append(pickle.loads(self.content)))
    monkeypatch.setattr(Team, "cores", 2)
    return jobs


@pytest.fixture(scope="module")
def run():
    network = tigra.build_network(ARCHITECTURE, (12, 12), 2)
    training = SimpleNamespace(
        network=network,
        options=FitOptions(epochs=1, batch_size=6),
        train=(SimpleNamespace(images=np.zeros((4, 12, 12))), np.zeros(4)),
        is_finished=False,
    )
    run = NetworkRun.__new__(NetworkRun)
    run.training = training
    return run


def miss_a_kernel():
    from tigra.kernels.decorator import kernel

    kernel(lambda x: x)(1)  # a function without a file of its own is never in the cache, but is looked for
    from tigra.kernels.compiling import cache

    while cache._when_missing:
        cache._when_missing.pop()()


def test_the_first_missing_kernel_starts_the_helper_once(started, run):
    with ahead.compiling_ahead(run, 2, (), Team()):
        assert started == []
        miss_a_kernel()
        miss_a_kernel()
    ((network, options, n_images, image),) = started
    assert network.options == run.training.network.options and options == run.training.options
    assert n_images == 4 and image.shape == (12, 12)


def test_without_a_missing_kernel_there_is_no_helper(started, run):
    with ahead.compiling_ahead(run, 2, (), Team()):
        pass
    miss_a_kernel()
    assert started == []


@pytest.mark.parametrize("why", ["one thread", "one core", "modules", "team", "finished", "other method", "no cache"])
def test_there_is_no_helper_where_none_is_wanted(started, run, why, monkeypatch):
    team, threads, modules = Team(), 1 if why == "one thread" else 2, ("mine",) if why == "modules" else ()
    if why == "one core":
        monkeypatch.setattr(Team, "cores", 1)
    if why == "team":
        monkeypatch.setattr(Team, "size", 2)
    if why == "finished":
        monkeypatch.setattr(run.training, "is_finished", True)
    if why == "no cache":
        monkeypatch.setattr("tigra.kernels.decorator.CheckedCache", None)
    with ahead.compiling_ahead(object() if why == "other method" else run, threads, modules, team):
        miss_a_kernel()
    assert started == []


def is_running(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_helper_ends_with_the_context():
    with ahead.Helper((Sleep(),)) as helper:
        helper.start()
        assert helper.process.poll() is None
    assert helper.process.poll() is not None


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no signals")
def test_the_helper_ends_when_the_command_is_killed():
    code = (
        "import os, signal, tests.cli.test_ahead as here\n"
        "helper = here.ahead.Helper((here.Sleep(),))\n"
        "helper.start()\n"
        "print(helper.process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    number, deadline = int(result.stdout), time.monotonic() + 20
    while is_running(number) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert result.returncode == -signal.SIGKILL and not is_running(number)


def test_a_network_that_cannot_be_pickled_gets_no_helper():
    with ahead.Helper((lambda: 0,)) as helper:
        helper.start()
    assert helper.process is None


def test_without_processes_there_is_no_helper(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with ahead.Helper(("job",)) as helper:
        helper.start()
    assert helper.process is None
