"""The data that comes with tigra; see README.md in this folder."""
