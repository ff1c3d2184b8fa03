"""Where things stand in a Python text, as people count: lines and characters from 1.

Python's `ast` counts columns in bytes of UTF-8 and does not say where operators stand; both are mended here. An
operator lies between its operands, where nothing else can be but blanks, brackets and comments.
"""

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from echoic.ecode.syntax.text import SourceText
    from echoic.ecode.typed import Position

__all__ = ["Places"]


class Places:
    """Finds the positions of the parts of one text."""

    def __init__(self, text: "SourceText") -> None:
        self._lines = text.lines

    def start(self, node: ast.AST) -> "Position":
        """Return where a node begins; the start of the text for nodes that have no place."""
        return self._position(getattr(node, "lineno", 1), getattr(node, "col_offset", 0))

    def operator(self, left: ast.expr, right: ast.expr, symbol: str) -> "Position":
        """Return where the operator between two operands stands; the start of the left one if they are lines apart."""
        line, column = self._position(left.end_lineno or left.lineno, left.end_col_offset or 0)
        end_line, end_column = self.start(right)
        found = self._lines[line - 1].find(symbol, column - 1, end_column - 1) if line == end_line else -1
        return (line, found + 1) if found >= 0 else self.start(left)

    def after(self, node: ast.expr, symbol: str) -> "Position":
        """Return where `symbol` stands behind a node, as `[` does behind an array; the node's start if it is not there.

        Blanks between them are allowed, another line is not.
        """
        line, column = self._position(node.end_lineno or node.lineno, node.end_col_offset or 0)
        found = self._lines[line - 1].find(symbol, column - 1)
        return (line, found + 1) if found >= 0 else self.start(node)

    def attribute(self, node: ast.Attribute) -> "Position":
        """Return where the name of an attribute begins."""
        line, column = self._position(node.end_lineno or node.lineno, node.end_col_offset or 0)
        return line, max(1, column - len(node.attr))

    def _position(self, line: int, column_bytes: int) -> "Position":
        if not 0 < line <= len(self._lines):
            return 1, 1
        text = self._lines[line - 1]
        if text.isascii():
            return line, column_bytes + 1
        return line, len(text.encode("utf-8", "replace")[:column_bytes].decode("utf-8", "ignore")) + 1
