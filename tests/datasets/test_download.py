"""Downloads from a server on loopback that answers 404, lies, cuts, stalls, floods, drips, and behaves."""

import gzip
import hashlib
import os
import socket
import time

import pytest

from tests.datasets.fake_sources import packed, write_tar
from tigra.datasets import download, sources
from tigra.datasets.archives import Limits
from tigra.datasets.download import fetch
from tigra.datasets.sources import SOURCES, check, find, load_mnist
from tigra.errors import DatasetError, UsageError
from tigra.files.temporary import ABANDONED

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("empty_cache")]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "new" / "mnist"


# --- it works -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("manner", ["good", "drip", "moved"])
def test_files_arrive_whole(server, source, folder, mnist, manner, capfd):
    paths = fetch(source(manner), folder=folder)
    assert paths == [folder / file.name for file in SOURCES["mnist"].files]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == packed(mnist)
    assert all(path.stat().st_mode & 0o444 == 0o444 for path in paths), "others may read them"
    assert len(load_mnist(folder)["train"][0]) == 40
    assert capfd.readouterr() == ("", ""), "pooch is quiet"


def test_the_cache_is_where_files_go_by_default(source, empty_cache):
    assert fetch(source("good"))[0].parent == empty_cache / "mnist"
    assert find("mnist").origin == "cache"


def test_mirrors_are_tried_in_order_until_one_behaves(server, source, folder):
    manners = ["missing", "wrong", "cut", "stall", "endless", "drip", "good"]
    fetch(source(*manners), folder=folder, timeout=0.1)
    per_file = [manner for manner, name in server.requests if name == "train-images-idx3-ubyte.gz"]
    assert per_file == manners[:-1], "once a mirror has given the file, no other is asked"
    assert sorted(path.name for path in folder.iterdir()) == sorted(server.files)


def test_a_mirror_of_ones_own_comes_first(server, source, folder):
    fetch(source("wrong"), mirror=f"{server.url}/good/deep/", folder=folder)
    assert {manner for manner, _ in server.requests} == {"good"}
    assert fetch(source("good"), mirror=f"{server.url}/missing", folder=folder.with_name("other"))


def test_progress_is_reported(source, archive, folder):
    seen = []
    fetch(source("drip"), folder=folder, on_progress=lambda *report: seen.append(report))
    totals = {file.name: file.size for file in source().files}
    assert {name for name, _, _ in seen} == set(totals)
    for name, total in totals.items():
        done = [done for file, done, _ in seen if file == name]
        assert done == sorted(done) and done[-1] == total and {t for file, _, t in seen if file == name} == {total}
    fetch(archive("good"), folder=folder, on_progress=lambda *report: seen.append(report))
    assert seen[-1][1] == seen[-1][2] == len((folder / seen[-1][0]).read_bytes()), "the total that the server announced"


def test_files_that_are_there_and_right_are_left_alone(server, source, folder, mnist):
    fetch(source("good"), folder=folder)
    server.requests.clear()
    repacked = gzip.compress(mnist["t10k-labels-idx1-ubyte"], 1, mtime=5)
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(repacked)
    (folder / "t10k-images-idx3-ubyte.gz").write_bytes(b"damaged")
    (folder / "train-labels-idx1-ubyte.gz").unlink()
    fetch(source("good"), folder=folder)
    names = ["train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz"]
    assert server.requests == [("good", name) for name in names]
    assert (folder / "t10k-labels-idx1-ubyte.gz").read_bytes() == repacked
    assert len(load_mnist(folder)["test"][0]) == 20


# --- it fails, and says why ---------------------------------------------------------------------------

FAILURES = {
    "missing": "the server answers 404 Not Found",
    "wrong": "wrong SHA-256",
    "short": "bytes instead of",
    "page": "56 bytes instead of",
    "cut": "the connection was cut",
    "cut_unseen": "bytes instead of",
    "hang_up": "the connection was cut",
    "stall": "the server sends nothing",
    "silent": "the server sends nothing",
    "endless": "got more than .* bytes",
    "circle": "an answer without sense",
    "nonsense": "an answer without sense",
}


