"""Trial 19: everybody who must not be let in, at every door.

    a stranger dials us        {wrong authority, expired, not yet valid, self-signed, revoked, no certificate,
                                TLS 1.2, no TLS, HTTP} x every door
    we dial a stranger         {wrong authority, expired, not yet valid, self-signed, revoked, wrong host,
                                TLS 1.2, no TLS} x everything of ours that dials
    a stranger shows a token   {revoked, expired, not yet valid, forged, altered, ...} x whatever reads tokens, and the
                               page (`tls_served_doors`)
    a certificate expires      while a link, a member's connection, a client's connection stands by it (`tls_expiry`)
    a guest of a bus           whom TLS lets in without a certificate: {no token, a bad one, a revoked name that comes
                               back, ...} (`tls_guest_doors`)

The stranger writes down every byte. It must not be told anything: no byte inside TLS, no secret word outside of it, and
whoever does not even speak TLS 1.3 hears an alert at most. What it cannot be kept from is the listener's certificate,
which TLS shows to whoever begins a handshake, and which names the hub's owner and hosts.

Strangers come and are dialled all at once, since most of the time is spent on waiting for what must not come.

In every column somebody good comes too, and must be let in: a door that is shut for everybody proves nothing. The hosts
in the certificate of one who dials are not compared with where it comes from, since that is often a router; only who is
dialled must be where its certificate says.
"""

import socket
import ssl
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Self

from echoic.links import Identity, parse_address
from echoic.testing.trials.tls_doors import DOORS, KNOCKS, SECRETS, Door, Knock, Opened
from echoic.testing.trials.tls_expiry import expiry_problems
from echoic.testing.trials.tls_guest_doors import GUEST_DOORS, guest_problems
from echoic.testing.trials.tls_papers import BAD_PAPERS, Papers
from echoic.testing.trials.tls_peer import HEARD_BYTES_MAX, Heard, converse
from echoic.testing.trials.tls_served_doors import OPEN_DOORS, SERVED_DOORS, page_problems
from echoic.testing.trials.tls_tokens import token_problems
from echoic.testing.trials.tls_tool_doors import TOOL_DOORS, TOOL_KNOCKS
from echoic.testing.trials.trial import Findings, Tell

__all__ = ["door_problems", "knock_problems", "run"]

HEARING_SECONDS: Final = 7.0  # a handshake has five
HEARING_SECONDS_BAD: Final = 2.0  # for one whom we dial, and who is told nothing
KNOCKS_MAX: Final = 3
GOOD: Final = "somebody good"
NOTHING_SHOWN: Final = "no certificate"
ALERT_BYTES: Final = 7
ALERT: Final = 0x15
WELCOME: Final = b"\1"
HTTP: Final = b"GET / HTTP/1.1\r\nHost: hub\r\n\r\n"
SPEECHLESS: Final = frozenset({"TLS 1.2", "no TLS", "HTTP"})
"""Who does not begin a handshake of TLS 1.3, and so hears no certificate either."""


def run(size: int, seed: int, tell: Tell) -> Findings:  # noqa: ARG001 - there is no chance in it
    """Try all cells, `size` times."""
    problems: list[str] = []
    cells = 0
    for done in range(size):
        with tempfile.TemporaryDirectory() as folder:
            papers = Papers(Path(folder))
            for cell, problem in (
                *door_problems(papers, DOORS | TOOL_DOORS | SERVED_DOORS),
                *door_problems(papers, OPEN_DOORS, but={*BAD_PAPERS, NOTHING_SHOWN}),
                *knock_problems(papers, KNOCKS | TOOL_KNOCKS),
                *token_problems(papers.authority),
                *expiry_problems(papers),
                *door_problems(papers, GUEST_DOORS, but={NOTHING_SHOWN}),
                *guest_problems(papers),
                *page_problems(papers),
            ):
                cells += 1
                if problem:
                    problems.append(f"{cell}: {problem}")
        tell(done + 1)
    return Findings(tuple(problems), {"cells": cells})


