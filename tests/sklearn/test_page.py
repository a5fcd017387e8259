"""docs/scikit-learn.md: its examples hold."""

import doctest
from pathlib import Path

import pytest

pytest.importorskip("sklearn", reason="install scikit-learn: pip install -e '.[test]'")

PAGE = Path(__file__).parents[2] / "docs" / "scikit-learn.md"


@pytest.mark.slow
def test_the_examples_of_the_page_hold():
    results = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert results.failed == 0 and results.attempted > 10
