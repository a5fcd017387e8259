"""The raw data sets: where they are found, that they are read right, and that damage is named."""

import gzip
import hashlib
import os
import random
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.datasets.fake_sources import (
    ALL_VIEWS,
    NUMBERS,
    VIEWS,
    fake_eth80,
    idx_bytes,
    packed,
    write_folder,
    write_tar,
)
from tigra.datasets import sources
from tigra.datasets.sources import (
    check,
    eth80_pictures,
    find,
    load_mnist,
    missing,
    source_named,
    verify,
)
from tigra.errors import DatasetError, UsageError
from tigra.files.cache import cache_folder

pytestmark = pytest.mark.usefixtures("empty_cache")

# --- where things are found ---------------------------------------------------------------------------


@pytest.mark.parametrize("inside", ["mnist", ".", "MNIST/raw"])
@pytest.mark.parametrize("pack", [packed, dict])
def test_mnist_is_found_in_each_layout(tmp_path, mnist, inside, pack):
    folder = write_folder(tmp_path / "data" / inside, pack(mnist))
    found = find("mnist", tmp_path / "data")
    assert {path.name for path in found.paths} == set(pack(mnist)) and found.origin == "--data-dir"
    assert {path.parent.resolve() for path in found.paths} == {folder.resolve()}
    assert found.n_bytes == sum(len(content) for content in pack(mnist).values())
    assert load_mnist(tmp_path / "data")["test"][0].shape == (20, 28, 28)


def test_the_places_are_searched_in_order(tmp_path, mnist, empty_cache, monkeypatch):
    assert find("mnist") is None and find("mnist-rot") is None
    write_folder(empty_cache / "mnist", packed(mnist))
    assert find("mnist-rot").origin == "cache"
    write_folder(tmp_path / "env", packed(mnist))
    monkeypatch.setenv("TIGRA_DATA", str(tmp_path / "env"))
    assert find("mnist").origin == "$TIGRA_DATA" and find("mnist").paths[0].parent == tmp_path / "env"
    write_folder(tmp_path / "named", packed(mnist))
    assert find("mnist", str(tmp_path / "named")).origin == "--data-dir"
    (tmp_path / "named" / "t10k-labels-idx1-ubyte.gz").unlink()
    assert find("mnist", tmp_path / "named").origin == "$TIGRA_DATA", "three files of four are not MNIST"


