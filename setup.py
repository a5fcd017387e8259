"""Packaging. `cli/` installs as tigra_cli and `data/` as tigra_data, so that site-packages gets no
packages called cli and data."""

import re
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent
VERSION = re.search(r'__version__ = "(.+?)"', (HERE / "tigra" / "version.py").read_text()).group(1)

setup(
    name="tigra",
    version=VERSION,
    description="TIGraNet, the isometric transformation invariant graph-based network, from scratch on NumPy",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    python_requires=">=3.10",
    packages=["tigra", "tigra.layers", "tigra_cli", "tigra_data"],
    package_dir={"tigra_cli": "cli", "tigra_data": "data"},
    package_data={"tigra_data": ["*.npz", "README.md"]},
    install_requires=[
        "numpy>=1.24",
        "scipy>=1.13",
        "numba>=0.60",
        "pillow>=10",
        "click>=8.1",
        "threadpoolctl>=3.1",  # holds BLAS to one thread, so that results do not depend on threads
    ],
    extras_require={"test": ["pytest>=7"], "figures": ["matplotlib>=3.7"]},
    entry_points={"console_scripts": ["tigra = tigra_cli.main:main"]},
    classifiers=["License :: OSI Approved :: MIT License", "Programming Language :: Python :: 3"],
)
