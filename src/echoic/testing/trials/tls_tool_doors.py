"""The doors of a bus for trial 19: where tools connect, and where they fetch each other's values; both ways.

The bus is asked for by name, as `doors` says. A bus that believes tokens too hears who has no certificate, and is tried
with tokens (`tests/toolbus/test_beyond_one_machine.py`).
"""

import contextlib
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

from echoic.errors import EchoicError
from echoic.links import Identity
from echoic.testing.trials.tls_doors import LOOPBACK, SECRETS, Door, Knock, Opened

__all__ = ["TOOL_DOORS", "TOOL_KNOCKS"]

TOOL: Final = "hidden-tool"
KEY: Final = bytes(32)
TIMEOUT_SECONDS: Final = 2.0
SCRIPT: Final = f"""
tool {TOOL} is {{ }}
process P is let T: {TOOL} in ( rec-connect(T?) . rec-disconnect(T) ) * delta endlet
toolbus(P)
"""


@contextlib.contextmanager
def tool_link(identity: Identity) -> Iterator[Opened]:
    """Give a bus, to which tools connect."""
    toolbus, protocol = import_module("echoic.toolbus"), import_module("echoic.toolbus.protocol")
    with toolbus.Bus.from_script(SCRIPT, listen=LOOPBACK, identity=identity, output=lambda _: None) as bus:
        bus.start()
        hello = protocol.encode_message(protocol.encode_hello(protocol.Hello(TOOL)))
        yield Opened(bus.address, b"".join(map(bytes, hello)), (*SECRETS, TOOL))


@contextlib.contextmanager
def transfer_link(identity: Identity) -> Iterator[Opened]:
    """Give a tool that has a value, which others fetch."""
    words, protocol = import_module("echoic.toolbus.references.words"), import_module("echoic.toolbus.protocol")
    owner = _member(1, identity)
    try:
        said = list(owner.outgoing(protocol.Message(protocol.MessageKind.VALUE, 1, (SECRETS[0] * 1000,))))
        put = words.decode_put(said[0])
        get = words.Get(1 << 31, put.variable, 1, put.path, (), bytes(32), 0, 2, 1, b"")
        piece = protocol.encode_message(words.encode_get(get))
        yield Opened(owner.endpoints[0], b"".join(map(bytes, piece)), SECRETS)
    finally:
        owner.close()


def tool_dials(identity: Identity, address: str) -> None:
    """Be a tool of whoever is at an address."""
    toolbus = import_module("echoic.toolbus")
    with contextlib.suppress(EchoicError):
        toolbus.Tool().connect(address, name=TOOL, identity=identity, timeout=TIMEOUT_SECONDS)


def transfer_dials(identity: Identity, address: str) -> None:
    """Fetch a value from whoever is at an address."""
    words, terms = import_module("echoic.toolbus.references.words"), import_module("echoic.terms")
    asker = _member(2, identity)
    kind = terms.ReferenceKind.STR
    put = words.Put(1, 1, 1, (address,), (0,), kind, "", 0, 100_000, SECRETS[0].encode(), epoch=1)
    with contextlib.suppress(TimeoutError):
        asker.fetch(put).result(TIMEOUT_SECONDS)
    asker.close()


TOOL_DOORS: Final[dict[str, Door]] = {"tool connection": tool_link, "transfer between tools": transfer_link}
TOOL_KNOCKS: Final[dict[str, Knock]] = {"tool connection": tool_dials, "transfer between tools": transfer_dials}


def _member(number: int, identity: Identity) -> Any:  # noqa: ANN401 - asked for by name
    words = import_module("echoic.toolbus.references.words")
    exchange = import_module("echoic.toolbus.references.exchange").Exchange()
    member = import_module("echoic.toolbus.references.member").Member
    registration = words.Registration(number, 1, 0, 1000, KEY)
    return member(registration, lambda _, __: None, exchange=exchange, listen=LOOPBACK, identity=identity)
