"""Fixtures: small stand-ins for MNIST and ETH-80, and a server that publishes them."""

from tests.datasets.fake_server import archive, server, source  # noqa: F401
from tests.datasets.fake_sources import empty_cache, eth80, mnist  # noqa: F401
