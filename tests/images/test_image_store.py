"""Pictures are decoded once, into a file that is mapped; what is lazy gives the numbers of what is not."""

import io
import os
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from tigra import CacheWarning, DatasetError, ImageError
from tigra.files.temporary import temporary_folder
from tigra.images.pictures import decode_image
from tigra.images.store import (
    BUILDING,
    StoredImages,
    TurnedImages,
    build_store,
    open_store,
    store_key,
    stored_pictures,
)
from tigra.images.transforms import rotate


def png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def pictures(rng):
    return [(f"{n}.png", png(rng.integers(0, 256, (9, 7 + n % 3), dtype=np.uint8))) for n in range(600)]


def build(tmp_path, pictures, key="key", **options):
    return build_store(tmp_path, key, iter(pictures), len(pictures), (8, 8), **options)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
def test_a_store_holds_what_decoding_gives_in_the_order_given(tmp_path, pictures, threads):
    store = build(tmp_path, pictures, threads=threads)
    assert store.names == [name for name, _ in pictures] and store.skipped == []
    images = StoredImages(store.pixels, np.arange(600))
    for row in (0, 255, 256, 599):
        np.testing.assert_array_equal(images[row], decode_image(pictures[row][1], "x", (8, 8)))
    assert isinstance(store.pixels.mapped, np.memmap)


@pytest.mark.slow
def test_what_cannot_be_decoded_is_left_out_and_listed(tmp_path, pictures):
    def gone():
        raise ImageError("Cannot read gone.png: gone.")

    pictures[3:3] = [("note.txt", b"no picture"), ("gone.png", gone)]
    store = build(tmp_path, pictures)
    assert len(store.names) == len(store.pixels) == len(store.digests) == 600
    assert [name for name, _ in store.skipped] == ["note.txt", "gone.png"]
    np.testing.assert_array_equal(store.pixels[3], build(tmp_path, pictures[5:], "other").pixels[0])


@pytest.mark.slow
def test_a_store_is_found_again_and_damage_is_noticed(tmp_path, pictures):
    built = build(tmp_path, pictures)
    again = open_store(tmp_path, "key")
    np.testing.assert_array_equal(again.pixels, built.pixels)
    assert again.digests == built.digests and open_store(tmp_path, "unknown") is None
    folder = tmp_path / "images" / "key"
    for name, content in {
        "pixels.npy": (folder / "pixels.npy").read_bytes()[:-1],
        "index.json": b"{",
    }.items():
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(content)
        assert open_store(tmp_path, "key") is None
        (folder / name).write_bytes(whole)
    (folder / "index.json").write_bytes((folder / "index.json").read_bytes().replace(b'"2.png"', b'"3.png"', 1))
    assert open_store(tmp_path, "key") is None
    build(tmp_path, pictures)  # replaces the damaged one
    assert open_store(tmp_path, "key") is not None


def test_a_build_that_breaks_off_leaves_nothing(tmp_path, pictures):
    def broken():
        yield from pictures[:300]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_store(tmp_path, "key", broken(), 600, (8, 8))
    assert list((tmp_path / "images").iterdir()) == [] and open_store(tmp_path, "key") is None


def test_progress_is_told(tmp_path, pictures):
    told = []
    build(tmp_path, pictures, on_progress=lambda *call: told.append(call))
    assert told[-1] == ("decoding pictures", 600, 600) and len(told) == 601


def test_a_store_of_nothing_works(tmp_path):
    store = build(tmp_path, [("a.txt", b"text")])
    assert store.pixels.shape == (0, 8, 8) and len(open_store(tmp_path, "key").skipped) == 1


def test_a_cache_that_cannot_be_written_is_refused(tmp_path, pictures):
    (tmp_path / "images").write_text("a file in the way")
    with pytest.raises(DatasetError, match="set TIGRA_CACHE to another folder"):
        build(tmp_path, pictures)


