"""Benchmarks as they are where torch is not installed."""

from benchmarks import contenders


def without_torch(monkeypatch):
    monkeypatch.setattr(contenders, "torch_or_none", lambda: None)
    monkeypatch.setattr("benchmarks.bench_network.torch_or_none", lambda: None)
