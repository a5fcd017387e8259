"""A short pass of the attack on caches; and the attack finds what is broken."""

import itertools
import time

import pytest

from benchmarks.attack import caches
from benchmarks.attack.cache_kinds import Features, Pictures
from tigra.baselines.deepscat.feature_cache import FeatureCache
from tigra.files import checked_json
from tigra.images.stored_pixels import StoredPixels

N_TRIES = 40


@pytest.mark.slow
def test_a_short_pass_is_survived():
    outcome = caches.attack(0.3, 0, lambda *call: None)
    assert outcome.tried == outcome.survived > 0, outcome.failures


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, where, name, spoilt",
    [
        (Pictures, StoredPixels, "_read", lambda self, rows: self.mapped[rows]),
        (Pictures, checked_json, "_checksum", lambda body, label: b"0" * 64),
        (Features, FeatureCache, "_checksum", lambda self, key, row: 0),
    ],
)
def test_what_is_not_checked_is_found_out(monkeypatch, kind, where, name, spoilt):
    monkeypatch.setattr(caches, "SHARES", {kind: 1.0})
    monkeypatch.setattr(where, name, spoilt)
    monkeypatch.setattr(time, "monotonic", itertools.count().__next__)  # a second for each try
    outcome = caches.attack(N_TRIES, 0, lambda *call: None)
    assert outcome.failures and all(kind.__name__ in line for line in outcome.failures)
