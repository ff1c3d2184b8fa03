"""TLS: who is let in and who is not, and that both sides learn why."""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from echoic.errors import InsecureError, UnreachableError
from echoic.links import Connection, Identity, Listener, dial
from echoic.links.tls import TlsConnection
from tests.links.certificates import Authority
from tests.links.conftest import Connect, accept_one


def meet(listening: Listener, act: Callable[[], Connection | None]) -> tuple[str, str]:
    """Let `act` connect to a listener; return what the listener and the dialler had to complain about."""
    complaints: list[str] = []

    def accept() -> None:
        connection = listening.accept(2000)
        assert connection is not None
        try:
            connection.handshake(2)
            complaints.append("")
        except UnreachableError as error:
            complaints.append(str(error))
        connection.close()

    accepting = threading.Thread(target=accept)
    accepting.start()
    complaint = ""
    try:
        dialled = act()
        if dialled is not None:
            dialled.close()
    except UnreachableError as error:
        complaint = str(error)
    accepting.join()
    listening.close()
    return complaints[0], complaint


def dial_with_python(address: str, context: ssl.SSLContext) -> None:
    """Connect as a program that is not echoic."""
    host, _, port = address.partition(":")
    with (
        contextlib.suppress(OSError),
        socket.create_connection((host, int(port)), 2) as plain,
        context.wrap_socket(plain, server_hostname=host) as secret,
    ):
        secret.recv(1)


@pytest.fixture
def stranger(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "stranger")


def test_two_hubs_of_one_authority_meet(identity: Identity, authority: Authority) -> None:
    listening = Listener("127.0.0.1:0", identity)
    assert meet(listening, lambda: dial(listening.address, authority.issue("other"))) == ("", "")


def test_a_dialler_from_another_authority_is_refused(
    identity: Identity, authority: Authority, stranger: Authority
) -> None:
    listening = Listener("127.0.0.1:0", identity)
    outsider = stranger.issue("outsider", believing=authority.path)
    there, here = meet(listening, lambda: dial(listening.address, outsider))
    assert "its certificate is refused" in there
    assert "it refuses our certificate, which is not from its authority" in here


def test_a_listener_from_another_authority_is_refused(
    identity: Identity, authority: Authority, stranger: Authority
) -> None:
    listening = Listener("127.0.0.1:0", stranger.issue("impostor", believing=authority.path))
    there, here = meet(listening, lambda: dial(listening.address, identity))
    assert "it refuses our certificate, which is not from its authority" in there
    assert "its certificate is refused" in here


def test_an_expired_dialler_is_refused(identity: Identity, authority: Authority) -> None:
    listening = Listener("127.0.0.1:0", identity)
    there, here = meet(listening, lambda: dial(listening.address, authority.issue("late", days=-1)))
    assert "certificate has expired" in there
    assert "it refuses our certificate, which has expired" in here


def test_an_expired_listener_is_refused(identity: Identity, authority: Authority) -> None:
    listening = Listener("127.0.0.1:0", authority.issue("late", days=-1))
    there, here = meet(listening, lambda: dial(listening.address, identity))
    assert "it refuses our certificate" in there
    assert "certificate has expired" in here


def test_a_listener_with_the_certificate_of_another_host_is_refused(identity: Identity, authority: Authority) -> None:
    listening = Listener("127.0.0.1:0", authority.issue("elsewhere", host="10.1.2.3"))
    there, here = meet(listening, lambda: dial(listening.address, identity))
    assert there
    assert "IP address mismatch" in here


def test_a_dialler_without_a_certificate_is_refused(identity: Identity, authority: Authority) -> None:
    listening = Listener("127.0.0.1:0", identity)
    context = ssl.create_default_context(cafile=str(authority.path))
    there, _ = meet(listening, lambda: dial_with_python(listening.address, context))
    assert "it showed no certificate" in there


def test_a_dialler_of_an_older_tls_is_refused(identity: Identity, authority: Authority) -> None:
    listening = Listener("127.0.0.1:0", identity)
    context = ssl.create_default_context(cafile=str(authority.path))
    context.load_cert_chain(identity.certificate, identity.key)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    there, _ = meet(listening, lambda: dial_with_python(listening.address, context))
    assert "it speaks a TLS older than 1.3" in there