def test_the_key_depends_on_names_contents_and_options():
    contents = [("a", "1"), ("b", "2")]
    keys = {
        store_key(contents, (8, 8), False),
        store_key(contents, (8, 9), False),
        store_key(contents, (8, 8), True),
        store_key([("a", "1"), ("b", "3")], (8, 8), False),
        store_key([("a", "1"), ("c", "2")], (8, 8), False),
        store_key(contents[::-1], (8, 8), False),
    }
    assert len(keys) == 6 and store_key(iter(contents), (8, 8), False) in keys


def test_lazy_images_index_like_arrays(rng):
    pixels = rng.integers(0, 65536, (10, 5, 5), dtype=np.uint16)
    rows = np.array([7, 1, 3, 9])
    images, expected = StoredImages(pixels, rows), pixels[rows] / 65535.0
    assert images.shape == (4, 5, 5) and images.size == 100 and images.ndim == 3 and len(images) == 4
    for key in (2, -1, slice(None), slice(1, 3), slice(0, 0), [3, 0], np.array([1, 1]), expected[:, 0, 0] > 0.5):
        np.testing.assert_array_equal(images[key], expected[key])
    np.testing.assert_array_equal(np.asarray(images), expected)
    with pytest.raises(IndexError):
        images[4]
    degrees = np.array([0.0, 90.0, 33.0, 251.5])
    turned = TurnedImages(images, degrees, "linear")
    np.testing.assert_array_equal(turned[:], rotate(expected, degrees, "linear"))
    np.testing.assert_array_equal(turned[[3, 1]], rotate(expected, degrees, "linear")[[3, 1]])


def test_eight_bit_and_sixteen_bit_grey_levels_are_exact(tmp_path):
    levels = np.arange(64, dtype=np.uint8).reshape(8, 8)
    deep = (np.arange(64, dtype=np.uint16) * 1021).reshape(8, 8)
    store = build(tmp_path, [("8.png", png(levels)), ("16.png", png(deep))])
    images = StoredImages(store.pixels, np.arange(2))
    np.testing.assert_array_equal(images[0], levels / 255.0)
    np.testing.assert_array_equal(images[1], deep / 65535.0)


def test_the_key_depends_on_how_pictures_are_read(monkeypatch):
    contents = [("a", "1")]
    keys = {store_key(contents, (8, 8), False)}
    with monkeypatch.context() as other:
        other.setattr("tigra.images.store.FORMAT", 99)
        keys.add(store_key(contents, (8, 8), False))
    with monkeypatch.context() as other:
        other.setattr("tigra.images.pictures.FORMATS", ("PNG",))
        keys.add(store_key(contents, (8, 8), False))
    assert len(keys) == 3


def test_a_store_under_another_key_is_not_used(tmp_path, pictures):
    build(tmp_path, pictures[:5])
    (tmp_path / "images" / "key").rename(tmp_path / "images" / "other")
    assert open_store(tmp_path, "other") is None


def test_a_file_in_the_place_of_a_store_is_replaced(tmp_path, pictures):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "key").write_text("no folder")
    assert len(build(tmp_path, pictures[:5]).names) == 5


def stored(tmp_path, pictures):
    return stored_pictures(tmp_path, "key", lambda: iter(pictures), len(pictures), (8, 8))


def zero_rows(tmp_path, *rows):
    path = tmp_path / "images" / "key" / "pixels.npy"
    content = bytearray(path.read_bytes())
    for row in rows:
        content[128 + 128 * row : 256 + 128 * row] = bytes(128)
    path.write_bytes(content)


