"""What people see: text that came from strangers, and words on stderr.

Events, names and error messages come from other processes, and a terminal obeys some characters: it can be made to
clear the screen, to retitle its window, to show text in another order. So everything that is printed passes through
`printable`, which spells such characters out.
"""

import sys
from collections.abc import Callable
from typing import Final

import msgspec

__all__ = ["json_text", "printable", "quoted", "say"]

ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


def printable(text: str, keep: str = "") -> str:
    """Return a text in which each character that could drive a terminal is spelled out, but for those in `keep`."""
    return text if text.isprintable() else _spelled(text, _escape, keep)


def quoted(text: str) -> str:
    """Return a text in double quotes, as YAML and Python read it."""
    return '"' + printable(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def json_text(value: object) -> str:
    """Return plain values as one line of JSON that no terminal obeys."""
    text = msgspec.json.encode(value).decode()
    return text if text.isprintable() else _spelled(text, _json_escape, "")


def say(message: str) -> None:
    """Tell people something, on stderr."""
    print(printable(message, keep="\n"), file=sys.stderr, flush=True)


def _spelled(text: str, escape: Callable[[str], str], keep: str) -> str:
    return "".join(each if each.isprintable() or each in keep else escape(each) for each in text)


def _escape(character: str) -> str:
    code = ord(character)
    if character in ESCAPES:
        return ESCAPES[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
