"""Rows of CSV files (RFC 4180, UTF-8) that a spreadsheet shows as text, whatever their cells are called."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")  # how a formula begins in a spreadsheet


def csv_row(cells: Iterable, end: str = "\r\n") -> str:
    """Return a line of a CSV file; texts are quoted where needed and made safe, numbers stay as they are.

    Parameters
    ----------
    cells : iterable of str or number
        The cells.
    end : str
        Line end; RFC 4180 asks for the default.

    Returns
    -------
    str
        The line with its end.

    Examples
    --------
    >>> csv_row(["a,b", "=1+1", -0.5], end="")
    '"a,b",\\'=1+1,-0.5'
    """
    line = io.StringIO(newline="")
    csv.writer(line, lineterminator=end).writerow(safe_cell(c) if isinstance(c, str) else c for c in cells)
    return line.getvalue()


def safe_cell(text: str) -> str:
    """Return a text with an apostrophe before it if a spreadsheet would take it for a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text


def safe_path(path: str) -> str:
    """Return a path for a cell: `./=a.png` for `=a.png`, which is the same file and no formula.

    Bytes that are not UTF-8 are written as \\\\xNN.
    """
    path = f"./{path}" if path.startswith(FORMULA) else path
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def distinct_columns(names: Iterable[str], taken: Iterable[str]) -> list[str]:
    """Return names for columns, changed where a column is called so already.

    Examples
    --------
    >>> distinct_columns(["cat", "error", "error (class)"], taken=["path", "error"])
    ['cat', 'error (class) (class)', 'error (class)']
    """
    names = list(names)
    known = {*taken, *names}
    columns = []
    for name in names:
        if name in taken:
            while name in known:
                name += " (class)"
            known.add(name)
        columns.append(name)
    return columns