@pytest.mark.parametrize(
    ("garbage", "complaint"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "it speaks HTTP"),
        (bytes(64), "does not speak TLS|older than 1.3|refused|: "),
        (b"\x16\x03\x01" + bytes(range(200)), ": "),
        (b"", "it closed the connection"),
    ],
)
def test_garbage_is_refused(identity: Identity, garbage: bytes, complaint: str) -> None:
    listening = Listener("127.0.0.1:0", identity)

    def babble() -> None:
        host, _, port = listening.address.partition(":")
        with socket.create_connection((host, int(port))) as plain:
            plain.sendall(garbage)

    there, _ = meet(listening, babble)
    assert any(part in there for part in complaint.split("|")), there


def test_a_dialler_without_an_identity_and_a_listener_with_one_do_not_meet(identity: Identity) -> None:
    listening = Listener("127.0.0.1:0", identity)

    def speak() -> None:
        plain = dial(listening.address)
        assert type(plain).__name__ == "SocketConnection"
        plain.send([b"hello, hello, hello"])
        plain.close()

    there, _ = meet(listening, speak)
    assert "no TLS connection with" in there


def test_a_dialler_with_an_identity_and_a_listener_without_one_do_not_meet(identity: Identity) -> None:
    listening = Listener("127.0.0.1:0")
    began = time.monotonic()
    with pytest.raises(UnreachableError, match=r"no answer for 0\.3 seconds"):
        dial(listening.address, identity, timeout=0.3)
    assert time.monotonic() - began < 20
    listening.close()


def test_accepting_does_not_wait_for_a_stranger_who_says_nothing(identity: Identity) -> None:
    listening = Listener("127.0.0.1:0", identity)
    host, _, port = listening.address.partition(":")
    with socket.create_connection((host, int(port))) as silent:
        began = time.monotonic()
        connection = listening.accept(30_000)
        assert connection is not None
        assert time.monotonic() - began < 10
        with pytest.raises(UnreachableError, match=r"no answer for 0\.2 seconds"):
            connection.handshake(0.2)
        for byte in b"\x16\x03\x01":  # one who says something all the time is not waited for either
            silent.send(bytes([byte]))
        with pytest.raises(UnreachableError):
            connection.handshake(0.2)
        assert time.monotonic() - began < 20
        connection.close()
    listening.close()


def test_a_connection_that_is_cut_is_an_error_and_not_an_end(connect: Connect) -> None:
    dialled, accepted = connect("tls")
    dialled._socket.shutdown(socket.SHUT_WR)  # type: ignore[attr-defined]  # noqa: SLF001 - as an attacker would
    with pytest.raises(OSError, match="EOF occurred"):
        accepted.receive()


def test_what_was_changed_on_its_way_is_an_error(connect: Connect) -> None:
    dialled, accepted = connect("tls")
    dialled._socket.send(b"\x17\x03\x03\x00\x20" + bytes(32))  # type: ignore[attr-defined]  # noqa: SLF001
    with pytest.raises(ssl.SSLError):
        accepted.receive()


@pytest.mark.parametrize("into", [False, True])
def test_nothing_is_heard_behind_a_farewell(connect: Connect, into: bool) -> None:
    dialled, accepted = connect("tls")
    assert isinstance(dialled, TlsConnection)
    with contextlib.suppress(ssl.SSLWantReadError):
        dialled._ssl.unwrap()  # noqa: SLF001 - to say more in the same breath
    dialled._socket.sendall(dialled._to_peer.read() + b"\x17\x03\x03\x00\x20" + bytes(32))  # noqa: SLF001
    for _ in range(2):
        assert accepted.readable(10_000)
        assert (accepted.receive_into(memoryview(bytearray(9))) if into else accepted.receive()) in (0, b"")


@pytest.mark.parametrize("into", [False, True])
def test_what_came_before_something_changed_is_good_and_the_error_comes_next(connect: Connect, into: bool) -> None:
    dialled, accepted = connect("tls")
    assert isinstance(dialled, TlsConnection)
    good = bytes(range(256)) * 256
    dialled._ssl.write(good)  # noqa: SLF001 - so that both arrive together
    changed = bytearray(dialled._to_peer.read())  # noqa: SLF001
    changed[-1] ^= 1
    dialled._socket.sendall(changed)  # noqa: SLF001
    whole = good[: 3 * 16_384]
    received = bytearray(len(good))
    at = 0
    while at < len(whole):
        if into:
            at += accepted.receive_into(memoryview(received)[at:]) or 0
        else:
            data = accepted.receive() or b""
            received[at : at + len(data)] = data
            at += len(data)
    assert received[:at] == whole
    for _ in range(2):
        assert accepted.readable(1000)
        with pytest.raises(ssl.SSLError, match="BAD_RECORD_MAC"):
            accepted.receive()


