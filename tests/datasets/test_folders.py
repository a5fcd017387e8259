"""The user's own pictures: layouts, splits, and a clear sentence for everything odd."""

import os
import shutil
import time

import numpy as np
import pytest
from PIL import Image

import tigra
from tigra import DatasetError, UsageError
from tigra.datasets.folders import load_test_folder
from tigra.datasets.picture_files import list_pictures
from tigra.files.checked_json import packed, unpacked
from tigra.files.digests import digests_of
from tigra.files.regular import open_regular


@pytest.fixture
def draw(rng):
    """A function that writes n random pictures, dark or light by class, into a folder."""

    def write(folder, n, size=(10, 12), level=100, suffix="png"):
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(n):
            pixels = rng.integers(level, level + 100, size, dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"{number:03d}.{suffix}")

    return write


@pytest.fixture
def pets(tmp_path, draw):
    """40 cats and 20 dogs."""
    draw(tmp_path / "pets" / "cat", 40, level=20)
    draw(tmp_path / "pets" / "dog", 20, level=120)
    return tmp_path / "pets"


def contents(split):
    return {image.tobytes() for image in np.asarray(split.images)}


def no_overlap(splits):
    train, valid, test = (contents(split) for split in (splits.train, splits.valid, splits.test_upright))
    return not (train & valid or train & test or valid & test)


# --- layouts -------------------------------------------------------------------------------------------------


def test_class_folders_are_split_by_the_seed_the_same_share_of_every_class(pets):
    splits = tigra.load_dataset(pets)
    assert splits.class_names == ["cat", "dog"] and splits.image_shape == (10, 12) and splits.notes == ()
    for split, cats, dogs in ((splits.train, 28, 14), (splits.valid, 6, 3), (splits.test, 6, 3)):
        assert np.bincount(split.labels).tolist() == [cats, dogs]
    assert no_overlap(splits)
    again, other = tigra.load_dataset(pets), tigra.load_dataset(pets, seed=1)
    np.testing.assert_array_equal(splits.train.images[:], again.train.images[:])
    assert contents(splits.test) != contents(other.test)
    drawn = "round window, valid and test drawn (15% of each class)"
    assert splits.protocol == f"10x12 grey, {drawn}, train and valid upright, test as in the files"


def test_labels_belong_to_their_pictures(pets):
    splits = tigra.load_dataset(pets)
    for split in (splits.train, splits.valid, splits.test):
        means = np.asarray(split.images).mean(axis=(1, 2))
        np.testing.assert_array_equal(split.labels, means > 0.4)


def test_the_split_does_not_depend_on_the_order_in_which_files_were_made(pets, tmp_path):
    shuffled = tmp_path / "elsewhere"
    files = sorted(pets.rglob("*.png"), key=lambda path: path.name[::-1], reverse=True)
    for path in files:
        target = shuffled / path.relative_to(pets)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    first, second = tigra.load_dataset(pets), tigra.load_dataset(shuffled)
    np.testing.assert_array_equal(first.test.images[:], second.test.images[:])
    assert first.learned == second.learned and len(first.learned) == 51


def test_train_valid_test_folders_are_taken_as_they_lie(tmp_path, draw):
    for part, n in (("train", 6), ("val", 3), ("Test", 4)):
        draw(tmp_path / part / "a", n)
        draw(tmp_path / part / "b", n)
    splits = tigra.load_dataset(tmp_path)
    assert [len(split.labels) for split in (splits.train, splits.valid, splits.test)] == [12, 6, 8]


def test_a_part_that_is_missing_is_drawn_from_train(tmp_path, draw):
    draw(tmp_path / "train" / "a", 20)
    draw(tmp_path / "train" / "b", 20)
    draw(tmp_path / "test" / "a", 4)
    draw(tmp_path / "test" / "b", 4)
    splits = tigra.load_dataset(tmp_path)
    assert [len(split.labels) for split in (splits.train, splits.valid, splits.test)] == [32, 8, 8]
    shutil.rmtree(tmp_path / "test")
    splits = tigra.load_dataset(tmp_path)
    assert [len(split.labels) for split in (splits.train, splits.valid, splits.test)] == [28, 6, 6]


def test_a_class_may_be_called_train(tmp_path, draw):
    for name in ("bus", "car", "train"):
        draw(tmp_path / name, 4)
    assert tigra.load_dataset(tmp_path).class_names == ["bus", "car", "train"]


