"""The results in README.md: a block between two marks, replaced as a whole by `python -m benchmarks --readme`."""

from __future__ import annotations

from pathlib import Path

README = Path(__file__).parent / "README.md"
BEGIN = "<!-- results: begin (written by `python -m benchmarks --readme`; replaced as a whole) -->"
END = "<!-- results: end -->"
STALE = "<!-- stale: measured before the tables below were changed; to be written anew on a quiet machine -->"


def block_of(text: str) -> str:
    """What stands between the marks.

    >>> block_of(f"a {BEGIN} b {END} c")
    'b'
    """
    return text[text.index(BEGIN) + len(BEGIN) : text.index(END)].strip()


def with_block(text: str, block: str) -> str:
    """The text with another block.

    >>> with_block(f"a {BEGIN} b {END} c", "new") == f"a {BEGIN}\\n\\nnew\\n\\n{END} c"
    True
    """
    return f"{text[: text.index(BEGIN)]}{BEGIN}\n\n{block.strip()}\n\n{text[text.index(END) :]}"


def tables_of(text: str) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """(title, columns, rows) of all tables that have a title in bold above them.

    >>> tables_of("**Title**\\n\\n| a | b |\\n| --- | --- |\\n| 1 | 2 |")
    [('Title', ('a', 'b'), [('1', '2')])]
    """
    tables, paragraphs = [], text.split("\n\n")
    for above, paragraph in zip(paragraphs[:-1], paragraphs[1:], strict=True):
        title = above.strip()
        if paragraph.startswith("|") and title.startswith("**") and title.endswith("**"):
            columns, _, *rows = (
                tuple(cell.strip() for cell in line.strip().strip("|").split(" | ")) for line in paragraph.splitlines()
            )
            tables.append((title.strip("*"), columns, rows))
    return tables
