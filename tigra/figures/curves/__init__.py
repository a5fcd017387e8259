"""Curves of experiments: the gap over the resolution, the accuracy over the training rotations."""
