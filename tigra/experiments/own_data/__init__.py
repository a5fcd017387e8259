"""Experiments with pictures of your own."""
