"""JSON files with a checksum, for caches: what was damaged, or belongs to something else, is noticed."""

from __future__ import annotations

import hashlib
import json
from typing import Any

START, MIDDLE, END = b'{"checksum": "', b'", "content": ', b"}\n"
N_DIGITS = 64


def packed(content: Any, label: str) -> bytes:
    """Return the bytes of a JSON file; the checksum covers content and label.

    >>> text = packed([1, 2], "numbers")
    >>> unpacked(text, "numbers")
    [1, 2]
    >>> unpacked(text.replace(b"2]", b"3]"), "numbers")
    Traceback (most recent call last):
    ValueError: The checksum is wrong.
    """
    body = json.dumps(content).encode()
    return START + _checksum(body, label) + MIDDLE + body + END


def unpacked(text: bytes, label: str) -> Any:
    """Return the content of a JSON file; raise ValueError if it is not what `packed` made with this label."""
    start = len(START) + N_DIGITS + len(MIDDLE)
    body = text[start : -len(END)]
    if text != START + _checksum(body, label) + MIDDLE + body + END:
        raise ValueError("The checksum is wrong.")
    return json.loads(body)


def _checksum(body: bytes, label: str) -> bytes:
    return hashlib.sha256(label.encode() + b"\n" + body).hexdigest().encode()
