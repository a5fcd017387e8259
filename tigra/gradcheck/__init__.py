"""Every gradient against finite differences: the checks, and the cases they run on."""

from tigra.gradcheck.checks import Check, check_gradients, run_checks

__all__ = ["Check", "check_gradients", "run_checks"]
