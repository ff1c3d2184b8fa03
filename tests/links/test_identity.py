"""Identities that change while a listener runs, and what a stranger hears of it."""

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic.errors import UnreachableError
from echoic.links import Connection, Identity, Listener, dial
from echoic.links.tls import HANDSHAKE_BYTES_MAX
from echoic.trust import identity_path
from echoic.trust.authority import Authority
from echoic.trust.folder import REVOKED


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    monkeypatch.setenv("ECHOIC_HOME", str(tmp_path / "home"))
    made = Authority.create()
    for name in ("hub", "alice"):
        made.issue(name)
    return made


@pytest.fixture
def listening(authority: Authority) -> Iterator[Listener]:
    with contextlib.closing(Listener("127.0.0.1:0", Identity.named("hub"))) as listener:
        yield listener


def meet(listening: Listener, who: str) -> tuple[Connection | None, Connection | str]:
    """Let somebody dial; return both ends, or what the dialler complains of."""
    accepted: list[Connection] = []

    def accept() -> None:
        connection = listening.accept(3000)
        if connection is not None:
            with contextlib.suppress(UnreachableError):
                connection.handshake(3)
                accepted.append(connection)
                return
            connection.close()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        dialled: Connection | str = dial(listening.address, Identity.named(who))
    except UnreachableError as error:
        dialled = str(error)
    accepting.join()
    return (accepted[0] if accepted else None), dialled


def test_each_side_learns_who_the_other_is(listening: Listener) -> None:
    accepted, dialled = meet(listening, "alice")
    assert accepted is not None
    assert not isinstance(dialled, str)
    assert accepted.credentials is not None
    assert dialled.credentials is not None
    assert (accepted.credentials.name, dialled.credentials.name) == ("alice", "hub")
    assert accepted.credentials.hosts == {"localhost", "127.0.0.1", "::1"}
    assert 89 < (accepted.credentials.expires - time.time()) / 86400 < 91
    accepted.close()
    dialled.close()


def test_whoever_is_revoked_is_refused_without_a_restart_and_welcome_with_another_certificate(
    authority: Authority, listening: Listener
) -> None:
    for said in ("", "which is revoked", ""):
        accepted, dialled = meet(listening, "alice")
        if said:
            assert accepted is None
            assert isinstance(dialled, str)
            assert said in dialled
            authority.rotate("alice")
        else:
            assert accepted is not None
            assert not isinstance(dialled, str)
            accepted.close()
            dialled.close()
            authority.revoke("alice")


def test_a_listener_that_is_revoked_is_refused(authority: Authority, listening: Listener) -> None:
    authority.revoke("hub")
    accepted, dialled = meet(listening, "alice")
    assert accepted is None
    assert isinstance(dialled, str)
    assert "certificate revoked" in dialled


def test_a_listener_shows_the_certificate_it_has_at_the_moment(authority: Authority, listening: Listener) -> None:
    authority.issue("hub", ["127.0.0.1"], 5, replace=True)
    accepted, dialled = meet(listening, "alice")
    assert not isinstance(dialled, str)
    assert dialled.credentials is not None
    assert (dialled.credentials.expires - time.time()) / 86400 < 6
    assert accepted is not None
    accepted.close()
    dialled.close()


def test_without_a_list_of_revoked_ones_nobody_is_let_in_until_it_is_there(
    authority: Authority, listening: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    revoked = authority.folder / REVOKED
    kept = revoked.read_bytes()
    revoked.unlink()
    caplog.set_level(logging.ERROR)
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", listening.port), 3) as plain:
            assert listening.accept(3000) is None
            plain.settimeout(3)
            assert plain.recv(1) == b""
    assert len(caplog.records) == 1  # strangers do not fill the log
    assert "nobody can connect" in caplog.text
    revoked.write_bytes(kept)
    accepted, dialled = meet(listening, "alice")
    assert accepted is not None
    assert not isinstance(dialled, str)
    accepted.close()
    dialled.close()


def test_a_peer_that_sends_without_end_into_a_handshake_is_cut(listening: Listener) -> None:
    """Records of a handshake that never ends: OpenSSL itself would wait for more of a message of 16 MB."""
    record = b"\x16\x03\x01\x40\x00"
    message = b"\x01\xff\xff\xff" + bytes(0x4000 - 4)
    with socket.create_connection(("127.0.0.1", listening.port), 3) as plain:
        connection = listening.accept(3000)
        assert connection is not None
        sending = threading.Thread(target=_send_forever, args=(plain, record + message, record + bytes(0x4000)))
        sending.start()
        started = time.monotonic()
        with pytest.raises(UnreachableError, match="it sends more than a handshake has"):
            connection.handshake(5)
        assert time.monotonic() - started < 4
        connection.close()
        sending.join()


def test_the_limit_counts_bytes_of_one_who_would_be_believed_too(authority: Authority, listening: Listener) -> None:
    """A chain of certificates that OpenSSL would take, as it has less than 100 KB."""
    path = identity_path("alice")
    path.write_bytes(path.read_bytes() + (authority.folder / "authority.pem").read_bytes() * 190)
    complaints: list[str] = []

    def accept() -> None:
        connection = listening.accept(3000)
        assert connection is not None
        with pytest.raises(UnreachableError, match=f"limit is {HANDSHAKE_BYTES_MAX}") as refused:
            connection.handshake(5)
        complaints.append(str(refused.value))
        connection.close()

    accepting = threading.Thread(target=accept)
    accepting.start()
    with pytest.raises(UnreachableError):
        dial(listening.address, Identity.named("alice"))
    accepting.join()
    assert complaints


def _send_forever(plain: socket.socket, first: bytes, then: bytes) -> None:
    plain.settimeout(5)
    with contextlib.suppress(OSError):
        plain.sendall(first)
        for _ in range(20_000):
            plain.sendall(then)
