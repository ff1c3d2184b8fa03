"""The cells of trial 19 in which time passes: a certificate that expires while what it has opened stands.

TLS asks for certificates at the beginning alone, and connections stand for months. So each kind is made by somebody
whose certificate is as good as any other, but for some seconds only. It must be let in as long as it is good, and be
hung up on soon after.

Whoever adds a kind of connection that stands adds a row to `STANDING`.
"""

import contextlib
import datetime
import http.client
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Final, TypeAlias

from echoic.errors import EchoicError
from echoic.hub import Hub
from echoic.links import Identity
from echoic.replicas.http_server import Answer, HttpServer
from echoic.testing.trials.tls_doors import CHANNEL, GROUP, LOOPBACK, HiddenEvent
from echoic.testing.trials.tls_papers import HOST, Papers
from echoic.trust import identity_path, write_private
from echoic.trust.authority import Authority
from echoic.trust.certificates import make_certificate, read_certified

__all__ = ["STANDING", "Standing", "expiry_problems", "issue_brief"]

GOOD_SECONDS: Final = (5.0, 15.0, 45.0)  # the first is enough, unless the machine has much else to do
SOON_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 0.1

Standing: TypeAlias = Callable[[Identity, Identity], AbstractContextManager[Callable[[], bool]]]
"""Connects one whose certificate will expire to one with a good identity; gives what tells whether that stands."""


def expiry_problems(papers: Papers, standing: Mapping[str, Standing] | None = None) -> Iterator[tuple[str, str]]:
    """Yield every cell of connections that outlive a certificate with what is wrong in it, "" if nothing is."""
    kinds = STANDING if standing is None else standing
    with ThreadPoolExecutor(len(kinds)) as pool:
        problems = pool.map(lambda name: _problem(papers, name, kinds[name]), kinds)
        yield from zip((f"expires at standing {name}" for name in kinds), problems, strict=True)


def issue_brief(authority: Authority, name: str, seconds: float) -> Identity:
    """Issue a certificate that expires after some seconds, which is in no ledger, in place of the one before."""
    folder = authority.folder
    ours = read_certified((folder / "authority.pem").read_bytes(), (folder / "authority.key").read_bytes(), str(folder))
    begins = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=-1, seconds=seconds)
    made = make_certificate(ours, name, [HOST], begins, 1)
    path = identity_path(name, folder.parent)
    write_private(path, made.key_pem() + made.certificate_pem(), replace=True)
    return Identity.named(name, folder.parent)


@contextlib.contextmanager
def hub_stands(good: Identity, brief: Identity) -> Iterator[Callable[[], bool]]:
    """Link two hubs."""
    with Hub(LOOPBACK, identity=good) as hub, Hub(LOOPBACK, identity=brief) as other:
        opened = other.open(hub.create(CHANNEL, HiddenEvent).id, HiddenEvent)
        with opened.subscribe(lambda _: None):
            yield lambda: any(link.connected for link in hub.statistics().links)


@contextlib.contextmanager
def member_stands(good: Identity, brief: Identity) -> Iterator[Callable[[], bool]]:
    """Make a group of two."""
    with Hub(LOOPBACK, identity=good) as hub, Hub(LOOPBACK, identity=brief) as other:
        peers = {"a": hub.address, "b": other.address}
        member = hub.join(GROUP, HiddenEvent, me="a", peers=peers)
        other.join(GROUP, HiddenEvent, me="b", peers=peers)
        member.wait_for(lambda view: len(view.members) == len(peers))
        yield lambda: member.view.primary or bool(member.statistics().engine["connected"])


@contextlib.contextmanager
def client_stands(good: Identity, brief: Identity) -> Iterator[Callable[[], bool]]:
    """Ask a service again and again, on one connection."""
    server = HttpServer(LOOPBACK, lambda _: Answer(200, {}), identity=good)
    host, _, port = server.address.rpartition(":")
    connection = http.client.HTTPSConnection(host, int(port), context=brief.dialling_context(), timeout=SOON_SECONDS)

    def answered() -> bool:
        try:
            connection.request("GET", "/")
            return connection.getresponse().read() != b""
        except (OSError, http.client.HTTPException):
            connection.close()
            return False

    try:
        yield answered
    finally:
        connection.close()
        server.close()


STANDING: Final[dict[str, Standing]] = {
    "hub link": hub_stands,
    "group member link": member_stands,
    "service": client_stands,
}


def _problem(papers: Papers, name: str, kind: Standing) -> str:
    """Return what is wrong with a kind of connection; again with more time if it did not stand when it should."""
    problem = ""
    for seconds in GOOD_SECONDS:
        brief = issue_brief(papers.authority, f"brief-{name.replace(' ', '-')}", seconds)
        expires = time.time() + seconds
        try:
            with kind(papers.good, brief) as stands:
                if stands():
                    return _end_of(stands, expires)
            problem = f"it did not stand while its certificate was good for {seconds:g} s"
        except EchoicError as error:
            problem = f"it was not let in while its certificate was good for {seconds:g} s: {error}"
    return problem


def _end_of(stands: Callable[[], bool], expires: float) -> str:
    """Return what is wrong with how a connection ends that stands, "" if it does so soon enough."""
    while stands():
        if time.time() > expires + SOON_SECONDS:
            return f"it stands {SOON_SECONDS:g} s after its certificate has expired"
        time.sleep(LOOK_SECONDS)
    return "" if time.time() > expires - 1 else "it was hung up on before its certificate had expired"
