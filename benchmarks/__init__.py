"""Experiments that take longer than a test may; see README.md in this folder."""
