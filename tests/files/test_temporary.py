"""Temporary files: those of killed processes are removed by the next one, those of others are left alone."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tigra.files import atomic, temporary
from tigra.files.temporary import remove_leftovers, temporary_file, temporary_folder

HOLD = """
import runpy, sys, time
made = runpy.run_path(sys.argv[1])  # not the package, which takes a second to import
with made["temporary_file"](sys.argv[2], ".tigra-"), made["temporary_folder"](sys.argv[2], ".tigra-"):
    print("here", flush=True)
    time.sleep(600)
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.skipif(temporary.fcntl is None, reason="needs locks of files")
def test_what_a_killed_process_leaves_goes_when_it_is_dead(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, temporary.__file__, tmp_path], stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        held = names(tmp_path)
        remove_leftovers(tmp_path, ".tigra-")
        assert len(held) == 2 and names(tmp_path) == held
        process.send_signal(signal.SIGKILL)
    assert names(tmp_path) == held
    atomic.write_atomically(tmp_path / "model", b"content")
    assert names(tmp_path) == ["model"]


def test_only_our_own_names_are_touched(tmp_path):
    ours = [".tigra-abcd_123", ".tigra-00000000"]
    others = [".tigra-notes", ".tigra-A1234567", ".tigra-abcd_1234", "x.tigra-abcd_123", ".tigra-linklink", "target"]
    for name in ours + others:
        (tmp_path / name).touch() if name != ".tigra-linklink" else (tmp_path / name).symlink_to("target")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / ".tigra-pipepipe")
        others.append(".tigra-pipepipe")
    remove_leftovers(tmp_path, ".tigra-")
    assert names(tmp_path) == sorted(others)
    remove_leftovers(tmp_path / "missing", ".tigra-")  # nothing to do


def test_age_decides_where_there_are_no_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(temporary, "try_lock", lambda descriptor: None)
    for name, age in ((".tigra-old_old_", 2 * temporary.ABANDONED), (".tigra-new_new_", 60)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    remove_leftovers(tmp_path, ".tigra-")
    assert names(tmp_path) == [".tigra-new_new_"]
    with temporary_file(tmp_path, ".tigra-") as (file, path), temporary_folder(tmp_path, ".tigra-") as folder:
        assert path.is_file() and folder.is_dir() and not file.closed
    assert names(tmp_path) == [".tigra-new_new_"]


@pytest.mark.parametrize("make", [temporary_file, temporary_folder])
def test_what_is_taken_away_before_it_is_locked_is_made_again(tmp_path, monkeypatch, make):
    lock, tries = temporary.try_lock, []

    def late(descriptor):
        tries.append(descriptor)
        if len(tries) == 1:
            remove_leftovers(tmp_path, ".tigra-")  # another process, in just this moment
        return lock(descriptor)

    monkeypatch.setattr(temporary, "try_lock", late)
    with make(tmp_path, ".tigra-") as made:
        assert (made[1] if make is temporary_file else made).exists() and len(tries) >= 3
    assert names(tmp_path) == []
    monkeypatch.setattr(temporary, "try_lock", lambda descriptor: False)
    with pytest.raises(OSError, match="as soon as they are made"), make(tmp_path, ".tigra-"):
        pass


def test_processes_that_save_and_remove_at_once_lose_nothing(tmp_path, monkeypatch):
    """Threads stand for them."""

    def save(number):
        atomic._swept.discard(tmp_path)
        atomic.write_atomically(tmp_path / str(number % 3), b"%d" % number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(save, range(60)))
    assert names(tmp_path) == ["0", "1", "2"]