def test_subfolders_of_a_class_belong_to_it_and_links_in_circles_do_no_harm(tmp_path, draw):
    draw(tmp_path / "a" / "one", 3)
    draw(tmp_path / "a" / "two", 3)
    draw(tmp_path / "b", 5)
    (tmp_path / "a" / "round").symlink_to(tmp_path)
    (tmp_path / "b" / "linked.png").symlink_to(tmp_path / "elsewhere.png")
    Image.new("L", (10, 12), 7).save(tmp_path / "elsewhere.png")
    names = [file.name for file in list_pictures(tmp_path)]
    assert len(names) == 12 and "a/two/000.png" in names and "b/linked.png" in names


# --- options ---------------------------------------------------------------------------------------------------


def test_a_folder_is_a_part_only_if_it_has_classes_and_no_pictures_of_its_own(tmp_path, draw):
    for name in ("Bus", "Car", "Train", "val"):
        draw(tmp_path / "vehicles" / name, 4)
    assert tigra.load_dataset(tmp_path / "vehicles").class_names == ["Bus", "Car", "Train", "val"]
    for part in ("train", "testing"):
        draw(tmp_path / "parts" / part / "a", 4)
        draw(tmp_path / "parts" / part / "b", 4)
    assert tigra.load_dataset(tmp_path / "parts").class_names == ["a", "b"]


def test_frames_are_square_if_pictures_are_to_be_turned(pets):
    for options in ({"test_rotations": True}, {"train_rotations": 4}):
        assert tigra.load_dataset(pets, **options).image_shape == (12, 12)
    assert tigra.load_dataset(pets).image_shape == (10, 12)


def test_size_is_the_pictures_own_if_small_and_common_else_50x50(tmp_path, draw):
    draw(tmp_path / "a", 4, size=(30, 20))
    draw(tmp_path / "b", 4, size=(30, 20))
    assert tigra.load_dataset(tmp_path).image_shape == (30, 20)
    assert tigra.load_dataset(tmp_path, size=(16, 8)).image_shape == (16, 8)
    draw(tmp_path / "c", 4, size=(20, 30))
    assert tigra.load_dataset(tmp_path).image_shape == (50, 50)
    shutil.rmtree(tmp_path / "c")
    draw(tmp_path / "a", 4, size=(60, 60))
    draw(tmp_path / "b", 4, size=(60, 60))
    assert tigra.load_dataset(tmp_path).image_shape == (50, 50)


def test_test_images_are_turned_if_asked_for(pets):
    splits = tigra.load_dataset(pets, test_rotations=True, size=(12, 12), interpolation="linear")
    upright = np.asarray(splits.test_upright.images)
    angles = np.random.default_rng(0).uniform(0, 360, len(upright))
    for background, chosen in (
        ("border", splits),
        ("black", tigra.load_dataset(pets, **splits.options | {"background": "black"})),
    ):
        expected = tigra.images.transforms.rotate(
            chosen.test_upright.images[:], angles, "linear", background=background
        )
        np.testing.assert_array_equal(chosen.test.images[:], expected)
    assert "test rotated by [0, 360) degrees, linear interpolation" in splits.protocol
    assert np.abs(splits.fresh_test(5).images[:] - splits.test.images[:]).max() > 0.1
    plain = tigra.load_dataset(pets)
    assert plain.transform is None and plain.fresh_test(5) is plain.test_upright


def test_training_images_are_turned_if_asked_for(pets):
    plain = tigra.load_dataset(pets, size=(12, 12))
    turned = tigra.load_dataset(pets, size=(12, 12), train_rotations=4)
    upright = plain.train.images[:]
    quarter_turns = [np.rot90(upright, k, axes=(1, 2)) for k in range(4)]
    which = [
        [np.array_equal(image, choice[n]) for choice in quarter_turns] for n, image in enumerate(turned.train.images[:])
    ]
    assert np.all(np.sum(which, axis=1) == 1) and set(np.argmax(which, axis=1)) == {0, 1, 2, 3}
    np.testing.assert_array_equal(turned.valid.images[:], plain.valid.images[:])
    assert "train rotated by one of 4 equally spaced angles, valid upright" in turned.protocol


def test_invert_makes_the_light_ground_zero(pets):
    plain, inverted = tigra.load_dataset(pets), tigra.load_dataset(pets, invert=True)
    np.testing.assert_allclose(inverted.train.images[:], 1 - plain.train.images[:], atol=1e-12)
    assert "inverted" in inverted.protocol


