"""A bus that other machines reach: TLS 1.3, certificates or tokens, and what a token lets its owner be.

It all happens on this machine, by the same code: what matters is the identity, not the address.
"""

import socket
import ssl
import time
from pathlib import Path

import pytest

from echoic.errors import EchoicError, InsecureError, RefusedError
from echoic.links import Identity, Visitor, parse_address
from echoic.terms import Term
from echoic.toolbus import Bus, Exchanging
from echoic.toolbus.protocol import Hello, encode_hello, encode_message
from echoic.toolbus.references.exchange import Exchange
from echoic.trust import Issuers
from echoic.trust.authority import Authority
from tests.toolbus.conftest import MakeBus
from tests.toolbus.test_strangers import ONE_EVAL, is_hung_up
from tests.toolbus.workshop import Calc, script

pytestmark = pytest.mark.system
HOUR = 3600
SECONDS = 60.0


@pytest.fixture
def open_bus(make_bus: MakeBus, bus_identity: Identity) -> Bus:
    """A bus that believes certificates and tokens."""
    bus = make_bus(ONE_EVAL, identity=bus_identity, issuers=Issuers())
    bus.start()
    return bus


def token_for(authority: Authority, channel: str, right: str = "publish", seconds: int = HOUR) -> str:
    return authority.issue_token("alice", [right], [channel], seconds)


def connected(bus: Bus, token: str, identity: Identity | Visitor) -> Calc:
    tool = Calc()
    tool.connect(bus.address, token=token, identity=identity, timeout=SECONDS)
    tool.start()
    return tool


def test_a_tool_without_a_certificate_comes_in_by_a_token(open_bus: Bus, authority: Authority) -> None:
    connected(open_bus, token_for(authority, "tool:calc"), Visitor.of_authority())
    assert open_bus.wait(SECONDS)
    assert open_bus.value == 3


