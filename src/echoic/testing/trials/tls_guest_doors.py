"""The door of a bus with issuers for trial 19: it hears who shows no certificate, so that TLS alone refuses nobody.

    nothing to show      hello under a name there is and one there is not; as one that was started; as one that comes
                         back, by a secret that is right, also of one whose certificate was revoked meanwhile
    a token              {revoked, expired, not yet valid, forged, altered, ...}; for another tool, for another right,
                         for a tool that is not there, of a name that the rights deny
    a certificate        of a name that the rights deny; of another than was cut off; revoked meanwhile

Each says hello as a tool does, and may hear one refusal, in which no tool is named that it has not named itself; and
all who have nothing to show must hear the same. In the end somebody good comes in by a certificate, by a token, and
back after a break: a door that is shut for everybody proves nothing.

What TLS refuses is tried at this door as at all others (`GUEST_DOORS`), but for who shows no certificate.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from echoic.errors import EchoicError, UnreachableError
from echoic.links import Identity, Visitor
from echoic.rights import parse_rights
from echoic.testing.trials.tls_doors import LOOPBACK, SECRETS, Door, Opened
from echoic.testing.trials.tls_papers import HOST, Papers
from echoic.testing.trials.tls_tokens import bad_tokens
from echoic.testing.trials.tls_tool_doors import SCRIPT, TOOL
from echoic.trust import Issuers

__all__ = ["GUEST_DOORS", "Guests", "guest_problems", "open_guest_door"]

OTHER_TOOL: Final = "hidden-second"
GUESS: Final = "guess"
DENIED: Final = "mallory"
RULES: Final = f"allow * publish tool:*\ndeny {DENIED} * *"
PLACE: Final = "at a bus with issuers"
LEASE_SECONDS: Final = 20.0
TIMEOUT_SECONDS: Final = 5.0
NOT_TOLD: Final = (TOOL, OTHER_TOOL, "hidden-person")


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who says hello to a bus."""

    party: Identity | Visitor
    name: str
    hello: Mapping[str, Any] = field(default_factory=dict)
    """What else it says."""


@dataclass(frozen=True, slots=True)
class Guests:
    """A bus with issuers, a lease and rights, and what it takes to knock at it."""

    bus: Any
    papers: Papers

    @property
    def visitor(self) -> Visitor:
        """Somebody without a certificate, who knows the authority."""
        return Visitor(self.papers.good.authority, self.papers.good.revoked)

    def refusal(self, caller: Caller) -> str | None:
        """Return what somebody is told who is refused, None if it is let in."""
        try:
            self._greet(caller).connection.close()
        except EchoicError as error:
            return str(error)
        return None

    def issued(self, name: str) -> Identity:
        """Return the identity of somebody."""
        self.papers.authority.issue(name, [HOST])
        return Identity.named(name, self.papers.root)

    def token(self, tool: str, right: str = "publish", who: str = "somebody") -> str:
        """Return a good token."""
        return self.papers.authority.issue_token(who, [right], [f"tool:{tool}"], 600)

    def cut_off(self, party: Identity | Visitor, token: str = "") -> dict[str, Any]:
        """Have a tool come in and lose its connection; return what it says when it comes back.

        Raises:
            UnreachableError: The bus does not wait for it.
        """
        protocol = import_module("echoic.toolbus.protocol")
        tokens = import_module("echoic.toolbus.references.tokens")
        greeted = self._greet(Caller(party, TOOL, {"token": token, "features": (protocol.REFERENCES,)}))
        number, told = greeted.greeting.number, greeted.greeting.registration
        greeted.connection.close()
        pause, deadline = threading.Event(), time.monotonic() + TIMEOUT_SECONDS
        while number not in self.bus._leases._suspended:  # noqa: SLF001 - nothing else tells
            if time.monotonic() > deadline:
                raise UnreachableError(f"the bus has not noticed within {TIMEOUT_SECONDS:g} s that a tool was cut off")
            pause.wait(0.01)
        secret = tokens.resumption_token(told.key, number=number, epoch=told.epoch)
        return {"token": secret, "resumption": protocol.Resumption(number, told.epoch, 0)}

    def revoked_meanwhile(self, name: str) -> dict[str, Any]:
        """Have a tool be cut off and its certificate be revoked; return what it says when it comes back."""
        hello = self.cut_off(self.issued(name))
        self.papers.authority.revoke(name)
        return hello

    def _greet(self, caller: Caller) -> Any:  # noqa: ANN401 - asked for by name
        """Say hello as a tool does, and return what the bus has made of it.

        Raises:
            EchoicError: It has refused, or hung up.
        """
        dialling, protocol = import_module("echoic.toolbus.dialling"), import_module("echoic.toolbus.protocol")
        hello = protocol.Hello(caller.name, **caller.hello)
        return dialling._greet(self.bus.address, hello, caller.party, TIMEOUT_SECONDS)  # noqa: SLF001 - as tools do


@contextlib.contextmanager
def open_guest_door(papers: Papers) -> Iterator[Guests]:
    """Give a bus that believes certificates and tokens, and goes by rights."""
    with _bus(papers.good) as bus:
        yield Guests(bus, papers)