@pytest.mark.parametrize(
    "options",
    [{"size": 20}, {"size": (0, 5)}, {"size": (5.5, 5)}, {"train_rotations": -1}, {"train_rotations": "all"},
     {"train_rotations": 361}, {"train_rotations": True}, {"fold": 3}, {"interpolation": "sinc"}, {"seed": -1}],
)  # fmt: skip
def test_impossible_options_are_refused(pets, options):
    with pytest.raises(UsageError):
        tigra.load_dataset(pets, **options)


# --- odd pictures and odd files ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_pictures_of_every_kind_are_read(tmp_path, rng):
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()

        def grey(dtype=np.uint8):
            return Image.fromarray(rng.integers(0, np.iinfo(dtype).max, (20, 30), dtype=dtype))

        def colour():
            return Image.fromarray(rng.integers(0, 256, (20, 30, 3), dtype=np.uint8))

        exif, frames = Image.Exif(), [grey() for _ in range(3)]
        exif[0x0112] = 6
        grey().save(folder / "grey.png")
        grey(np.uint16).save(folder / "deep.png")
        colour().save(folder / "rgb.jpg")
        colour().convert("RGBA").save(folder / "rgba.png")
        colour().convert("CMYK").save(folder / "cmyk.tiff")
        colour().convert("1").save(folder / "bits.tiff")
        colour().quantize(20).save(folder / "palette.gif")
        colour().resize((31, 22)).save(folder / "turned.jpg", exif=exif)
        frames[0].save(folder / "moving.gif", save_all=True, append_images=frames[1:])
        colour().resize((5, 200)).save(folder / "tall.bmp")
        colour().resize((1, 1)).save(folder / "tiny.png")
        colour().resize((3000, 2000)).save(folder / "huge.webp")
    splits = tigra.load_dataset(tmp_path)
    assert sum(len(split.labels) for split in (splits.train, splits.valid, splits.test)) == 24
    assert splits.notes == () and splits.image_shape == (50, 50, 3) and "50x50 colour" in splits.protocol
    assert tigra.load_dataset(tmp_path, colour="no").image_shape == (50, 50)


def test_what_was_skipped_is_said_in_one_line(pets):
    (pets / "cat" / "notes.txt").write_text("not a picture")
    (pets / "cat" / ".DS_Store").write_text("hidden")
    (pets / "cat" / "Thumbs.db").write_text("Windows")
    (pets / "__MACOSX" / "cat").mkdir(parents=True)  # in archives that a Mac has made
    (pets / "__MACOSX" / "cat" / "._000.png").write_text("Mac")
    (pets / "dog" / "half.png").write_bytes((pets / "dog" / "000.png").read_bytes()[:60])
    (pets / "dog" / "empty.png").touch()
    (pets / "dog" / "dangling.png").symlink_to(pets / "nowhere")
    os.mkfifo(pets / "dog" / "pipe.png")
    (pets / "figure.eps").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n")
    shutil.move(pets / "figure.eps", pets / "dog" / "figure.eps")
    splits = tigra.load_dataset(pets)
    (note,) = splits.notes
    assert note.startswith("skipped 6 of 66 files: ")
    for name in ("cat/notes.txt", "dog/half.png", "dog/dangling.png", "dog/pipe.png"):
        assert name in note or "..." in note
    assert "DS_Store" not in note and "Thumbs" not in note
    assert sum(len(split.labels) for split in (splits.train, splits.valid, splits.test)) == 60


def test_kinds_of_skipped_files_are_counted_by_their_names(pets):
    for number in range(4):
        (pets / "cat" / f"note{number}.txt").write_text("not a picture")
        (pets / "dog" / f"half{number}.png").write_bytes((pets / "dog" / "000.png").read_bytes()[:60])
    (pets / "dog" / "IMG_1.HEIC").write_bytes(b"\0\0\0\x18ftypheic")
    (note,) = tigra.load_dataset(pets).notes
    assert "1 HEIC picture to be converted to JPEG (dog/IMG_1.HEIC)" in note
    assert "4 files that are not pictures (cat/note0.txt, cat/note1.txt, cat/note2.txt, ...)" in note
    assert "4 damaged pictures (dog/half0.png, " in note


def test_files_beside_the_class_folders_are_mentioned(pets):
    shutil.copy(pets / "cat" / "000.png", pets / "lost.png")
    assert tigra.load_dataset(pets).notes == ("1 file (lost.png) next to the class folders is not used",)


