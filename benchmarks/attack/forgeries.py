"""Files that are well-formed outside and wrong inside: checksums fit, contents do not."""

from __future__ import annotations

import copy
import gzip
import io
import json
import struct
import tarfile
import zipfile
import zlib
from typing import Any

import numpy as np

NUMBERS = (0, -1, 1, 2, 255, 2**16, 2**31 - 1, 2**31, 2**32, 2**63, 10**30, 0.5, -0.5, 1e-300, 1e308)
TEXTS = ("", "x", "\x1b[2J", "../../x", "/", "\x00", "é" * 2000, "SC[99, 99]-DP[1]", "DP[1]-" * 999, "float16")
OTHERS = (None, True, False, [], {}, [[]], [0], [2**20, 2**20], {"a": {}}, "[" * 2000)
VALUES: tuple[Any, ...] = (*NUMBERS, *TEXTS, *OTHERS)


def _drawn(rng: np.random.Generator, items):
    return items[int(rng.integers(len(items)))]


def _nodes(value, place=()) -> list[tuple]:
    """Places of all values in a JSON tree."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place] * bool(place) + [node for key, child in inside for node in _nodes(child, (*place, key))]


def forged_json(content: bytes, rng: np.random.Generator) -> bytes:
    """One to three values replaced, removed, or put in another's place."""
    tree = json.loads(content)
    for _ in range(int(rng.integers(1, 4))):
        places = _nodes(tree)
        if not places:
            break
        *path, key = _drawn(rng, places)
        parent = tree
        for step in path:
            parent = parent[step]
        how = rng.integers(5)
        if how == 0:
            del parent[key]
        elif how == 1 and isinstance(parent, dict):
            parent[_drawn(rng, TEXTS)] = copy.deepcopy(parent[key])  # JSON has no shared values
        elif how == 2 and isinstance(parent[key], (int, float)) and not isinstance(parent[key], bool):
            parent[key] = parent[key] * int(rng.integers(-2, 1000))
        else:
            parent[key] = copy.deepcopy(_drawn(rng, VALUES))  # the next change may be inside it
    return json.dumps(tree, ensure_ascii=bool(rng.integers(2))).encode("utf-8", "surrogatepass")


def _npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, (1, 0), allow_pickle=True)
    return stream.getvalue()


def _forged_array(content: bytes, rng: np.random.Generator) -> bytes:
    """Another shape, type or value, or a header that lies."""
    array = np.load(io.BytesIO(content), allow_pickle=False)
    how = rng.integers(6)
    if how == 0:
        return _npy(array.astype(_drawn(rng, ["<f8", ">f4", "<i8", "<c16", "?", "<f2", "S4"])))
    if how == 1:
        return _npy(array.ravel()[: int(rng.integers(array.size + 1))])
    if how == 2:
        return _npy(np.array([{"a": "pickled"}], object))
    if how == 3:
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({_drawn(rng, NUMBERS)},), }}"
        return content[:10] + header.encode().ljust(len(content[10:128])) + content[128:]
    flat = np.array(array).ravel()
    if flat.size and flat.dtype.kind == "f":
        with np.errstate(all="ignore"):
            extreme = [np.nan, np.inf, -1, 0, 1e30, 3e38, -3e38, 1e-40]
            flat[int(rng.integers(flat.size)) :][: int(rng.integers(1, 99))] = _drawn(rng, extreme)
    elif flat.size:
        flat[int(rng.integers(flat.size))] = _drawn(rng, [0, -1, 1, 2**31, 2**62])
    return _npy(flat.reshape(array.shape))


def forged_zip(content: bytes, rng: np.random.Generator) -> bytes:
    """A model file whose meta.json or arrays were changed, with checksums that fit."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = _drawn(rng, list(members))
    how = rng.integers(8)
    if how < 4 and "meta.json" in members:
        members["meta.json"] = forged_json(members["meta.json"], rng)
    elif how == 4:
        del members[name]
    elif how == 5:
        members[_drawn(rng, ["../x.npy", "x.npy", "meta.json/", name.upper(), "resume/best.npy"])] = members[name]
    elif name.endswith(".npy"):
        members[name] = _forged_array(members[name], rng)
    kind = zipfile.ZIP_DEFLATED if rng.integers(10) == 0 else zipfile.ZIP_STORED
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", kind) as archive:
        for member, data in members.items():
            archive.writestr(zipfile.ZipInfo(member), data, kind)
    return made.getvalue()


def forged_png(content: bytes, rng: np.random.Generator) -> bytes:
    """A chunk of a PNG changed, its checksum made to fit; a size that lies, more often than not."""
    chunks, place = [], 8
    while place + 8 <= len(content):
        n = struct.unpack_from(">I", content, place)[0]
        chunks.append((content[place + 4 : place + 8], bytearray(content[place + 8 : place + 8 + n])))
        place += 12 + n
    number = 0 if rng.integers(3) else int(rng.integers(len(chunks)))
    kind, data = chunks[number]
    if kind == b"IHDR":
        data[:8] = struct.pack(">II", *(int(_drawn(rng, [0, 1, 9, 3000, 40000, 2**31 - 1, 2**32 - 1])) for _ in "hw"))
        data[8:10] = bytes([int(_drawn(rng, [1, 2, 4, 8, 16, 3])), int(_drawn(rng, [0, 2, 3, 4, 6, 5]))])
    elif data:
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    if rng.integers(4) == 0:
        chunks.insert(
            number, (bytes(_drawn(rng, [b"tRNS", b"PLTE", b"iCCP", b"zTXt", b"acTL"])), bytearray(rng.bytes(40)))
        )
    made = content[:8]
    for kind, data in chunks:
        made += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return made


def forged_tar(content: bytes, rng: np.random.Generator) -> bytes:
    """A tar whose members have odd names, kinds or sizes, gzipped or not."""
    made = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(gzip.decompress(content))) as source,
        tarfile.open(
            fileobj=made, mode="w", format=_drawn(rng, [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
        ) as target,
    ):
        for info in source.getmembers():
            data = source.extractfile(info).read()
            if rng.integers(4) == 0:
                info.name = _drawn(rng, ["../out.png", "/etc/x", "a\\b", "x" * 90, "\x1b[31m.png", "", "C:/x"])
            if rng.integers(6) == 0:
                info.type = _drawn(rng, [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE, b"Z"])
                info.linkname, info.size, data = "../../etc/passwd", 0, b""
            target.addfile(info, io.BytesIO(data))
    plain = bytearray(made.getvalue())
    if rng.integers(3) == 0:  # a size that lies, with a checksum that fits
        plain[124:136] = _drawn(rng, [b"77777777777\x00", b"\x80" + bytes(3) + b"\xff" * 8, b"-0000000001\x00"])
        plain[148:156] = b" " * 8
        plain[148:156] = b"%06o\x00 " % sum(plain[:512])
    return gzip.compress(bytes(plain), 1, mtime=0) if rng.integers(2) else bytes(plain)


def forged_idx(content: bytes, rng: np.random.Generator) -> bytes:
    """A header that lies."""
    changed = bytearray(content)
    place = int(rng.integers(4)) * 4
    changed[place : place + 4] = struct.pack(">I", int(_drawn(rng, [0, 1, 28, 2**16, 2**31, 2**32 - 1])))
    return bytes(changed)
