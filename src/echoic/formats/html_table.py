"""Small tables as HTML, for notebooks. Everything in a cell is somebody's text, and is escaped and cut.

A notebook runs what it shows: a name or a value with a tag in it would be obeyed. So cells are made here and nowhere
else, of texts only, without styles or scripts; the notebook's own style sheet makes them look like its other tables.
"""

import html
from collections.abc import Iterable, Sequence
from typing import Final

from echoic.formats.checks import shown

__all__ = ["html_table"]

CELL_CHARACTERS_MAX: Final = 80


def html_table(caption: str, head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with a caption above it."""
    top = "".join(f"<th>{_cell(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows)
    table = f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>" if head else ""
    return f"<div><p><code>{_cell(caption)}</code></p>{table}</div>"


def _cell(value: object) -> str:
    text = shown(value)
    cut = text if len(text) <= CELL_CHARACTERS_MAX else text[:CELL_CHARACTERS_MAX] + "..."
    return html.escape(cut)
