"""Blocks of a page that a program writes: between two marks, replaced as a whole.

A mark is an HTML comment, `<!-- NAME: begin (how it is written) -->` or `<!-- NAME: end -->`. The tables of
`python -m benchmarks --write` are the block "results" of RESULTS.md in this folder.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

RESULTS = Path(__file__).parent / "RESULTS.md"
STALE = "<!-- stale: measured before the tables below were changed; to be written anew on a quiet machine -->"


def block_of(text: str, name: str = "results") -> str:
    """What stands between the marks of a name.

    >>> block_of("a <!-- x: begin --> b <!-- x: end --> c", "x")
    'b'
    """
    begin, end = _limits(text, name)
    return text[begin:end].strip()


def with_block(text: str, block: str, name: str = "results") -> str:
    """The text with another block.

    >>> with_block("a <!-- x: begin --> b <!-- x: end --> c", "new", "x")
    'a <!-- x: begin -->\\n\\nnew\\n\\n<!-- x: end --> c'
    """
    begin, end = _limits(text, name)
    return f"{text[:begin]}\n\n{block.strip()}\n\n{text[end:]}"


def with_section(block: str, name: str, section: str) -> str:
    """The block with another section, from its heading `#### NAME` to the next heading, or to the targets.

    >>> with_section("#### a\\n\\nold\\n\\n#### b\\n\\n**Targets**", "a", "new")
    '#### a\\n\\nnew\\n\\n#### b\\n\\n**Targets**'
    """
    (found,) = re.finditer(
        rf"^#### {re.escape(name)}\n.*?(?=^#### |^\*\*Targets\*\*$|\Z)", block, re.DOTALL | re.MULTILINE
    )
    return f"{block[: found.start()]}#### {name}\n\n{section.strip()}\n\n{block[found.end() :]}".rstrip()


def _limits(text: str, name: str) -> tuple[int, int]:
    """Where a block begins and ends; exactly one block must have the name."""
    (first,) = re.finditer(rf"<!-- {re.escape(name)}: begin\b.*?-->", text)
    (last,) = re.finditer(rf"<!-- {re.escape(name)}: end -->", text)
    return first.end(), last.start()


def tables_of(text: str) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """(title, columns, rows) of all tables that have a title in bold above them.

    >>> tables_of("**Title**\\n\\n| a | b |\\n| --- | --- |\\n| 1 | 2 |")
    [('Title', ('a', 'b'), [('1', '2')])]
    """
    tables, paragraphs = [], text.split("\n\n")
    for above, paragraph in pairwise(paragraphs):
        title = above.strip()
        if paragraph.startswith("|") and title.startswith("**") and title.endswith("**"):
            columns, _, *rows = (
                tuple(cell.strip() for cell in line.strip().strip("|").split(" | ")) for line in paragraph.splitlines()
            )
            tables.append((title.strip("*"), columns, rows))
    return tables