def test_files_that_cannot_be_used_are_reported(identity: Identity, tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("this is not a certificate")
    other = Authority(tmp_path).issue("other")
    own = (identity.certificate, identity.key, identity.authority)
    for wrong, said in (
        (Identity(tmp_path / "missing.pem", *own[1:]), r"cannot read .*missing\.pem: No such file"),
        (
            Identity(garbage, *own[1:]),
            r"cannot use certificate .*: expected a certificate in PEM in .*garbage\.pem, found",
        ),
        (
            Identity(own[0], garbage, own[2]),
            r"cannot use .*: expected a private key in PEM in .*garbage\.pem, found none",
        ),
        (Identity(own[0], other.key, own[2]), r"cannot use certificate .*: the key in .* is that of another one"),
        (Identity(*own[:2], garbage), r"^expected the certificate of an authority in PEM, .* in .*garbage\.pem$"),
        (Identity(*own, garbage), r"^expected a list of revoked certificates and nothing else in .*garbage\.pem$"),
    ):
        with pytest.raises(InsecureError, match=said):
            Listener("127.0.0.1:0", wrong)
        with pytest.raises(InsecureError, match=said):
            dial("127.0.0.1:1", wrong)


def test_bytes_that_came_with_the_handshake_are_not_lost(identity: Identity) -> None:
    listening = Listener("127.0.0.1:0", identity)
    ends: list[Connection] = []

    def accept_and_speak() -> None:
        connection = accept_one(listening)
        connection.send([b"early"])
        ends.append(connection)

    accepting = threading.Thread(target=accept_and_speak)
    accepting.start()
    dialled = dial(listening.address, identity)
    accepting.join()
    assert dialled.readable(1000)
    assert dialled.receive() == b"early"
    for each in (dialled, *ends, listening):
        each.close()


class ClosedMeanwhile(TlsConnection):
    """Is closed by somebody as soon as its welcome has left, between two steps of its handshake."""

    flushes = 0

    def _flush(self) -> bool:
        flushed = super()._flush()
        self.flushes += 1
        if self.flushes == 4:  # after nothing, its hello, the end of the peer's handshake, its welcome
            self.close()
        return flushed


def speak_at_once(plain: socket.socket, context: ssl.SSLContext) -> None:
    """Shake hands, and send a word together with the end of it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    secret = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    while True:
        try:
            secret.do_handshake()
            break
        except ssl.SSLWantReadError:
            plain.sendall(outgoing.read())
            incoming.write(plain.recv(65536))
    secret.write(b"a word")
    plain.sendall(outgoing.read())


def test_who_is_closed_in_the_middle_of_a_handshake_is_not_let_in(identity: Identity) -> None:
    near, far = socket.socketpair()
    with near, far:
        speaking = threading.Thread(target=speak_at_once, args=(far, identity.dialling_context()))
        speaking.start()
        with pytest.raises(UnreachableError, match="closed in the middle"):
            ClosedMeanwhile(near, "somebody", identity.listening_context()).handshake(5)
        speaking.join()


def overfill(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Send as if the socket always reported room, until ciphertext is left; return what was taken."""
    assert isinstance(connection, TlsConnection)
    taken = bytearray()
    with monkeypatch.context() as patch:
        patch.setattr(TlsConnection, "_has_room", lambda self: not self._unsent)
        while not connection._unsent:  # noqa: SLF001
            piece = len(taken).to_bytes(8) * 4096
            taken += piece[: connection.send([piece])]
    assert connection.send([b"no more than that"]) == 0
    return bytes(taken)


def test_ciphertext_that_the_socket_did_not_take_leaves_while_receiving(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialled, accepted = connect("tls")
    sent = overfill(dialled, monkeypatch)
    received = bytearray()
    while len(received) < len(sent):
        received += accepted.receive() or b""
        if not accepted.readable(0):
            dialled.receive()
    assert received == sent


def test_the_end_comes_behind_ciphertext_that_the_socket_did_not_take(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialled, accepted = connect("tls")
    sent = overfill(dialled, monkeypatch)
    dialled.finish()
    received, data = bytearray(), None
    while data != b"":
        data = accepted.receive()
        received += data or b""
        dialled.writable(0)
    assert received == sent