def test_every_picture_is_checked_when_it_is_first_used(tmp_path, pictures):
    pictures = pictures[:100]
    right = np.asarray(stored(tmp_path, pictures).pixels)
    zero_rows(tmp_path, 77, 99)
    images = StoredImages(stored(tmp_path, pictures).pixels, np.arange(100))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(images[:77], right[:77] / 65535)
    with pytest.warns(CacheWarning, match="were damaged; they are decoded anew") as told:
        np.testing.assert_array_equal(images[[3, 77]], right[[3, 77]] / 65535)
    assert len(told) == 1
    np.testing.assert_array_equal(images[:], right / 65535)
    with warnings.catch_warnings():  # for the next process, too
        warnings.simplefilter("error")
        np.testing.assert_array_equal(stored(tmp_path, pictures).pixels, right)


def test_damage_that_cannot_be_mended_is_an_error(tmp_path, pictures, monkeypatch):
    stored(tmp_path, pictures[:9])
    zero_rows(tmp_path, 4)
    with pytest.raises(DatasetError, match="are damaged; delete this file"):
        open_store(tmp_path, "key").pixels[4]
    with pytest.warns(CacheWarning), pytest.raises(DatasetError, match="have changed since"):
        stored(tmp_path, pictures[1:10]).pixels[4]
    store = stored(tmp_path, pictures[:9])
    store.pixels.remake = lambda: zero_rows(tmp_path, 4) or open_store(tmp_path, "key").pixels
    zero_rows(tmp_path, 4)
    with pytest.warns(CacheWarning), pytest.raises(DatasetError, match="again and again"):
        store.pixels[4]


def test_processes_that_build_the_same_store_do_not_harm_each_other(tmp_path, pictures):
    """Threads stand for them: all get the store, and one is left."""
    with ThreadPoolExecutor(4) as pool:
        for round_number in range(5):
            stores = list(pool.map(lambda _, key=f"key{round_number}": build(tmp_path, pictures[:8], key), range(4)))
            assert all(np.array_equal(store.pixels, stores[0].pixels) for store in stores)
    assert sorted(path.name for path in (tmp_path / "images").iterdir()) == [f"key{n}" for n in range(5)]


def test_what_a_killed_process_left_is_removed(tmp_path, pictures):
    left = tmp_path / "images" / ".building-a1b2c3d4"
    left.mkdir(parents=True)
    (left / "pixels.npy").touch()
    with temporary_folder(tmp_path / "images", BUILDING) as held:
        build(tmp_path, pictures[:5])
        assert {path.name for path in (tmp_path / "images").iterdir()} == {held.name, "key"}


def test_files_are_read_one_at_a_time(tmp_path, pictures):
    held, most = set(), []

    class Content(bytes):
        def __del__(self):
            held.discard(id(self))

    def reader(content):
        def read():
            made = Content(content)
            held.add(id(made))
            most.append(len(held))
            return made

        return read

    build(tmp_path, [(name, reader(content)) for name, content in pictures])
    assert len(most) == 600 and max(most) <= 3


def test_decoding_stops_after_the_picture_at_which_it_is_asked_to(tmp_path, pictures):
    read, told = [], []

    def stop(what, done, total):
        told.append((what, done, total))
        if done == 3:
            raise KeyboardInterrupt

    def content(number):
        read.append(number)
        time.sleep(0.002)
        return pictures[number][1]

    lazy = [(name, lambda number=number: content(number)) for number, (name, _) in enumerate(pictures)]
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path, lazy, threads=2, on_progress=stop)
    assert told == [("decoding pictures", done, 600) for done in range(4)]
    assert len(read) < 100 and os.listdir(tmp_path / "images") == []


def test_large_images_wait_in_small_parts(tmp_path, pictures, monkeypatch):
    monkeypatch.setattr("tigra.images.store.LARGEST_PART", 2 * 64 * 5)
    parts, right = [], ThreadPoolExecutor.map
    monkeypatch.setattr(
        ThreadPoolExecutor, "map", lambda self, f, part: parts.append(len(part)) or right(self, f, part)
    )
    assert len(build(tmp_path, pictures[:12], threads=2).names) == 12 and parts == [5, 5, 2]