def door_problems(
    papers: Papers, doors: Mapping[str, Door] = DOORS, but: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    """Yield every cell of strangers that dial us, but for some, with what is wrong in it, "" if nothing is."""
    callers = {kind: context for kind, context in _callers(papers).items() if kind not in but}
    for name, open_door in doors.items():
        with open_door(papers.good) as door, ThreadPoolExecutor(len(callers)) as pool:
            problems = pool.map(lambda kind, door=door: _stranger_problem(door, kind, callers[kind]), callers)
            yield from zip((f"{kind} at {name}" for kind in callers), problems, strict=True)
            # Most doors have more to say to somebody good; it is heard too, so that they have really let it in.
            good = _dial(door, papers.context(papers.other, listening=False), door.piece, enough=len(door.welcome) + 1)
            yield f"somebody good at {name}", "" if good.said.startswith(door.welcome) else "it was not let in"


def knock_problems(papers: Papers, knocks: Mapping[str, Knock] = KNOCKS) -> Iterator[tuple[str, str]]:
    """Yield every cell of strangers that we dial with what is wrong in it, "" if nothing is."""
    kinds = (*BAD_PAPERS, "wrong host", "TLS 1.2", "no TLS", GOOD)
    cells = {f"{name} to {kind}": (knock, kind) for name, knock in knocks.items() for kind in kinds}
    with ThreadPoolExecutor(len(cells)) as pool:
        yield from zip(cells, pool.map(lambda cell: _knock_problem(papers, *cell), cells.values()), strict=True)


def _stranger_problem(door: Opened, kind: str, context: ssl.SSLContext | None) -> str:
    heard = _dial(door, context, HTTP if kind == "HTTP" else door.piece)
    return _told(kind, heard, door.secrets)


def _knock_problem(papers: Papers, knock: Knock, kind: str, tries: int = KNOCKS_MAX) -> str:
    """Return what is wrong with what one whom we dial is told; again if nobody came, since one may be too busy."""
    who, old = papers.bad.get(kind, papers.other), kind == "TLS 1.2"
    with Impostor(None if kind == "no TLS" else _serving(papers, who, old=old), good=kind == GOOD) as impostor:
        knock(papers.good, impostor.address)
    if tries > 1 and not impostor.heard:
        return _knock_problem(papers, knock, kind, tries - 1)
    return impostor.problem()


class Impostor:
    """Listens where somebody of ours dials, welcomes everybody, and writes down what it is told."""

    def __init__(self, context: ssl.SSLContext | None, *, good: bool = False) -> None:
        """Listen, and speak so; with `good` it may be told everything, and must be."""
        self.heard: Final[list[Heard]] = []
        self._context, self._good = context, good
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(HEARING_SECONDS)
        self.address: Final = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self._threads: list[threading.Thread] = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *error: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in list(self._threads):
            thread.join(HEARING_SECONDS)

    def problem(self) -> str:
        """Return what is wrong with what was heard, "" if nothing is."""
        if not self.heard:
            return "nobody came"
        said = b"".join(each.said for each in self.heard) if self._context is not None else b""
        if self._good:
            return "" if said else "it was told nothing"
        if said:
            return f"it was told {said[:80]!r}"
        words = _words(b"".join(each.wire for each in self.heard), SECRETS)
        return f"it heard {words} outside of TLS" if words else ""

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listening.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._converse, args=(plain,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _converse(self, plain: socket.socket) -> None:
        seconds, enough = (HEARING_SECONDS, 1) if self._good else (HEARING_SECONDS_BAD, HEARD_BYTES_MAX)
        self.heard.append(converse(plain, self._context, WELCOME, seconds, listening=True, enough=enough))


def _callers(papers: Papers) -> dict[str, ssl.SSLContext | None]:
    """Return how each stranger speaks; None where it speaks no TLS."""
    nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    nobody.check_hostname = False
    nobody.verify_mode = ssl.CERT_NONE
    old = papers.context(papers.other, listening=False)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    believed = {kind: papers.context(papers.bad[kind], listening=False) for kind in BAD_PAPERS}
    return {**believed, NOTHING_SHOWN: nobody, "TLS 1.2": old, "no TLS": None, "HTTP": None}


def _serving(papers: Papers, who: Identity, *, old: bool = False) -> ssl.SSLContext:
    context = papers.context(who, listening=True)
    if old:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


def _dial(door: Opened, context: ssl.SSLContext | None, piece: bytes, enough: int = HEARD_BYTES_MAX) -> Heard:
    plain = socket.create_connection(parse_address(door.address), HEARING_SECONDS)
    return converse(plain, context, piece, HEARING_SECONDS, enough=enough)


def _told(kind: str, heard: Heard, secrets: tuple[str, ...]) -> str:
    """Return what is wrong with what a stranger was told, "" if nothing is."""
    if not heard.ended:
        return f"it was not refused within {HEARING_SECONDS:g} s"
    if kind in SPEECHLESS:
        alert = len(heard.wire) == ALERT_BYTES and heard.wire[0] == ALERT
        return "" if alert or not heard.wire else f"it heard more than an alert: {heard.wire[:80]!r}"
    if heard.said:
        return f"it was told {heard.said[:80]!r}"
    words = _words(heard.wire, secrets)
    return f"it heard {words} outside of TLS" if words else ""


def _words(heard: bytes, secrets: tuple[str, ...]) -> list[str]:
    return [word for word in secrets if word.encode() in heard]
