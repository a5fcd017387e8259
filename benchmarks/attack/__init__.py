"""Attacks on tigra: damaged files and caches, random kills, resource limits; see docs/reliability.md."""