def test_names_that_a_terminal_would_obey_are_shown_escaped(pets):
    (pets / "cat" / "bad\x1b[2Jname.png").write_text("x")
    (note,) = tigra.load_dataset(pets).notes
    assert "bad\\x1b[2Jname.png" in note and note.isprintable()


def test_names_that_are_no_unicode_work(pets):
    raw = os.fsencode(pets / "cat") + b"/caf\xe9.png"
    shutil.copy(pets / "cat" / "000.png", raw)
    with open(os.fsencode(pets / "cat") + b"/\xff.png", "wb") as file:
        Image.new("L", (10, 12), 3).save(file, "PNG")
    splits = tigra.load_dataset(pets)
    (note,) = splits.notes
    assert "1 duplicate" in note and note.encode()


def test_duplicates_count_once_and_never_lie_in_two_parts(pets):
    for number in range(10):
        shutil.copy(pets / "cat" / f"{number:03d}.png", pets / "cat" / f"copy{number}.png")
        Image.open(pets / "dog" / f"{number:03d}.png").save(pets / "dog" / f"again{number}.bmp")  # other bytes
    splits = tigra.load_dataset(pets)
    assert splits.notes == ("left out 20 duplicates (cat/copy0.png, cat/copy1.png, cat/copy2.png, ...)",) or (
        len(splits.notes) == 1 and splits.notes[0].startswith("left out 20 duplicates")
    )
    assert no_overlap(splits) and sum(len(s.labels) for s in (splits.train, splits.valid, splits.test)) == 60


def test_a_test_picture_that_is_also_in_train_is_taken_out_of_train(tmp_path, draw):
    for part in ("train", "valid", "test"):
        draw(tmp_path / part / "a", 6)
        draw(tmp_path / part / "b", 6)
    shutil.copy(tmp_path / "test" / "a" / "000.png", tmp_path / "train" / "a" / "leak.png")
    shutil.copy(tmp_path / "valid" / "a" / "001.png", tmp_path / "train" / "a" / "leak2.png")
    splits = tigra.load_dataset(tmp_path)
    assert [len(split.labels) for split in (splits.train, splits.valid, splits.test)] == [12, 12, 12]
    assert "train/a/leak.png" in splits.notes[0] and no_overlap(splits)


def test_a_picture_in_valid_and_test_stays_in_the_test(tmp_path, draw):
    for part in ("train", "valid", "test"):
        draw(tmp_path / part / "a", 6)
        draw(tmp_path / part / "b", 6)
    shutil.copy(tmp_path / "test" / "a" / "000.png", tmp_path / "valid" / "a" / "leak.png")
    splits = tigra.load_dataset(tmp_path)
    assert len(splits.test.labels) == 12 and len(splits.valid.labels) == 12 and "valid/a/leak.png" in splits.notes[0]


def test_equal_pictures_in_two_classes_are_left_out(pets):
    shutil.copy(pets / "cat" / "000.png", pets / "dog" / "cat.png")
    splits = tigra.load_dataset(pets)
    assert splits.notes == ("left out 2 pictures (cat/000.png, dog/cat.png): equal ones lie in different classes",)
    assert sum(len(s.labels) for s in (splits.train, splits.valid, splits.test)) == 59


def test_files_that_differ_only_in_case_are_used_and_mentioned(pets, draw):
    Image.new("L", (10, 12), 9).save(pets / "cat" / "A.png")
    Image.new("L", (10, 12), 8).save(pets / "cat" / "a.png")
    if len(list((pets / "cat").glob("[aA].png"))) < 2:
        pytest.skip("this file system does not tell them apart")
    (note,) = tigra.load_dataset(pets).notes
    assert note.startswith("2 files (cat/A.png, cat/a.png) differ only in case")


# --- folders that cannot work --------------------------------------------------------------------------------------


def refused(folder, message):
    with pytest.raises(DatasetError, match=message) as caught:
        tigra.load_dataset(folder)
    assert "\n" not in str(caught.value)


def test_one_class_is_refused(tmp_path, draw):
    draw(tmp_path / "cat", 5)
    refused(tmp_path, "needs at least two classes, got only 'cat'")


def test_an_empty_class_is_refused(pets):
    (pets / "fish").mkdir()
    refused(pets, "fish is empty; add pictures, or remove it")


