"""Compile the kernels on the second core while the first tests run: what a test finds in the cache costs it nothing.

Started by conftest.py, and by hand after a change: python -m tests.warm_up
"""

from collections import deque
from types import SimpleNamespace

import numpy as np

import tigra
from tigra.gradcheck.cases import LAYER_CASES
from tigra.gradcheck.checks import check_layer

NETWORKS = (  # in the order of the tests (conftest.py)
    "SC[2, 2]-DP[90]-SC[2, 2]-DP[60]-S[3]-FC[4]",
    "OC[2, 2]-GC[2]-OC[2, 2]-DP[9]-S[1]-FC[4]",
    "C[2]-ST[6]-C[2]-P[2]-FC[4]",
    "HRC[1, 2]-HCN[2]-HRC[2, 2]",
)


def _steps(text, splits):
    return tigra.fit(tigra.build_network(text, (14, 14), 2), splits, epochs=1, batch_size=8)


def main() -> None:
    """One step of every kind of network in float32, as training has it; every gradient in float64."""
    images = np.random.default_rng(0).random((8, 14, 14)).astype(np.float32)
    part = tigra.Split(images, np.arange(8) % 2)
    splits = SimpleNamespace(train=part, valid=part)
    deque(_steps(NETWORKS[0], splits), maxlen=0)
    for name in LAYER_CASES:
        deque(check_layer(name), maxlen=0)
    for text in NETWORKS[1:]:
        deque(_steps(text, splits), maxlen=0)


if __name__ == "__main__":
    main()