@pytest.mark.parametrize("manner", FAILURES)
def test_each_failure_alone_has_its_reason_and_leaves_nothing(server, source, folder, manner):
    with pytest.raises(DatasetError, match=FAILURES[manner]) as caught:
        fetch(source(manner), folder=folder, timeout=0.1)
    message = str(caught.value)
    assert message.startswith(f"Could not get train-images-idx3-ubyte.gz ({server.url}/{manner}/train-images")
    assert message.endswith(f"put it into {folder}.")
    assert not folder.exists()


@pytest.mark.parametrize("manner", [manner for manner in FAILURES if manner not in ("missing", "silent", "nonsense")])
def test_each_failure_alone_where_no_sum_is_published(archive, folder, manner, monkeypatch):
    monkeypatch.setattr(download, "Limits", lambda: Limits(total=200_000))
    with pytest.raises(DatasetError, match="Could not get eth80-cropped-close128.tgz"):
        fetch(archive(manner), folder=folder, timeout=0.1)
    assert not folder.exists()


def test_all_mirrors_are_named_when_all_fail(server, source, folder):
    manners = ["missing", "wrong", "cut"]
    with pytest.raises(DatasetError) as caught:
        fetch(source(*manners), folder=folder)
    for manner in manners:
        assert f"{server.url}/{manner}/train-images-idx3-ubyte.gz: " in str(caught.value)
    assert [manner for manner, _ in server.requests] == manners, "no other file is asked for"


def test_no_connection(server, source, folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(DatasetError, match="no connection"):
            fetch(source(), mirror=f"http://127.0.0.1:{port}/", folder=folder)
    assert not folder.exists()


def test_an_endless_file_is_cut_off(server, source, archive, folder, monkeypatch):
    with pytest.raises(DatasetError, match=f"more than {source().files[0].size} bytes"):
        fetch(source("endless"), folder=folder)
    monkeypatch.setattr(download, "Limits", lambda: Limits(total=200_000))
    with pytest.raises(DatasetError, match="more than 200000 bytes"):
        fetch(archive("endless"), folder=folder)
    written = []
    monkeypatch.setattr(download._Bounded, "write", _recording(written, download._Bounded.write))
    with pytest.raises(DatasetError):
        fetch(archive("endless"), folder=folder)
    assert sum(written) < 200_000 + (1 << 15)


def _recording(written, write):
    def record(self, piece):
        written.append(len(piece))
        write(self, piece)

    return record


def test_a_damaged_file_stays_until_there_is_a_better_one(source, folder):
    folder.mkdir(parents=True)
    path = folder / "train-images-idx3-ubyte.gz"
    path.write_bytes(b"damaged")
    with pytest.raises(DatasetError):
        fetch(source("cut"), folder=folder)
    assert path.read_bytes() == b"damaged" and list(folder.iterdir()) == [path]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("disk full")])
def test_nothing_half_done_is_left_behind(source, archive, folder, error):
    def stop(name, done, total):
        raise error

    for make in (source, archive):
        with pytest.raises(error if isinstance(error, type) else type(error)):
            fetch(make("drip"), folder=folder, on_progress=stop)
        assert not folder.exists()


