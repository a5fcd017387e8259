"""Packaging. `cli/` installs as tigra_cli and `data/` as tigra_data, so that site-packages gets no
packages called cli and data."""

import re
import subprocess
import sys
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent
VERSION = re.search(r'__version__ = "(.+?)"', (HERE / "tigra" / "version.py").read_text()).group(1)

commands = {}
if "develop" in sys.argv:  # how the pip of Python 3.10 installs with -e; it would not find cli/ and data/
    from setuptools.command.develop import develop

    class Develop(develop):
        """Install by the newer standard instead, as setuptools 80 does by itself."""

        def run(self):
            pip = [sys.executable, "-m", "pip", "install", "--use-pep517", "--no-deps", "-e", str(HERE)]
            subprocess.check_call(pip)

    commands["develop"] = Develop



def _renamed(folder: str) -> list[str]:
    """Packages of a folder that installs under another name, tigra_<folder>."""
    return [f"tigra_{folder}", *(f"tigra_{folder}.{name}" for name in find_packages(str(HERE / folder)))]


setup(
    cmdclass=commands,
    name="tigra",
    version=VERSION,
    description="TIGraNet, the isometric transformation invariant graph-based network, from scratch on NumPy",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    python_requires=">=3.10",
    packages=[*find_packages(include=["tigra", "tigra.*"]), *_renamed("cli"), *_renamed("data")],
    package_dir={"tigra_cli": "cli", "tigra_data": "data"},
    package_data={"tigra_data": ["*.npz", "README.md"]},
    install_requires=[
        "numpy>=1.26",
        "scipy>=1.13",
        "numba>=0.60",
        "pillow>=10.3",
        "click>=8.2",
        "pooch>=1.8",  # downloads MNIST and ETH-80, checks their SHA-256, knows the platform's cache folder
        "threadpoolctl>=3.1",  # holds BLAS to one thread, so that results do not depend on threads
    ],
    extras_require={"test": ["pytest>=7"], "figures": ["matplotlib>=3.7"]},
    entry_points={"console_scripts": ["tigra = tigra_cli.main:main"]},
    classifiers=["License :: OSI Approved :: MIT License", "Programming Language :: Python :: 3"],
)
