"""How two terminals find each other when nobody has started anything.

Whoever stays (pub, echo, hz, bw, top, up) tries to listen at the address of the name server, if that is on this
machine. One succeeds and serves names, by a second hub in its process; the others try again once a second, so that
another takes over when it ends. The port decides who wins, and the hubs enter their channels anew by themselves.

    terminal 1: echo     listens at 127.0.0.1:7400, serves names
    terminal 2: pub      finds it taken; enters its channel there
    terminal 1 ends      pub listens at 127.0.0.1:7400 within a second, serves names, enters its channel again

Who only looks (ls, info, type) never serves: it would answer its own question with "nothing".
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from echoic.cli.screen import say
from echoic.cli.settings import LISTEN_DEFAULT, did_you_mean
from echoic.cli.teller import tell_warnings
from echoic.cli.where import Where, chosen_rights, surroundings
from echoic.errors import ChannelNotFoundError, InsecureError, UnreachableError
from echoic.hub import Hub
from echoic.links import Identity, is_loopback, own_credentials, parse_address
from echoic.trust import identity_names

__all__ = ["Meeting", "attend", "check_open", "identity_named", "open_hub", "stay", "visit"]

TRY_SECONDS: Final = 1.0
LOOK_SECONDS: Final = 0.25
EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared, not listened at
DIALLED: Final = frozenset({"up", "names"})  # verbs whose hub is there for others


class Meeting:
    """Serves names at an address whenever nobody else does."""

    def __init__(self, address: str, identity: Identity | None = None, rights: Path | None = None) -> None:
        self.address: Final = address
        self._identity = identity
        self._rights = rights
        self._hub: Hub | None = None
        self._closing = threading.Event()
        self._lock = threading.Lock()

    @property
    def serving(self) -> bool:
        """Whether names are served here."""
        return self._hub is not None

    def __enter__(self) -> Self:
        if is_loopback(parse_address(self.address)[0]):
            self._try()
            threading.Thread(target=self._keep_trying, name="echoic-meeting", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        with self._lock:
            hub, self._hub = self._hub, None
        if hub is not None:
            hub.close()

    def _keep_trying(self) -> None:
        while not self._closing.wait(TRY_SECONDS):
            self._try()

    def _try(self) -> None:
        """Serve, if the address is free."""
        with self._lock:
            if self._hub is not None or self._closing.is_set() or not _is_free(self.address):
                return
            try:
                self._hub = Hub(self.address, name="echoic names", identity=self._identity, rights=self._rights)
            except UnreachableError:
                return  # somebody was faster
        tell_uncovered(self.address, self._identity)


def identity_named(name: str) -> Identity | None:
    """Return an identity of this machine; None for no name.

    Raises:
        LocalError: Nobody can be called this.
        ChannelNotFoundError: There is none of this name.
        InsecureError: Others than its owner may read its key.
    """
    if not name:
        return None
    known = identity_names()
    if name not in known:
        hint = did_you_mean(name, known)
        raise ChannelNotFoundError(f"there is no identity '{name}'{hint} (echoic keys list; echoic keys issue {name})")
    return Identity.named(name)


def check_open(
    listen: str, *, insecure: bool, identity: object | None = None, remedy: str = "name an --identity (echoic keys)"
) -> str:
    """Return the host of an address to listen at, which is not open to strangers by mistake.

    Args:
        listen: The address.
        insecure: Whether it was said that strangers may read along.
        identity: By what it speaks TLS: an identity, or a certificate and its key; None if it does not.
        remedy: Which options would make it speak TLS.

    Raises:
        AddressError: It is not an address.
        InsecureError: It can be reached from other machines, and nobody said that this is meant.
    """
    host, _ = parse_address(listen)
    if not insecure and identity is None and not is_loopback(host):
        raise InsecureError(
            f"{listen} can be reached from other machines, in the clear: {remedy}, or pass --insecure if meant"
        )
    return host


def open_hub(
    listen: str, names: str, verb: str, *, insecure: bool, identity: str = "", rights: Path | None = None
) -> Hub:
    """Return a hub for a verb.

    Raises:
        LocalError: `rights` is no file of rules.
        AddressError: `listen` is not an address.
        InsecureError: It can be reached from other machines, and nobody said that this is meant.
        UnreachableError: It cannot be listened at.
    """
    who = identity_named(identity)
    check_open(listen, insecure=insecure, identity=who)
    tell_warnings()
    hub = Hub(listen, names=names, name=f"echoic {verb}", insecure=insecure, identity=who, rights=rights)
    if listen != LISTEN_DEFAULT or verb in DIALLED:  # others may never need to dial it
        tell_uncovered(hub.address, who)
    return hub


def tell_uncovered(address: str, identity: Identity | None) -> None:
    """Say that an address is not one at which others believe an identity, if so; of all interfaces nobody knows.

    Raises:
        InsecureError: The certificate cannot be read.
    """
    host, _ = parse_address(address)
    if identity is None or host in EVERYWHERE:
        return
    shown = own_credentials(identity)
    if not shown.covers(host):
        hosts = sorted(shown.hosts)
        every = " ".join(f"--host {each}" for each in (*hosts, host))
        say(
            f"who dials {address} does not believe `{shown.name}`, whose certificate is for "
            f"{', '.join(hosts) or 'no host'} and not for {host}: "
            f"`echoic keys issue {shown.name} {every} --force` makes one for it"
        )


@contextmanager
def visit(where: Where, verb: str) -> Iterator[Hub]:
    """Give a hub to look around with.

    Raises:
        AddressError: What was set is not an address.
        InsecureError: Strangers could reach the hub.
    """
    found = surroundings(where)
    rights = chosen_rights(where.rights)
    with open_hub(
        found.listen, found.names, verb, insecure=found.insecure, identity=found.identity, rights=rights
    ) as hub:
        yield hub


@contextmanager
def attend(where: Where, verb: str) -> Iterator[Hub]:
    """Give a hub to stay with; names are served meanwhile if nobody else does.

    Raises:
        AddressError: What was set is not an address.
        InsecureError: Strangers could reach the hub.
    """
    found = surroundings(where)
    meeting = Meeting(found.names, identity_named(found.identity), chosen_rights(where.rights))
    with meeting, visit(where, verb) as hub:
        yield hub


def stay() -> None:
    """Wait for Ctrl-C, which raises KeyboardInterrupt. A wait without end may miss one that comes as it begins."""
    never = threading.Event()
    while not never.wait(LOOK_SECONDS):
        pass


def _is_free(address: str) -> bool:
    """Tell whether nobody listens at an address, without the cost of a hub."""
    host, port = parse_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError:
        return False
    return True