def test_nothing_half_done_is_left_behind_at_the_last_moment(archive, folder, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(download, "_name", stop)
        fetch(archive("good"), folder=folder)
    assert not folder.exists()
    folder.mkdir(parents=True)
    (folder / "eth80-cropped-close128.tgz.sha256").write_text("that of another file")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(download, "replace_file", stop)
        fetch(archive("good"), folder=folder)
    [path] = folder.iterdir()
    assert check(path) == "all pictures open, no SHA-256 to compare with"


def test_what_killed_downloads_left_is_removed_by_the_next_one(source, folder):
    folder.mkdir(parents=True)
    name = source().files[0].name
    left = [".tigra-abcd_123", f"{name}.77.part"]
    others = [f"{name}.78.part", "notes.part", f"{name}.mine.part", ".tigra-notes"]
    for file in left + others:
        (folder / file).write_bytes(b"half")
    os.utime(folder / left[1], (time.time() - 2 * ABANDONED,) * 2)  # the other one may still be in use
    os.utime(folder / others[1], (time.time() - 2 * ABANDONED,) * 2)
    paths = fetch(source("good"), folder=folder)
    assert {path.name for path in folder.iterdir()} == {*others, *(path.name for path in paths)}


def test_wrong_usage(source, folder):
    for mirror in ("ftp://server/", "server/folder", "file:///etc/", ""):
        with pytest.raises(UsageError, match="begins with http:// or https://"):
            fetch(source("good"), mirror=mirror, folder=folder)
    with pytest.raises(UsageError, match="eth80 has no file 'eth80.tgz'; choose from eth80-cropped-close128.tgz, "):
        fetch("eth80", files=["eth80.tgz"], folder=folder)
    with pytest.raises(DatasetError, match="no server is known, give one with --mirror"):
        fetch("eth80", files=["eth80-cropped64.tgz"], folder=folder)
    with pytest.raises(UsageError, match="no source of data"):
        fetch("cifar")
    assert not folder.exists()


# --- where no sum is published ------------------------------------------------------------------------


def test_an_archive_without_a_published_sum_is_checked_and_its_sum_kept(server, archive, folder, eth80):
    [path] = fetch(archive("page", "good"), folder=folder)
    kept = folder / "eth80-cropped-close128.tgz.sha256"
    total = hashlib.sha256(path.read_bytes()).hexdigest()
    assert kept.read_text() == f"{total}  {path.name}\n" and set(folder.iterdir()) == {path, kept}
    assert check(path) == "all pictures open, SHA-256 as when fetched"
    server.requests.clear()
    fetch(archive("good"), folder=folder)
    assert server.requests == []
    path.write_bytes(b"damaged")
    fetch(archive("good"), folder=folder)
    assert len(server.requests) == 1 and check(path).endswith("as when fetched")


def test_an_incomplete_archive_does_not_get_its_name(server, archive, folder, eth80, tmp_path):
    del eth80["dog5/dog5-000-000.png"]
    server.files["eth80-cropped-close128.tgz"] = write_tar(tmp_path / "made.tgz", eth80).read_bytes()
    with pytest.raises(
        DatasetError, match="close128.tgz: eth80-cropped-close128.tgz is not all .*2 of 3 views of dog5"
    ):
        fetch(archive("good"), folder=folder)
    eth80["dog5/dog5-000-000.png"] = b"no picture"
    server.files["eth80-cropped-close128.tgz"] = write_tar(tmp_path / "made.tgz", eth80).read_bytes()
    with pytest.raises(DatasetError, match="dog5-000-000.png cannot be opened"):
        fetch(archive("good"), folder=folder)
    assert not folder.exists()


def test_what_is_fetched_by_default():
    assert [file.name for file in download._chosen(SOURCES["eth80"], None)] == ["eth80-cropped-close128.tgz"]
    assert download._chosen(SOURCES["mnist"], ()) == SOURCES["mnist"].files
    [file] = download._chosen(SOURCES["eth80"], ["eth80-cropped256.tgz"])
    assert file.mirrors == ("http://datasets.d2.mpi-inf.mpg.de/eth80/",)


def test_the_published_values():
    assert {name: len(file.sha256) for name, file in ((f.name, f) for f in SOURCES["mnist"].files)} == {
        f"{name}.gz": 64 for name in sources.MNIST_SHA256
    }
    assert all(url.endswith("/") for source in SOURCES.values() for file in source.files for url in file.mirrors)
