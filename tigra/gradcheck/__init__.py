"""Gradient checks: comparison of every gradient with finite differences, and the cases to check."""

from tigra.gradcheck.checks import Check, check_gradients, run_checks

__all__ = ["Check", "check_gradients", "run_checks"]
