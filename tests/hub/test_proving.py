"""A connection whose handshake is older than a revocation does not count, at whatever point of its greeting it is."""

import threading
from pathlib import Path

import pytest

from echoic import Hub, Identity
from echoic.channels import Greeting
from echoic.hub.hello import greet
from echoic.links import dial
from echoic.testing.samples import Trade
from echoic.trust.authority import Authority
from echoic.wire import FrameReader, Hello
from tests.conftest import StartHub
from tests.hub.parties import eventually


def ended(hub: Hub) -> int:
    return hub._switchboard.proofs.count  # noqa: SLF001 - when it has noticed, which nobody else is told


def test_who_greets_after_he_was_revoked_is_hung_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start_hub: StartHub
) -> None:
    monkeypatch.setenv("ECHOIC_HOME", str(tmp_path))
    authority = Authority.create()
    for name in ("exchange", "thief"):
        authority.issue(name, ("127.0.0.1",))
    exchange = start_hub(identity=Identity.named("exchange"))
    exchange.create("trades", Trade)
    connection = dial(exchange.address, Identity.named("thief"))
    authority.revoke("thief")
    eventually(lambda: ended(exchange), "the hub has noticed", 4)
    hello = Hello(name="thief", hub="thief", address="127.0.0.1:1")
    greet(connection, Greeting(hello, lambda _: (0, 0), dialled=True, fresh=7), FrameReader())
    over = threading.Event()

    def read() -> None:
        while connection.receive() != b"":
            pass
        over.set()

    threading.Thread(target=read, daemon=True).start()
    assert over.wait(10), "a link that was greeted with a revoked certificate stays"
    connection.close()
