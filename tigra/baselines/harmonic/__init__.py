"""Layers of a harmonic network: complex maps of rotation orders 0 and 1."""