def test_a_class_without_readable_pictures_is_refused(pets):
    (pets / "fish").mkdir()
    (pets / "fish" / "note.png").write_text("text")
    refused(pets, "Class 'fish' has no training picture")


def test_a_class_with_two_pictures_is_refused(pets, draw):
    draw(pets / "fish", 2)
    refused(pets, "Class 'fish' has too few different pictures")


def test_a_class_that_is_only_in_the_test_is_refused(tmp_path, draw):
    for part in ("train", "test"):
        draw(tmp_path / part / "a", 6)
        draw(tmp_path / part / "b", 6)
    draw(tmp_path / "test" / "c", 6)
    refused(tmp_path, "Class 'c' has no training picture")


def test_pictures_without_class_folders_are_refused(tmp_path, draw):
    draw(tmp_path, 5)
    refused(tmp_path, "no subfolders with pictures; give a folder with one subfolder per class")


def test_class_folders_that_differ_only_in_case_are_refused(pets, draw):
    draw(pets / "Cat", 3)
    refused(pets, "'Cat' and 'cat' .* differ only in case")


def test_parts_beside_other_folders_are_refused(tmp_path, draw):
    for name in ("train", "test", "extras"):
        draw(tmp_path / name / "a", 3)
    refused(tmp_path, "has test, train, but also extras")


def test_parts_without_train_are_refused(tmp_path, draw):
    for name in ("val", "test"):
        draw(tmp_path / name / "a", 3)
        draw(tmp_path / name / "b", 3)
    refused(tmp_path, "has test, val, but no training pictures")


@pytest.mark.parametrize("part", ["valid", "test"])
def test_a_part_without_usable_pictures_is_refused_but_it_may_lack_a_class(tmp_path, draw, part):
    for name in ("train", "valid", "test"):
        draw(tmp_path / name / "a", 3)
        draw(tmp_path / name / "b", 3)
    for path in (tmp_path / part / "b").iterdir():
        path.unlink()
    assert set(getattr(tigra.load_dataset(tmp_path), part).labels) == {0}
    for path in (tmp_path / part / "a").iterdir():
        path.write_text("text")
    refused(tmp_path, f"The folder {part} has no usable picture.*skipped 3 of 15 files")


def test_a_folder_that_cannot_be_listed_is_named(pets, monkeypatch):
    right = os.scandir

    def refuse(path):
        if os.fspath(path).endswith("dog"):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return right(path)

    monkeypatch.setattr("os.scandir", refuse)
    refused(pets, "Cannot list .*dog: Permission denied")


def test_two_folders_for_one_part_are_refused(tmp_path, draw):
    for name in ("train", "val", "valid"):
        draw(tmp_path / name / "a", 3)
    refused(tmp_path, "two folders for the same part")


def test_a_file_or_nothing_is_no_data_set(tmp_path):
    (tmp_path / "file").touch()
    for name in ("file", "nothing"):
        with pytest.raises(UsageError, match="choose one of .*, or give a folder of pictures"):
            tigra.load_dataset(tmp_path / name)


# --- the cache ---------------------------------------------------------------------------------------------------


def settle(folder):
    """Make files look as if they had been there for a while."""
    for path in folder.rglob("*.png"):
        os.utime(path, ns=(10**18, 10**18))


def test_pictures_are_decoded_once(pets, monkeypatch):
    first = tigra.load_dataset(pets)
    monkeypatch.setattr("tigra.images.store.build_store", lambda *_, **__: pytest.fail("decoded again"))
    np.testing.assert_array_equal(tigra.load_dataset(pets).train.images[:], first.train.images[:])


def test_a_changed_picture_is_noticed(pets):
    tigra.load_dataset(pets)
    Image.new("L", (12, 10), 77).save(pets / "cat" / "000.png")
    after = tigra.load_dataset(pets)
    assert any(np.all(image == 77 / 255) for s in (after.train, after.valid, after.test) for image in s.images[:])


def test_a_cache_that_is_damaged_is_made_anew(pets, tmp_path, monkeypatch):
    monkeypatch.setenv("TIGRA_CACHE", str(tmp_path / "cache"))
    first = tigra.load_dataset(pets).train.images[:]
    for path in (tmp_path / "cache").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    np.testing.assert_array_equal(tigra.load_dataset(pets).train.images[:], first)


