"""Estimators for scikit-learn, which must be installed: `pip install "tigra[sklearn]"`.

    TIGraNetClassifier    a network that is trained and classifies
    TIGraNetFeatures      the invariant features of a trained network
    ScatteringFeatures    the features of DeepScat, without training

`import tigra` does not import this package. docs/scikit-learn.md has examples.
"""

import importlib.util

if importlib.util.find_spec("sklearn") is None:  # the library; this package has another name
    raise ImportError('tigra.sklearn needs scikit-learn; run: pip install "tigra[sklearn]"')

from tigra.sklearn.estimators import TIGraNetClassifier, TIGraNetFeatures
from tigra.sklearn.scattering import ScatteringFeatures

__all__ = ["ScatteringFeatures", "TIGraNetClassifier", "TIGraNetFeatures"]
