"""Pure. What does a text in Python's spelling say? From a function's source to C's tree."""

from echoic.ecode.python_spelling.parsing import parse_python, source_of

__all__ = ["parse_python", "source_of"]
