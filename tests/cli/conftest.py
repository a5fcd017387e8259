"""Fixtures: small stand-ins for MNIST and ETH-80, a server that publishes them, and signals that do no harm."""

import signal

import pytest

from tests.datasets.fake_server import archive, server, source  # noqa: F401
from tests.datasets.fake_sources import empty_cache, eth80, mnist  # noqa: F401


@pytest.fixture
def heeds_signals():
    """A signal that a command does not heed fails the test, rather than to end the process of all tests."""

    def unheeded(number, _):
        pytest.fail(f"the command did not heed {signal.Signals(number).name}")

    previous = {number: signal.signal(number, unheeded) for number in (signal.SIGTERM, signal.SIGHUP)}
    previous[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in previous.items():
        signal.signal(number, handler)
