"""Curves of experiments: gap against resolution, and accuracy against training rotations."""