def test_a_place_that_is_no_folder_is_named(tmp_path, mnist, monkeypatch):
    with pytest.raises(DatasetError, match=r"nowhere \(--data-dir\) is not a folder"):
        find("mnist", tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TIGRA_DATA", str(tmp_path / "file"))
    with pytest.raises(DatasetError, match=r"file \(\$TIGRA_DATA\) is not a folder"):
        find("eth80")
    monkeypatch.setenv("TIGRA_DATA", "")
    monkeypatch.chdir(write_folder(tmp_path / "here", packed(mnist)))
    assert find("mnist") is None, "an empty variable is as good as none"


def test_the_cache_folder_is_the_platforms_unless_named(tmp_path, monkeypatch):
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.setenv("TIGRA_CACHE", "~/there")
    assert cache_folder() == Path.home() / "there"
    monkeypatch.delenv("TIGRA_CACHE")
    assert "tigra" in str(cache_folder())


def test_what_is_missing_is_told_with_what_to_do(tmp_path, mnist, empty_cache, monkeypatch):
    with pytest.raises(DatasetError) as caught:
        load_mnist()
    message = str(caught.value)
    assert f"looked in {empty_cache} (cache)" in message and "'tigra data fetch mnist'" in message
    assert all(f"{name}.gz" in message for name in mnist) and message.endswith(f"into {empty_cache / 'mnist'}.")
    monkeypatch.setenv("TIGRA_DATA", str(tmp_path))
    message = str(missing("eth-80", tmp_path))
    assert f"{tmp_path} (--data-dir), {tmp_path} ($TIGRA_DATA), " in message
    assert message.endswith(f"or eth80-cropped64.tgz into {tmp_path / 'eth80'}.") and "fetch eth80" in message
    with pytest.raises(DatasetError, match="fetch eth80"):
        eth80_pictures()


def test_unknown_sources_are_refused():
    with pytest.raises(UsageError, match="no source of data 'cifar'; choose one of mnist, eth80"):
        source_named("cifar")


# --- MNIST --------------------------------------------------------------------------------------------


def test_mnist_arrays(tmp_path, mnist):
    parts = load_mnist(write_folder(tmp_path / "data", packed(mnist)))
    assert list(parts) == ["train", "test"]
    for (images, labels), prefix, n in zip(parts.values(), ("train", "t10k"), (40, 20), strict=True):
        assert images.shape == (n, 28, 28) and images.dtype == labels.dtype == np.uint8 and labels.shape == (n,)
        assert images.tobytes() == mnist[f"{prefix}-images-idx3-ubyte"][16:]
        assert labels.tobytes() == mnist[f"{prefix}-labels-idx1-ubyte"][8:]


def test_a_changed_file_is_refused_and_told(tmp_path, mnist):
    changed = packed(mnist) | {"t10k-labels-idx1-ubyte.gz": gzip.compress(mnist["t10k-labels-idx1-ubyte"] + b"\0")}
    folder = write_folder(tmp_path / "data", changed)
    with pytest.raises(DatasetError, match="is not MNIST's t10k-labels-idx1-ubyte: SHA-256 .* expected, .* found"):
        load_mnist(folder)
    states = {Path(file).name: state for file, state, _ in verify("mnist", folder)}
    assert states.pop("t10k-labels-idx1-ubyte.gz") == "damaged" and set(states.values()) == {"ok"}
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(changed["train-labels-idx1-ubyte.gz"][:-3])
    with pytest.raises(DatasetError, match="damaged, cut short"):
        load_mnist(folder)


def test_a_bomb_in_place_of_mnist_is_refused(tmp_path, mnist, monkeypatch):
    monkeypatch.setattr(sources, "LARGEST_IDX", 50_000)
    bomb = {"train-images-idx3-ubyte.gz": gzip.compress(bytes(1 << 20))}
    with pytest.raises(DatasetError, match="more than the 50000 bytes expected"):
        load_mnist(write_folder(tmp_path / "data", packed(mnist) | bomb))


IMAGES, LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
PIXELS, DIGITS = np.zeros((20, 28, 28), np.uint8), np.zeros(20, np.uint8)


@pytest.mark.parametrize(
    "name, content",
    [
        (IMAGES, b""),
        (IMAGES, idx_bytes(PIXELS)[:12]),
        (IMAGES, idx_bytes(PIXELS)[:16]),
        (IMAGES, idx_bytes(PIXELS)[:-1]),
        (IMAGES, idx_bytes(PIXELS) + b"\0"),
        (IMAGES, b"\1" + idx_bytes(PIXELS)[1:]),
        (IMAGES, idx_bytes(PIXELS)[:2] + b"\x09" + idx_bytes(PIXELS)[3:]),
        (IMAGES, idx_bytes(PIXELS.reshape(20, 784))),
        (IMAGES, idx_bytes(PIXELS.reshape(20, 14, 56))),
        (IMAGES, bytes([0, 0, 8, 3]) + struct.pack(">3I", 2**32 - 1, 2**32 - 1, 2**32 - 1) + b"x"),
        (IMAGES, idx_bytes(PIXELS[:0])),
        (LABELS, idx_bytes(DIGITS[:0])),
        (LABELS, idx_bytes(DIGITS + 10)),
        (LABELS, idx_bytes(DIGITS)[:-1]),
        (LABELS, idx_bytes(PIXELS)),
    ],
)
def test_idx_files_are_read_strictly(tmp_path, mnist, name, content):
    sources.MNIST_SHA256[name] = hashlib.sha256(content).hexdigest()
    with pytest.raises(DatasetError, match=f"{name} is not an idx file of (28x28 images|labels from 0 to 9); run"):
        load_mnist(write_folder(tmp_path / "data", mnist | {name: content}))


def test_as_many_labels_as_images(tmp_path, mnist):
    mnist[LABELS] = idx_bytes(DIGITS[:19])
    sources.MNIST_SHA256[LABELS] = hashlib.sha256(mnist[LABELS]).hexdigest()
    with pytest.raises(DatasetError, match="20 test images but 19 labels"):
        load_mnist(write_folder(tmp_path / "data", mnist))


# --- ETH-80 -------------------------------------------------------------------------------------------


def expected_order(eth80, views=VIEWS):
    return [
        (kind, f"{kind}{number}", view, eth80[f"{kind}{number}/{kind}{number}-{view}.png"])
        for kind in sorted(NUMBERS)
        for number in NUMBERS[kind]
        for view in views
    ]


def with_maps(eth80):
    """As published: a folder `maps` for each object, and some files that are no pictures."""
    maps = {name.replace("/", "/maps/").replace(".png", "-map.png"): b"map" for name in list(eth80)[::3]}
    return (
        eth80 | maps | {"README": b"read me", "apple1/._apple1-000-000.png": b"", "apple1/apple1-000-000-map.png": b""}
    )


def shuffled(eth80):
    names = list(eth80)
    random.Random(0).shuffle(names)
    return {name: eth80[name] for name in names}


def as_zip(path, files):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


WRITERS = {
    "tgz": lambda root, files: write_tar(root / "eth80" / "eth80-cropped256.tgz", files),
    "tgz, folder inside": lambda root, files: write_tar(root / "eth80-cropped-close128.tgz", files, prefix="eth80/x/"),
    "tar.gz, shuffled": lambda root, files: write_tar(root / "eth80-cropped64.tar.gz", shuffled(files)),
    "tar": lambda root, files: write_tar(root / "eth80" / "eth80-cropped64.tar", files, "w"),
    "zip, shuffled": lambda root, files: as_zip(root / "eth80-cropped-close128.zip", shuffled(files)),
    "folder": write_folder,
    "folder eth80": lambda root, files: write_folder(root / "eth80", files),
    "folder by archive": lambda root, files: write_folder(root / "eth80-cropped256", files),
    "folder in folder": lambda root, files: write_folder(root / "eth80" / "eth80-cropped-close128", files),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", WRITERS)
def test_pictures_come_in_one_order_from_everywhere(tmp_path, eth80, how):
    root = tmp_path / "data"
    root.mkdir()
    WRITERS[how](root, with_maps(eth80))
    assert list(eth80_pictures(root)) == expected_order(eth80)
    found = find("eth-80", root)
    assert len(found.paths) == 1 and found.n_bytes > 240 * 50


@pytest.mark.slow
def test_an_eth80_of_full_size(tmp_path):
    files = fake_eth80(ALL_VIEWS)
    write_tar(tmp_path / "eth80-cropped-close128.tgz", files)
    assert list(eth80_pictures(tmp_path)) == expected_order(files, ALL_VIEWS) and len(files) == 3280


def test_an_archive_is_checked_before_the_first_picture(tmp_path, eth80):
    files = {name: content for name, content in eth80.items() if name != "tomato10/tomato10-000-000.png"}
    write_tar(tmp_path / "eth80-cropped64.tgz", files)
    with pytest.raises(
        DatasetError, match=r"not all of ETH-80: it has 2 of 3 views of tomato10 \(no 000-000\)\. Download"
    ):
        next(eth80_pictures(tmp_path))


def test_incomplete_sets_are_named(tmp_path, eth80):
    def fault(keep):
        files = {name: content for name, content in eth80.items() if keep(name)}
        with pytest.raises(DatasetError) as caught:
            list(eth80_pictures(write_tar(tmp_path / "eth80-cropped64.tar", files, "w").parent))
        return str(caught.value)

    assert "it has 9 of 10 objects of car." in fault(lambda name: not name.startswith("car14/"))
    assert "0 of 10 objects of apple" in fault(lambda name: not name.startswith("apple"))
    assert "and 75 more" in fault(lambda name: "-000-000" not in name)
    assert "0 of 10 objects of apple, 0 of 10 objects of car" in fault(lambda name: False)


def test_too_much_is_refused_too(tmp_path, eth80):
    extra = {name.replace("apple1", "apple11"): content for name, content in eth80.items() if "apple1/" in name}
    write_tar(tmp_path / "eth80-cropped64.tar", eth80 | extra, "w")
    with pytest.raises(DatasetError, match="11 of 10 objects of apple"):
        list(eth80_pictures(tmp_path))
    write_tar(tmp_path / "eth80-cropped64.tar", eth80 | {"again/apple1/apple1-000-000.png": b""}, "w")
    with pytest.raises(DatasetError, match="has the picture apple1-000-000.png twice"):
        list(eth80_pictures(tmp_path))


def test_an_incomplete_folder_is_found_and_named(tmp_path, eth80):
    write_folder(tmp_path, {name: content for name, content in eth80.items() if name.startswith("tomato")})
    with pytest.raises(DatasetError, match="0 of 10 objects of apple"):
        list(eth80_pictures(tmp_path))


# --- verifying ----------------------------------------------------------------------------------------


def test_every_picture_must_open(tmp_path, eth80):
    path = write_tar(tmp_path / "eth80-cropped64.tar", eth80, "w")
    assert verify("eth80", tmp_path) == [(str(path), "ok", "all pictures open, no SHA-256 to compare with")]
    write_tar(path, eth80 | {"cow3/cow3-000-025.png": b"no picture"}, "w")
    [(file, state, detail)] = verify("eth80", tmp_path)
    assert (file, state) == (str(path), "damaged") and "cow3-000-025.png cannot be opened" in detail


def test_the_sum_kept_beside_an_archive_tells_damage(tmp_path, eth80):
    path = write_tar(tmp_path / "eth80-cropped64.tar", eth80, "w")
    kept = tmp_path / "eth80-cropped64.tar.sha256"
    kept.write_text(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
    assert check(path) == "all pictures open, SHA-256 as when fetched"
    with open(path, "ab") as file:
        file.write(b"\0" * 512)  # harmless as it is, the archive is not the one that was fetched
    with pytest.raises(DatasetError, match="has changed since it was fetched"):
        check(path)
    kept.write_bytes(b"\xff\xfe")
    assert verify("eth80", tmp_path)[0][1] == "damaged"


def test_what_is_absent_is_so_called():
    assert verify("mnist") == [("mnist", "absent", "not found")]


# --- the real ones ------------------------------------------------------------------------------------

REAL = os.environ.get("TIGRA_DATA")
needs_real_data = pytest.mark.skipif(not REAL, reason="set TIGRA_DATA to a folder with MNIST and ETH-80")


@needs_real_data
def test_the_real_mnist():
    parts = load_mnist(REAL)
    assert parts["train"][0].shape == (60000, 28, 28) and parts["test"][0].shape == (10000, 28, 28)
    assert parts["train"][1][:5].tolist() == [5, 0, 4, 1, 9]


@needs_real_data
def test_the_real_eth80():
    keys = [picture[:3] for picture in eth80_pictures(REAL)]
    assert len(set(keys)) == 3280 and keys[0] == ("apple", "apple1", "000-000")
    cars = list(dict.fromkeys(name for kind, name, _ in keys if kind == "car"))
    assert cars == [f"car{number}" for number in NUMBERS["car"]]
    assert {state for _, state, _ in verify("eth80", REAL)} == {"ok"}


def test_a_pipe_in_an_unpacked_folder_does_not_hang(tmp_path, eth80):
    write_folder(tmp_path / "eth80", eth80)
    victim = sorted((tmp_path / "eth80" / "cow3").iterdir())[0]
    victim.unlink()
    os.mkfifo(victim)
    with pytest.raises(DatasetError):
        list(eth80_pictures(tmp_path))
