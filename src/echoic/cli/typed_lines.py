"""Lines that are typed or piped, read beside other work, and what they spell.

They are read from the descriptor and not through `sys.stdin`: a thread that waits there holds a lock which Python wants
to have when it ends. A line is JSON, the same with fewer quotes, or field=value for each field, as `echoic pub` has it.
"""

import os
import select
import shlex
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Final

from echoic.errors import EncodeError
from echoic.formats import Format
from echoic.formats.text_values import fit_event, parse_json, parse_words
from echoic.wire import Batch

__all__ = ["event_of_line", "typed_lines"]

READ_BYTES: Final = 64 * 1024
LINE_BYTES_MAX: Final = 16 * 1024 * 1024
WAKE_SECONDS: Final = 0.1


def typed_lines(stopped: threading.Event) -> Iterator[str]:
    """Yield the lines of standard input that are not empty, until it ends or somebody has had enough.

    Raises:
        EncodeError: A line is too long.
    """
    yield from _lines(stopped, _input())


def _input() -> Callable[[], bytes | None]:
    """Return what gives the next bytes: b"" at the end, None when there are none yet."""
    descriptor = sys.stdin.fileno()

    def read() -> bytes | None:
        return os.read(descriptor, READ_BYTES) if select.select([descriptor], [], [], WAKE_SECONDS)[0] else None

    return read


def _lines(stopped: threading.Event, read: Callable[[], bytes | None]) -> Iterator[str]:
    waiting = b""
    while not stopped.is_set():
        data = read()
        if data is None:
            continue
        *whole, waiting = (waiting + data).split(b"\n")
        if not data:
            whole.append(waiting)
        for line in whole:
            if line.strip():
                yield line.decode("utf-8", "replace")
        if not data:
            return
        if len(waiting) > LINE_BYTES_MAX:
            raise EncodeError(f"a line has more than {LINE_BYTES_MAX} bytes")


def event_of_line(line: str, format: Format) -> object:
    """Return the event that a line spells, such that it can be encoded.

    Raises:
        EncodeError: It spells none of this type.
        FormatError: It has a field that the type has not.
    """
    event = fit_event(_value(line.strip()), format)
    Batch.of([event], format)
    return event


def _value(line: str) -> object:
    if not line.startswith("{"):
        try:
            return parse_words(shlex.split(line))
        except ValueError as error:
            raise EncodeError(f"{error} - in `{line[:60]}`") from error
    try:
        return parse_json(line)
    except EncodeError:
        return parse_words([line])
