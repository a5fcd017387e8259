"""Archives from outside: what is read from good ones, and that each kind of bad one is refused."""

import bz2
import gzip
import io
import lzma
import stat
import struct
import tarfile
import tracemalloc
import zipfile
import zlib

import pytest

from tigra.datasets import archives
from tigra.datasets.archives import (
    Limits,
    member_names,
    read_gzip,
    read_in_order,
    read_members,
    safe_name,
)
from tigra.errors import DatasetError

CONTENT = {"a/one.txt": b"first", "a/two.txt": bytes(range(256)) * 9, "b/empty.txt": b"", "c.txt": b"x" * 512}
PACKERS = {"tar": bytes, "tar.gz": gzip.compress, "tar.bz2": bz2.compress, "tar.xz": lzma.compress}


def everything(_):
    return True


def tar_bytes(members, **kwargs):
    """A tar of (name or TarInfo, content) pairs."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", **kwargs) as archive:
        for member, content in members:
            info = member if isinstance(member, tarfile.TarInfo) else tarfile.TarInfo(member)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zip_bytes(members, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for member, content in members:
            archive.writestr(member, content)
    return buffer.getvalue()


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.fixture
def archive(tmp_path):
    """A function that writes bytes to a file, for an archive."""

    def write(content):
        path = tmp_path / "archive"
        path.write_bytes(content)
        return path

    return write


# --- good ones ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*PACKERS, "zip", "zip stored"])
def test_members_come_as_they_went_in(archive, kind):
    items = [("./" + name, content) for name, content in CONTENT.items()]
    if kind in PACKERS:
        path = archive(PACKERS[kind](tar_bytes([(special("a/", tarfile.DIRTYPE), b""), *items])))
    else:
        path = archive(
            zip_bytes([("a/", b""), *items], zipfile.ZIP_STORED if "stored" in kind else zipfile.ZIP_DEFLATED)
        )
    assert dict(read_members(path, everything)) == CONTENT
    assert member_names(path) == list(CONTENT)
    assert dict(read_members(path, lambda name: name.endswith("two.txt"))) == {"a/two.txt": CONTENT["a/two.txt"]}


@pytest.mark.parametrize("format", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_every_tar_format_with_long_names(archive, format):
    name = "/".join(["folder" * 8] * 4) + "/file.txt"
    assert dict(read_members(archive(tar_bytes([(name, b"deep")], format=format)), everything)) == {name: b"deep"}


def test_an_empty_archive_has_no_members(archive):
    assert member_names(archive(tar_bytes([]))) == []
    assert member_names(archive(zip_bytes([]))) == []


def test_members_are_handed_out_in_the_order_asked_for(archive, tmp_path):
    order = ["c.txt", "b/empty.txt", "a/two.txt", "a/one.txt"]
    expected = [(name, CONTENT[name]) for name in order]
    for content in (gzip.compress(tar_bytes(CONTENT.items())), zip_bytes(CONTENT.items())):
        assert list(read_in_order(archive(content), order)) == expected
    for name, content in CONTENT.items():
        (tmp_path / "folder" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "folder" / name).write_bytes(content)
    assert list(read_in_order(tmp_path / "folder", order)) == expected
    with pytest.raises(DatasetError, match="more than 100 bytes"):
        list(read_in_order(tmp_path / "folder", order, Limits(member=100)))
    with pytest.raises(DatasetError, match="has no d.txt"):
        list(read_in_order(archive(tar_bytes(CONTENT.items())), [*order, "d.txt"]))


def test_a_member_waits_in_memory_only_until_its_turn(archive):
    names = [str(number) for number in range(50)]
    swapped = [*names[1::2], *names[::2]]
    path = archive(tar_bytes([(name, name.encode()) for name in swapped]))
    assert [name for name, _ in read_in_order(path, names)] == names
    path = archive(tar_bytes([(name, bytes(100_000)) for name in names]))
    tracemalloc.start()
    assert sum(len(content) for _, content in read_in_order(path, names)) == 5_000_000
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


# --- names and kinds ----------------------------------------------------------------------------------

BAD_NAMES = ["/etc/passwd", "../out.txt", "a/../../out.txt", "a/..", "C:/out.txt", "c:out.txt", "a\\b.txt", "..\\a",
             "\\\\server\\out.txt", "a\nb.txt"]  # fmt: skip


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("make", [tar_bytes, zip_bytes])
def test_names_that_lead_out_of_the_folder_are_refused(archive, make, name):
    path = archive(make([("good.txt", b"good"), (name, b"bad")]))
    with pytest.raises(DatasetError, match="could lead out of its folder") as caught:
        list(read_members(path, everything))
    assert str(path) in str(caught.value) and "download the file again" in str(caught.value)
    with pytest.raises(DatasetError, match="could lead out"):
        member_names(path)  # also when nobody wants that member


def test_a_name_with_a_null_byte_is_refused(archive):
    content = zip_bytes([("aXb.txt", b"bad")]).replace(b"aXb.txt", b"a\0b.txt")
    with pytest.raises(DatasetError, match="could lead out"):
        member_names(archive(content))


@pytest.mark.parametrize("name", ["..a/b..c", "a/...", "a..b", "ab:c", "a/c:d"])
def test_names_that_only_look_dangerous_are_kept(name):
    assert safe_name(name) == name


SPECIALS = [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"9"]


@pytest.mark.parametrize("kind", SPECIALS)
def test_links_and_devices_are_refused(archive, kind):
    path = archive(tar_bytes([("good.txt", b"good"), (special("bad", kind, "good.txt"), b"")]))
    with pytest.raises(DatasetError, match="neither a file nor a folder"):
        member_names(path)


def test_sparse_files_are_refused(archive):
    headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": "s",
        "GNU.sparse.realsize": "999999",
    }
    info = tarfile.TarInfo("sparse")
    info.pax_headers = headers
    path = archive(tar_bytes([(info, b"1\n999998\n1\n".ljust(512, b"\0") + b"x")], format=tarfile.PAX_FORMAT))
    with pytest.raises(DatasetError, match="neither a file nor a folder"):
        list(read_members(path, everything))


@pytest.mark.parametrize("mode", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_in_zips_are_refused(archive, mode):
    info = zipfile.ZipInfo("bad")
    info.create_system, info.external_attr = 3, (mode | 0o777) << 16
    with pytest.raises(DatasetError, match="neither a file nor a folder"):
        member_names(archive(zip_bytes([(info, b"/etc/passwd")])))


def test_encrypted_zips_are_refused(archive):
    content = bytearray(zip_bytes([("secret.txt", b"secret")], zipfile.ZIP_STORED))
    content[6] |= 1  # the flag in the local header
    content[content.index(b"PK\x01\x02") + 8] |= 1  # and in the list of members
    with pytest.raises(DatasetError, match="encrypted member, 'secret.txt'"):
        member_names(archive(bytes(content)))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zips_are_stored_or_deflated(archive, method):
    with pytest.raises(DatasetError, match="neither stored nor deflated"):
        member_names(archive(zip_bytes([("a.txt", b"a")], method)))


# --- too much -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [tar_bytes, zip_bytes])
def test_limits_on_members_and_bytes(archive, make):
    path = archive(make([(f"{number}.txt", b"0123456789") for number in range(10)]))
    assert len(member_names(path, Limits(member=10, total=100, members=10))) == 10
    for limits, message in [
        (Limits(member=9), "a member of 10 bytes, '0.txt'; at most 9 are allowed"),
        (Limits(total=99), "unpacks to more than 99 bytes"),
        (Limits(members=9), "more than 9 members"),
    ]:
        with pytest.raises(DatasetError, match=message):
            member_names(path, limits)


class Counting:
    """Counts the bytes that come out of the unpackers, and the most asked for at once."""

    def __init__(self, unpack):
        self.unpack, self.total, self.most = unpack, 0, 0

    def __call__(self, file):
        self.file = self.unpack(file)
        return self

    def read(self, size):
        self.most = max(self.most, size)
        content = self.file.read(size)
        self.total += len(content)
        return content


@pytest.fixture
def counting(monkeypatch):
    counter = Counting(gzip.open)
    monkeypatch.setitem(archives.UNPACKERS, b"\x1f\x8b", counter)
    return counter


def gzip_of_zeros(start, n_zeros):
    """start, then zeros, gzipped: pieces of a megabyte, since a gzip file may have many parts."""
    return gzip.compress(start) + gzip.compress(bytes(1 << 20)) * (n_zeros >> 20)


def header(name, size, kind=tarfile.REGTYPE):
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    "start, what",
    [
        (header("huge", 1 << 30), "a member of 1073741824 bytes"),
        (header("a", 1 << 30, tarfile.XHDTYPE), "headers of more than"),
        (header("a", 1 << 30, tarfile.XGLTYPE), "headers of more than"),
        (header("a", 1 << 30, tarfile.GNUTYPE_LONGNAME), "headers of more than"),
        (header("a", 1 << 30, tarfile.GNUTYPE_LONGLINK), "headers of more than"),
        (tar_bytes([("good.txt", b"good")]), "holds more than it declares"),  # zeros after the end
    ],
)
def test_bombs_of_a_gigabyte_are_cut_off_early(archive, counting, start, what):
    path = archive(gzip_of_zeros(start, 1 << 30))
    with pytest.raises(DatasetError, match=what):
        member_names(path)
    assert counting.total <= 2 * archives.HEADERS and counting.most <= archives.HEADERS


def test_skipped_members_count(archive, counting):
    path = archive(gzip.compress(header("zeros", 1 << 20) + bytes(1 << 20)) * 200)
    with pytest.raises(DatasetError, match="unpacks to more than 10485760 bytes"):
        list(read_members(path, lambda name: False, Limits(total=10 << 20)))
    assert counting.total <= (11 << 20)


def test_headers_count_too(archive, counting):
    comment = b"500016 comment=" + b"x" * 500_000 + b"\n"
    member = header("a", len(comment), tarfile.XHDTYPE) + comment.ljust(500_224, b"\0") + header("a", 0)
    with pytest.raises(DatasetError, match="holds more than it declares"):
        member_names(archive(gzip.compress(member) * 100), Limits(total=5 << 20))
    assert counting.total <= (6 << 20)


def test_chains_of_headers_are_refused(archive):
    chain = b"".join(header("a", 12, tarfile.XHDTYPE) + b"12 path=aaa\n".ljust(512, b"\0") for _ in range(3000))
    with pytest.raises(DatasetError):
        member_names(archive(chain + tar_bytes([("a", b"")])))


def test_a_zip_that_lies_about_a_size_is_refused(archive):
    bomb = bytearray(zip_bytes([("bomb", bytes(50 << 20))]))
    for start in (22, bomb.index(b"PK\x01\x02") + 24):  # the unpacked size, in both headers
        struct.pack_into("<I", bomb, start, 1000)
    path = archive(bytes(bomb))
    tracemalloc.start()
    with pytest.raises(DatasetError, match="damaged"):
        list(read_members(path, everything))
    assert tracemalloc.get_traced_memory()[1] < 5 << 20
    tracemalloc.stop()
    short = bytearray(zip_bytes([("short", b"0123456789")]))
    for start in (22, short.index(b"PK\x01\x02") + 24):
        struct.pack_into("<I", short, start, 11)
    with pytest.raises(DatasetError, match="damaged"):
        list(read_members(archive(bytes(short)), everything))


def test_a_zip_with_a_giant_list_of_members_is_refused_before_it_is_parsed(archive, monkeypatch):
    path = archive(zip_bytes([(f"{number}.txt", b"") for number in range(5000)]))
    monkeypatch.setattr(zipfile, "ZipInfo", None)  # zipfile would make one for each
    with pytest.raises(DatasetError, match="list of members that is far too long"):
        member_names(path, Limits(member=10, members=600))
    large = bytes(1 << 20)
    monkeypatch.undo()
    assert list(read_members(archive(zip_bytes([("a", large)], zipfile.ZIP_STORED)), everything, Limits(members=1)))


# --- damage -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*PACKERS, "zip"])
def test_a_cut_archive_is_refused_wherever_it_is_cut(archive, kind):
    noise = [
        (f"{number}.bin", bytes(zlib.crc32(bytes([number, i])) & 255 for i in range(200)) * 8) for number in range(4)
    ]
    whole = PACKERS[kind](tar_bytes(noise)) if kind in PACKERS else zip_bytes(noise)
    used = whole.rstrip(b"\0") if kind == "tar" else whole
    for length in range(0, len(used), max(1, len(used) // 40)):
        if kind == "tar" and length % 512 == 0 and length:
            continue  # between two members of a plain tar a cut cannot be seen
        with pytest.raises(DatasetError):
            for name, content in read_members(archive(whole[:length]), everything):
                assert content == dict(noise)[name], "what is handed on before the cut is whole"


@pytest.mark.parametrize("kind", [kind for kind in PACKERS if kind != "tar"] + ["zip"])
def test_a_changed_byte_in_a_compressed_archive_never_goes_unseen(archive, kind):
    whole = PACKERS[kind](tar_bytes(CONTENT.items())) if kind in PACKERS else zip_bytes(CONTENT.items())
    for place in range(0, len(whole), max(1, len(whole) // 60)):
        changed = bytearray(whole)
        changed[place] ^= 0x10
        try:
            found = dict(read_members(archive(bytes(changed)), everything))
        except DatasetError:
            continue
        assert sorted(found.values()) == sorted(CONTENT.values()), f"byte {place}"


def test_a_damaged_header_is_not_taken_for_the_end(archive):
    whole = bytearray(tar_bytes([("a", b"1"), ("b", b"2")]))
    whole[1024 + 3] ^= 1  # in the second name, so that the header's sum is wrong
    with pytest.raises(DatasetError, match="a header is damaged"):
        member_names(archive(bytes(whole)))


def test_a_negative_size_is_refused(archive):
    bad = bytearray(header("bad", 0))
    bad[124:136] = b"\xff" * 11 + b"\x00"  # -256 in base 256
    bad[148:156] = b"%06o\0 " % (256 + sum(bad[:148]) + sum(bad[156:512]))
    for start in (b"", tar_bytes([("good", b"good")])[:1024]):
        with pytest.raises(DatasetError):
            member_names(archive(start + bytes(bad) + bytes(2048)))


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"PK", b"PK\x03\x04", b"\x1f\x8b", b"\x1f\x8b" * 9, b"BZh", b"<html>" * 500]
)
def test_other_files_are_no_archives(archive, content):
    with pytest.raises(DatasetError, match="damaged, cut short or no archive"):
        member_names(archive(content))


def test_a_file_that_is_not_there_or_cannot_be_opened(tmp_path):
    for path in (tmp_path / "none.tgz", tmp_path):
        with pytest.raises(DatasetError, match="Cannot read"):
            member_names(path)
        with pytest.raises(DatasetError, match="Cannot read"):
            read_gzip(path, 10)


# --- single files -------------------------------------------------------------------------------------


def test_read_gzip_takes_packed_and_plain_files(archive):
    for content in (b"", b"0123456789", b"\x00\x1f\x8b"):
        assert read_gzip(archive(gzip.compress(content)), 10) == content
        assert read_gzip(archive(content), 10) == content


def test_read_gzip_stops_at_the_largest_size(archive):
    for content in (gzip.compress(b"0123456789"), b"0123456789"):
        with pytest.raises(DatasetError, match="more than the 9 bytes expected"):
            read_gzip(archive(content), 9)


def test_read_gzip_does_not_unpack_a_bomb(archive, monkeypatch):
    path = archive(gzip_of_zeros(b"", 1 << 30))
    asked = []
    original = gzip.GzipFile.read
    monkeypatch.setattr(gzip.GzipFile, "read", lambda self, size=-1: asked.append(size) or original(self, size))
    with pytest.raises(DatasetError, match="more than the 1000 bytes"):
        read_gzip(path, 1000)
    assert asked == [1001]


def test_read_gzip_refuses_damaged_files(archive):
    packed = bytearray(gzip.compress(bytes(range(256)) * 4))
    for length in (2, 9, 30, len(packed) - 1):
        with pytest.raises(DatasetError, match="damaged"):
            read_gzip(archive(packed[:length]), 2000)
    packed[-6] ^= 1
    with pytest.raises(DatasetError, match="damaged"):
        read_gzip(archive(bytes(packed)), 2000)


@pytest.mark.slow
def test_headers_do_not_pile_up_in_memory(tmp_path):
    """A tar of a few kilobytes may have large headers before each of many members: they are bounded, and not kept."""
    path = tmp_path / "headers.tar.xz"
    with tarfile.open(path, "w:xz", format=tarfile.PAX_FORMAT) as archive:
        for number in range(30):
            info = tarfile.TarInfo(f"member{number}")
            info.pax_headers = {f"tigra.{n}": "x" for n in range(5000)}
            archive.addfile(info, io.BytesIO())
    with pytest.raises(DatasetError, match="headers of more than"):
        list(read_members(path, lambda name: True))