def test_names_in_each_others_place_are_noticed(pets, tmp_path, monkeypatch):
    monkeypatch.setenv("TIGRA_CACHE", str(tmp_path / "cache"))
    first = tigra.load_dataset(pets)
    (index,) = (tmp_path / "cache").glob("images/*/index.json")
    text = index.read_text()
    swapped = text.replace("cat/000.png", "?").replace("dog/000.png", "cat/000.png").replace("?", "dog/000.png")
    for damaged in (swapped, text.replace('"skipped": []', '"skipped": 5'), text.replace('"names"', '"namen"')):
        assert damaged != text
        index.write_text(damaged)
        again = tigra.load_dataset(pets)
        np.testing.assert_array_equal(again.train.images[:], first.train.images[:])
        assert index.read_text() == text


def test_wrong_digests_are_not_believed_for_ever(pets, tmp_path, monkeypatch):
    monkeypatch.setenv("TIGRA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tigra.files.digests.SETTLED", -(10**18))  # as if all files were old
    first = tigra.load_dataset(pets)
    (remembered,) = (tmp_path / "cache" / "folders").iterdir()
    text = remembered.read_bytes()
    known = unpacked(text, remembered.stem)
    known["cat/000.png"][-1] = "0" * 64
    for wrong in (text[:-9] + b"0" + text[-8:], packed(known, "another"), packed(known, remembered.stem)):
        remembered.write_bytes(wrong)
        np.testing.assert_array_equal(tigra.load_dataset(pets).train.images[:], first.train.images[:])
        assert remembered.read_bytes() == text


def test_files_at_rest_are_not_read_again(pets, tmp_path, monkeypatch):
    files = list_pictures(pets)
    expected = digests_of(pets, files, tmp_path)
    monkeypatch.setattr("tigra.files.digests.SETTLED", -(10**18))  # as if all files were old
    assert digests_of(pets, files, tmp_path) == expected
    monkeypatch.setattr("tigra.files.digests._digest", lambda path: pytest.fail(f"{path} read again"))
    assert digests_of(pets, files, tmp_path) == expected


def test_a_file_that_was_just_written_is_read_again(pets, tmp_path, monkeypatch):
    files = list_pictures(pets)
    for file in files:
        file.path.touch()
    digests_of(pets, files, tmp_path)
    read = []
    monkeypatch.setattr("tigra.files.digests._digest", lambda path: read.append(path) or "0")
    digests_of(pets, files, tmp_path)
    assert len(read) == len(files)


def test_a_file_with_old_times_but_new_content_is_noticed(pets, tmp_path, monkeypatch):
    """`cp -p` or `touch -r` set the time of the content; the time of the entry tells."""
    monkeypatch.setattr("tigra.files.digests.SETTLED", -(10**18))
    files = list_pictures(pets)
    before = digests_of(pets, files, tmp_path)
    path = files[0].path
    facts, content = path.stat(), bytearray(path.read_bytes())
    content[-1] ^= 1
    time.sleep(0.02)
    path.write_bytes(content)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert digests_of(pets, files, tmp_path)[0] != before[0]


def test_failures_of_the_moment_are_not_kept(pets, tmp_path, monkeypatch):
    """A disk that fails once, or a lack of memory, must not mark a picture as damaged for ever."""
    monkeypatch.setenv("TIGRA_CACHE", str(tmp_path / "cache"))

    def fail(path):
        if path.name == "003.png":
            raise OSError(5, "Input/output error")
        return open_regular(path)

    with monkeypatch.context() as failing:
        failing.setattr("tigra.datasets.decoding.open_regular", fail)
        refused(pets, "Cannot read .*003.png: Input/output error; start again")
    with monkeypatch.context() as failing:
        failing.setattr("tigra.images.pictures._upright", lambda *_: (_ for _ in ()).throw(MemoryError()))
        with pytest.raises(MemoryError):
            tigra.load_dataset(pets)
    assert tigra.load_dataset(pets).notes == ()


def test_a_file_that_changes_while_it_is_read_stops_the_reading(pets, tmp_path, monkeypatch):
    monkeypatch.setenv("TIGRA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tigra.datasets.decoding.digests_of", lambda folder, files, *_: ["0" * 64] * len(files))
    refused(pets, "changed while it was read")


def test_files_that_are_too_large_are_not_read(pets, monkeypatch):
    monkeypatch.setattr("tigra.files.digests.LARGEST_FILE", (pets / "cat" / "000.png").stat().st_size - 1)
    with pytest.raises(DatasetError, match="60 pictures that are too large"):
        tigra.load_dataset(pets)


