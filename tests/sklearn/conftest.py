"""Fixtures of the tests with scikit-learn."""

import pytest


@pytest.fixture(scope="session")
def digits():
    """60 digits 0, 1 and 2 of 8x8 pixels from 0 to 16, as rows, and their labels."""
    from sklearn.datasets import load_digits

    X, y = load_digits(n_class=3, return_X_y=True)
    return X[:60], y[:60]