@contextlib.contextmanager
def guest_link(identity: Identity) -> Iterator[Opened]:
    """Give the same bus as a door like others."""
    protocol = import_module("echoic.toolbus.protocol")
    with _bus(identity) as bus:
        hello = protocol.encode_message(protocol.encode_hello(protocol.Hello(TOOL)))
        yield Opened(bus.address, b"".join(map(bytes, hello)), (*SECRETS, *NOT_TOLD))


GUEST_DOORS: Final[dict[str, Door]] = {"tool connection with issuers": guest_link}


@contextlib.contextmanager
def _bus(identity: Identity) -> Iterator[Any]:
    toolbus = import_module("echoic.toolbus")
    with toolbus.Bus.from_script(
        f"tool {OTHER_TOOL} is {{ }}\n{SCRIPT}",
        listen=LOOPBACK,
        identity=identity,
        issuers=Issuers(identity.authority.parent),
        rights=parse_rights(RULES),
        lease_seconds=LEASE_SECONDS,
        output=lambda _: None,
    ) as bus:
        bus.start()
        yield bus


def guest_problems(
    papers: Papers, open_door: Callable[[Papers], contextlib.AbstractContextManager[Guests]] = open_guest_door
) -> Iterator[tuple[str, str]]:
    """Yield every cell of those whom TLS lets in, with what is wrong in it, "" if nothing is."""
    with open_door(papers) as door:
        strangers = _strangers(door)
        bad = strangers | _token_bearers(door) | _known_ones(door)
        with ThreadPoolExecutor(len(bad)) as pool:
            refusals = dict(zip(bad, pool.map(door.refusal, bad.values()), strict=True))
        for cell, caller in bad.items():
            yield f"{cell} {PLACE}", _refusal_problem(caller, refusals[cell])
        different = {refusals[cell] for cell in strangers}
        yield f"what strangers are told {PLACE}", "" if len(different) == 1 else f"they were told {different}"
        for cell, caller in _good_ones(door).items():
            refused = door.refusal(caller)
            yield f"{cell} {PLACE}", "" if refused is None else f"it was refused: {refused}"


def _strangers(door: Guests) -> dict[str, Caller]:
    """Return everybody who has nothing to show, by what it tries."""
    visitor, started = door.visitor, {"instance": 1, "token": "x"}
    never = import_module("echoic.toolbus.protocol").Resumption(99, 7, 0)
    honest, thief = door.cut_off(door.papers.other), door.revoked_meanwhile("thief")
    return {
        "no certificate and no token": Caller(visitor, TOOL),
        "no certificate and a name that is not there": Caller(visitor, GUESS),
        "no certificate, as one that was started": Caller(visitor, TOOL, started),
        "no certificate, as one of another name": Caller(visitor, GUESS, started),
        "no certificate, back from nowhere": Caller(visitor, TOOL, {"token": "x", "resumption": never}),
        "no certificate, back by the secret of another": Caller(visitor, TOOL, honest),
        "revoked, and back without a certificate": Caller(visitor, TOOL, thief),
    }


def _token_bearers(door: Guests) -> dict[str, Caller]:
    """Return everybody whose token does not let it be the tool."""
    tokens = {f"{kind} token": text for kind, text in bad_tokens(door.papers.authority).items() if text}
    tokens |= {
        "token for another tool": door.token("else"),
        "token for another right": door.token(TOOL, "subscribe"),
        "token of a name that is denied": door.token(TOOL, who=DENIED),
    }
    bearers = {kind: Caller(door.visitor, TOOL, {"token": text}) for kind, text in tokens.items()}
    return {**bearers, "token for no tool": Caller(door.visitor, GUESS, {"token": door.token(GUESS)})}


def _known_ones(door: Guests) -> dict[str, Caller]:
    """Return everybody whose certificate does not let it be the tool."""
    denied, swindler = door.issued(DENIED), door.issued("swindler")
    with_token, with_certificate = door.cut_off(door.visitor, door.token(TOOL)), door.cut_off(swindler)
    door.papers.authority.revoke("swindler")
    return {
        "certificate of a name that is denied": Caller(denied, TOOL),
        "certificate of a name that is denied, for no tool": Caller(denied, GUESS),
        "certificate of another than was cut off": Caller(door.papers.other, TOOL, with_token),
        "revoked, and back by its certificate": Caller(swindler, TOOL, with_certificate),
    }


def _good_ones(door: Guests) -> dict[str, Caller]:
    other = door.papers.other
    return {
        "somebody good by a certificate": Caller(other, TOOL),
        "somebody good by a token": Caller(door.visitor, TOOL, {"token": door.token(TOOL)}),
        "somebody good who comes back": Caller(other, TOOL, door.cut_off(other)),
    }


def _refusal_problem(caller: Caller, refused: str | None) -> str:
    if refused is None:
        return "it was let in"
    told = [word for word in NOT_TOLD if word in refused and word != caller.name]
    return f"the refusal tells {told}" if told else ""