def test_what_cannot_be_read_is_not_remembered(pets, tmp_path, monkeypatch):
    monkeypatch.setattr("tigra.files.digests.SETTLED", -(10**18))
    files = list_pictures(pets)
    with monkeypatch.context() as failing:
        failing.setattr("tigra.files.digests._digest", lambda path: "unreadable: Permission denied")
        assert set(digests_of(pets, files, tmp_path)) == {"unreadable: Permission denied"}
    assert all(len(digest) == 64 for digest in digests_of(pets, files, tmp_path))


def test_looking_at_some_files_does_not_forget_the_others(pets, tmp_path, monkeypatch):
    monkeypatch.setattr("tigra.files.digests.SETTLED", -(10**18))
    files = list_pictures(pets)
    expected = digests_of(pets, files, tmp_path)
    (pets / "dog" / "000.png").touch()
    digests_of(pets, files[-20:], tmp_path)
    monkeypatch.setattr("tigra.files.digests._digest", lambda path: pytest.fail(f"{path} read again"))
    assert digests_of(pets, files, tmp_path) == expected


# --- a folder for a network that was trained on another ------------------------------------------------------------


def test_all_pictures_of_another_folder_are_for_the_test(pets):
    splits = load_test_folder(pets, (10, 12), ["bird", "cat", "dog"])
    assert len(splits.test.labels) == 60 and set(splits.test.labels) == {1, 2}
    assert len(splits.train.labels) == len(splits.valid.labels) == 0
    assert splits.protocol == "10x12 grey, background from the border, test as in the files"


def test_of_a_folder_with_parts_the_test_part_counts(tmp_path, draw):
    for part, n in (("train", 6), ("test", 4)):
        draw(tmp_path / part / "a", n)
        draw(tmp_path / part / "b", n)
    assert len(load_test_folder(tmp_path, (10, 12), ["a", "b"]).test.labels) == 8


def test_a_class_that_the_network_does_not_know_is_refused(pets):
    with pytest.raises(DatasetError, match="class 'dog', which the network does not have; .*network are bird, cat"):
        load_test_folder(pets, (10, 12), ["bird", "cat"])


# --- limits -------------------------------------------------------------------------------------------------


def test_pictures_that_do_not_fit_on_the_disk_are_refused_before_they_are_decoded(pets, tmp_path, monkeypatch):
    monkeypatch.setenv("TIGRA_CACHE", str(tmp_path / "cache"))
    usage = shutil.disk_usage(pets)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=2_500_000_000))
    with pytest.raises(
        DatasetError, match=r"60 pictures of 5000x5000 pixels would take 3.0 GB, but .* has 2.5 GB free"
    ):
        tigra.load_dataset(pets, size=(5000, 5000))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=10**12))
    with pytest.raises(UsageError, match="3.0 GB, and no network takes images of more than 16,777,216 pixels"):
        tigra.load_dataset(pets, size=(5000, 5000))


def test_a_large_store_is_mentioned(pets, monkeypatch):
    assert not tigra.load_dataset(pets, size=(8, 8)).notes
    monkeypatch.setattr("tigra.datasets.decoding.WORTH_SAYING", 60 * 2 * 64 - 1)
    (note,) = tigra.load_dataset(pets, size=(8, 8)).notes
    assert note.startswith("the decoded pictures take 0.0 MB in ")
    monkeypatch.setattr("tigra.images.store.WORTH_SAYING", 1)
    seen = set()
    tigra.load_dataset(pets, size=(8, 9), on_progress=lambda what, done, total: seen.add(what))
    assert "decoding pictures into 0.0 MB" in seen


def test_a_picture_swapped_for_a_pipe_while_pictures_are_decoded_is_skipped(pets, tmp_path, monkeypatch):
    monkeypatch.setenv("TIGRA_CACHE", str(tmp_path / "cache"))
    swapped, looked = pets / "cat" / "000.png", []

    def swap(folder, files, *rest):
        digests = digests_of(folder, files, *rest)
        if not looked:
            swapped.unlink()
            os.mkfifo(swapped)
        looked.append(digests)
        return digests

    monkeypatch.setattr("tigra.datasets.decoding.digests_of", swap)
    (note,) = tigra.load_dataset(pets).notes
    assert note.startswith("skipped 1 of 60 files: 1 unreadable file (cat/000.png)") and len(looked) == 2
