"""The version of tigra, for setup.py, `tigra --version` and model files."""

__version__ = "0.2.0"
