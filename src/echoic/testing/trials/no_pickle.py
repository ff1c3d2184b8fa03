"""Trial 22: pickles at every port. They are bad frames and nothing else.

First the sources are read: nothing in them could unpickle. Then every door of the product is open in this process, and
is sent pickles that make a file when they are unpickled: bare, with a length before them, compressed, as the body and
the cookie of a request, inside frames of every kind, terms of tools, messages of WebSockets that were let in. The file
must never be there, and after all of them each door has a word for an honest guest.
"""

import contextlib
import itertools
import random
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import echoic
from echoic.errors import EchoicError
from echoic.testing.trials.doors import open_doors
from echoic.testing.trials.forbidden_code import forbidden_in
from echoic.testing.trials.knocking import Door, masked, upgrade
from echoic.testing.trials.pickle_bombs import bombs, framed_bombs
from echoic.testing.trials.trial import Figure, Findings, Tell

__all__ = ["bombard", "run"]

ANSWER_SECONDS: Final = 0.5


def run(size: int, seed: int, tell: Tell) -> Findings:
    """Send so many pickles to each port."""
    begun = time.monotonic()
    package = Path(echoic.__file__).parent
    problems = forbidden_in(package)
    sent = 0
    with tempfile.TemporaryDirectory(prefix="echoic-pickles-") as folder, open_doors() as doors:
        for door in doors:
            mark = Path(folder) / door.name
            problems += bombard(door, mark, size, seed)
            sent += size
            tell(min(size, sent // len(doors)))
        names = ", ".join(door.name for door in doors)
        problems += [f"`{path.name}` has unpickled what came" for path in Path(folder).iterdir()]
    figures: dict[str, Figure] = {
        "ports": len(doors),
        "pickles": sent,
        "doors": names,
        "seconds": round(time.monotonic() - begun, 1),
    }
    return Findings(tuple(f"{each} [seed {seed}]" for each in problems), figures)


def bombard(door: Door, mark: Path, size: int, seed: int) -> list[str]:
    """Send pickles to a port, each of which would make the file `mark`; return what is wrong then."""
    for bomb in itertools.islice(_mixture(door, mark, random.Random(seed)), size):
        if not _deliver(door, bomb):
            return [f"{door.name} did not let a connection in, after a pickle that began with {bomb[:40]!r}"]
        if mark.exists():
            return [f"{door.name} has unpickled what began with {bomb[:40]!r}"]
    try:
        door.visit()
    except (EchoicError, OSError) as error:
        return [f"{door.name} serves nobody after the pickles: {error}"]
    return []


def _mixture(door: Door, mark: Path, chance: random.Random) -> Iterator[bytes]:
    """Yield pickles of every wrapping, and for a WebSocket those that are said when it is open."""
    plain, framed = bombs(mark, chance), framed_bombs(mark, chance)
    while True:
        yield next(plain)
        yield next(framed)
        if door.websocket:
            request = upgrade(door.address, door.websocket, door.headers)
            yield request + masked(next(plain), binary=True)
            yield request + masked(next(framed), binary=chance.random() < 0.5)


def _deliver(door: Door, bomb: bytes) -> bool:
    """Send a bomb and wait until it was looked at; whether anybody was there.

    Whoever has read it all answers or hangs up; the end of the stream is told to it, so that it need not wait for more.
    """
    try:
        connection = door.connect()
    except OSError:
        return False
    with connection, contextlib.suppress(OSError):  # it may hang up in the middle, as it should
        connection.sendall(bomb)
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(ANSWER_SECONDS)
        while connection.recv(65536):
            pass
    return True
