"""Plain tables: columns of text with two spaces between, which people read and `awk` splits.

They are drawn by hand because importing rich's tables would take a good part of the time in which `ls` answers.
"""

from collections.abc import Sequence

from echoic.cli.screen import printable

__all__ = ["print_table", "table_lines"]


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; numbers stand to the right."""
    for line in table_lines(columns, rows):
        print(line)


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return the lines of a table."""
    cells = [[printable(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    right = [
        bool(rows) and all(isinstance(row[at], int | float) or row[at] == "" for row in rows)
        for at in range(len(columns))
    ]
    return [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in [list(columns), *cells]
    ]
