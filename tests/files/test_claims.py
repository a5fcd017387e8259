"""Locks of files that several processes change: nobody's change is lost, and no lock is left behind."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tigra.files import temporary
from tigra.files.claims import alone


@pytest.mark.skipif(temporary.fcntl is None, reason="needs locks of files")
def test_changes_of_a_file_that_are_made_alone_are_not_lost(tmp_path):
    path, lock = tmp_path / "count", tmp_path / ".lock"
    path.write_text("0")

    def count(_):
        with alone(lock):
            before = int(path.read_text())
            time.sleep(0.001)
            path.write_text(str(before + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(20)))
    assert path.read_text() == "20" and list(tmp_path.iterdir()) == [path]
