"""Pure. What does a text in C's spelling say? Lexer, parser, and the tree that both spellings become."""

from echoic.ecode.syntax.parser import parse
from echoic.ecode.syntax.text import SourceText

__all__ = ["SourceText", "parse"]