def test_a_signed_token_is_not_said_in_the_clear(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TB_TOKEN", token_for(authority, "tool:calc"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        words = ["-TB_HOST", "127.0.0.1", "-TB_PORT", str(listener.getsockname()[1])]
        with pytest.raises(InsecureError, match=r"would go to 127\.0\.0\.1:\d+ in the clear.* TB_AUTHORITY"):
            Calc.run(words)
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_tool_with_a_certificate_needs_no_token(open_bus: Bus, authority: Authority) -> None:
    authority.issue("adder", ["127.0.0.1"])
    connected(open_bus, "", Identity.named("adder"))
    assert open_bus.wait(SECONDS)
    assert open_bus.value == 3


@pytest.mark.parametrize(
    ("channel", "right", "reason"),
    [
        ("tool:other", "publish", "does not grant `publish` on `tool:calc`"),
        ("calc", "publish", "does not grant"),
        ("tool:calc", "subscribe", "does not grant"),
    ],
)
def test_a_token_for_something_else_does_not_open(
    open_bus: Bus, authority: Authority, channel: str, right: str, reason: str
) -> None:
    with pytest.raises(RefusedError, match=reason):
        connected(open_bus, token_for(authority, channel, right), Visitor.of_authority())


def test_tokens_that_are_forged_or_missing_or_revoked_do_not_open_and_tell_nothing(
    open_bus: Bus, authority: Authority, tmp_path: Path
) -> None:
    good = token_for(authority, "tool:*")
    revoked = token_for(authority, "tool:*", seconds=HOUR + 1)
    authority.revoke(next(each.id for each in reversed(authority.issued())))
    stranger = Authority.create(tmp_path / "elsewhere")
    forged = good[:-2] + ("BA" if good.endswith("AA") else "AA")  # of sixteen signatures one ends so
    for token in ("", "secret", forged, token_for(stranger, "tool:*"), revoked):
        with pytest.raises(RefusedError) as refused:
            connected(open_bus, token, Visitor.of_authority())
        assert "token" in str(refused.value)
        assert "tools are" not in str(refused.value)


def test_a_bus_without_issuers_wants_a_certificate(
    make_bus: MakeBus, bus_identity: Identity, authority: Authority
) -> None:
    bus = make_bus(ONE_EVAL, identity=bus_identity)
    bus.start()
    with pytest.raises(EchoicError):
        connected(bus, token_for(authority, "tool:calc"), Visitor.of_authority())


def test_a_tool_whose_token_is_revoked_is_hung_up_on(
    make_bus: MakeBus, bus_identity: Identity, authority: Authority
) -> None:
    bus = make_bus(
        script("rec-connect(T?) . rec-disconnect(T) . shutdown(lost)"), identity=bus_identity, issuers=Issuers()
    )
    bus.start()
    connected(bus, token_for(authority, "tool:calc"), Visitor.of_authority())
    assert not bus.wait(0.3)
    authority.revoke(authority.issued()[-1].id)
    assert bus.wait(SECONDS)
    assert bus.value is Term("lost")


def test_a_token_that_expires_ends_the_conversation_even_where_tools_may_come_back(
    make_bus: MakeBus, bus_identity: Identity, authority: Authority
) -> None:
    bus = make_bus(
        script("rec-connect(T?) . rec-disconnect(T) . shutdown(lost)"),
        identity=bus_identity,
        issuers=Issuers(),
        lease_seconds=4.0,
    )
    bus.start()
    connected(bus, token_for(authority, "tool:calc", seconds=3), Visitor.of_authority())
    assert bus.wait(SECONDS)
    assert bus.value is Term("lost")


def test_a_visitor_fetches_large_values_by_way_of_the_bus(
    make_bus: MakeBus, bus_identity: Identity, authority: Authority
) -> None:
    large = "x" * 200_000
    bus = make_bus(
        script(f'rec-connect(T?) . snd-do(T, show("{large}")) . rec-disconnect(T) . shutdown(done)'),
        identity=bus_identity,
        issuers=Issuers(),
        threshold_bytes=1000,
    )
    bus.start()
    tool, exchange = Calc(), Exchange()
    token, visitor = token_for(authority, "tool:calc"), Visitor.of_authority()
    tool.connect(bus.address, token=token, identity=visitor, exchanging=Exchanging(exchange=exchange), timeout=SECONDS)
    tool.start()
    deadline = time.monotonic() + SECONDS
    while not tool.shown and time.monotonic() < deadline:
        time.sleep(0.01)
    assert tool.shown == [large]
    assert not exchange._links  # noqa: SLF001 - nobody else can tell
    assert not exchange._doors  # noqa: SLF001 - likewise
    tool.disconnect()
    assert bus.wait(SECONDS)


def test_an_older_tls_is_refused_and_told_nothing(open_bus: Bus) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with (
        socket.create_connection(parse_address(open_bus.address), SECONDS) as stranger,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        context.wrap_socket(stranger)


def test_who_speaks_in_the_clear_is_told_nothing(open_bus: Bus) -> None:
    with socket.create_connection(parse_address(open_bus.address), SECONDS) as stranger:
        stranger.sendall(b"".join(encode_message(encode_hello(Hello("calc")))))
        assert b"calc" not in stranger.recv(65536)
        assert is_hung_up(stranger)


def test_a_certificate_of_another_authority_is_refused_though_none_would_be_heard(
    open_bus: Bus, authority: Authority, tmp_path: Path, bus_identity: Identity
) -> None:
    other = Authority.create(tmp_path / "elsewhere")
    path = other.issue("adder", ["127.0.0.1"])
    with pytest.raises(EchoicError):
        connected(open_bus, token_for(authority, "tool:calc"), Identity(path, path, bus_identity.authority))


def test_beyond_this_machine_a_bus_wants_tls_or_to_be_told_that_it_is_meant(make_bus: MakeBus) -> None:
    with pytest.raises(InsecureError, match="can be reached from other machines, in the clear"):
        make_bus(ONE_EVAL, listen="0.0.0.0:0")
    make_bus(ONE_EVAL, listen="0.0.0.0:0", insecure=True)


def test_a_tool_whose_certificate_is_revoked_is_hung_up_on_and_others_are_not(
    make_bus: MakeBus, bus_identity: Identity, authority: Authority
) -> None:
    gone = "(rec-disconnect(T) . shutdown(first) + rec-disconnect(U) . shutdown(second))"
    text = script(f"rec-connect(T?) . rec-connect(U?) . {gone}", variables="U: calc")
    bus = make_bus(text, identity=bus_identity)
    bus.start()
    for name in ("honest", "thief"):
        authority.issue(name, ["127.0.0.1"])
        connected(bus, "", Identity.named(name))
    assert not bus.wait(0.3)
    authority.revoke("thief")
    assert bus.wait(SECONDS)
    assert bus.value is Term("second")
