"""A playground that runs while the tests of this folder do."""

import threading

import pytest

import tigra
from tigra.playground.answers import Answers
from tigra.playground.server import PlaygroundServer


@pytest.fixture(scope="session")
def answers():
    models = {name: tigra.load(name) for name in ("mnist-012", "mnist-012-achiral")}
    return Answers(models, tigra.load("mnist-012-convnet"))


@pytest.fixture(scope="session")
def server(answers):
    with PlaygroundServer(answers) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield running
        running.shutdown()
        thread.join()
