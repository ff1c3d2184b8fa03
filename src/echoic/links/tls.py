"""TLS: a TCP connection that nobody can read or change, to a peer that has proved who it is.

OpenSSL works on memory here and not on the socket, because its objects must not be used by two threads at once, and a
thread that waits to receive must not keep another from sending:

    send     -> SSL object -> ciphertext -> socket        the lock `_tls` is held for the middle step alone,
    receive  <- SSL object <- ciphertext <- socket        never while touching the socket

Two threads can have ciphertext for the socket, since TLS itself answers some of what it receives. The lock `_outgoing`
keeps their order; writing to the socket never waits.

What `send` has encrypted it has taken, though the socket may not have taken the ciphertext. That would then lie here
until somebody calls again. So `send` encrypts only when the socket reports room, which means a third of its buffer,
and then at most half of that or one record. Should the socket refuse nevertheless, because its buffer is tiny or the
system short of memory, what is left goes out with the next call of `send`, `receive` or `writable`, and nothing more is
taken before that.

What arrives is decrypted where it belongs: into a large frame itself, as far as there is room. What does not fit stays
with OpenSSL, so that there may be something to receive of which the file descriptor tells no more (`holds`). Before
`finish` that is set aside: OpenSSL, looking for the peer's farewell, would take it for something said too late.

What it costs, in nanoseconds of processor time for each byte of frames of 1 MB, send and receive; 2026-11-18, two cores
of an AMD EPYC with much other work, one thread and a real socket; lower quartiles of 25 interleaved rounds, lowest and
highest of three runs; and before that, when each record was written alone and large frames were put together from them:

    TCP                                0.09-0.12 + 0.09-0.10
    TLS by OpenSSL 3.0.19              0.55-0.59 + 0.58-0.61      before: 0.65-0.67 + 0.64-0.69
    TLS by OpenSSL 3.5.6               0.37-0.48 + 0.39-0.43      before: 0.49-0.55 + 0.49-0.55

Between hubs that is hard to find again: 0.89 + 0.70, before 0.86 + 0.72, for events of 1 MB, and 1.01 + 0.96, before
1.18 + 0.99, for those of 100 KB (medians of five runs). Of the 0.45 that TLS adds on each side with OpenSSL 3.0 the
cipher has 0.24 (`openssl speed`), and the copies into OpenSSL's memory and out of it most of the rest. Newer ones
know wider AES instructions. Tried, and no better: Python's own SSL sockets, 0.70 + 0.63, as they make a system call
for each record sent and two for each received; pyOpenSSL on the newer OpenSSL of `cryptography`, which loses by the
copies of its interface what it gains by the cipher (0.34 + 0.36 without a socket, where `ssl` with 3.0.19 has 0.33 +
0.36); AES-128, 5 % of the cipher; one buffer for all that is received; fewer bytes at a time, for writing and for
reading.

A stranger is told nothing but what TLS itself says: an alert, or the listener's certificate, to whoever begins a
handshake of TLS 1.3 as it should. It has so many seconds and bytes for all of it.

A dialler whose certificate is refused would not notice before it receives, as TLS 1.3 lets it speak first. Hence a
listener sends one byte when it has accepted the dialler, and the dialler's handshake ends with that byte.
"""

import contextlib
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar, cast

from echoic.errors import UnreachableError
from echoic.links.credentials import credentials_of
from echoic.links.sockets import SocketConnection, closed_error
from echoic.wire import Buffer

__all__ = ["MAY_WANT_TLS", "NO_TLS", "TlsConnection"]

NO_TLS: Final = "no TLS connection with"
"""How it is told, also to those who get the text alone, that somebody is there and one of us is not believed."""
MAY_WANT_TLS: Final = "it may want TLS: name an identity (--identity)"
"""What is told of somebody who is there and hangs up, to who has no identity."""

TAKE_BYTES_MAX: Final = 256 * 1024
JOIN_BYTES_MAX: Final = 64 * 1024
GIVE_BYTES_MAX: Final = 112 * 1024  # above 128 KB the C library may map memory for each call
SEND_BYTES_MAX: Final = 1024 * 1024
RECORD_BYTES: Final = 16 * 1024
NEXT_BYTES: Final = 2 * RECORD_BYTES  # enough of a frame for the rest of it to be received where it belongs
HANDSHAKE_BYTES_MAX: Final = 64 * 1024  # with a chain of certificates it has 6 KB
WELCOME: Final = b"\1"
UNSENT_MILLISECONDS_MAX: Final = 1000
CUT: Final = "UNEXPECTED_EOF_WHILE_READING"
Result = TypeVar("Result")
REASONS: Final = {
    "EXCESSIVE_MESSAGE_SIZE": "it sends more than a handshake has",
    "HTTP_REQUEST": "it speaks HTTP",
    "NO_SHARED_CIPHER": "it has no cipher of TLS 1.3",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it showed no certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it refuses our certificate",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "it refuses our certificate, which is revoked",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it refuses our certificate, which has expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it refuses our certificate",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it wants a certificate, we showed none",
    "TLSV1_ALERT_DECRYPT_ERROR": "it refuses our certificate",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it does not accept our version of TLS",
    "TLSV1_ALERT_UNKNOWN_CA": "it refuses our certificate, which is not from its authority",
    "UNSUPPORTED_PROTOCOL": "it speaks a TLS older than 1.3",
    "WRONG_VERSION_NUMBER": "it does not speak TLS",
}


class TlsConnection(SocketConnection):
    """A TCP socket with TLS 1.3 on top."""

    def __init__(self, socket_: socket.socket, peer: str, context: ssl.SSLContext, *, host: str | None = None) -> None:
        """Take over a connected socket; `host` is whom we dialled, None when we were dialled."""
        super().__init__(socket_, peer, checked=False)
        self._dialler = host is not None
        self._from_peer, self._to_peer = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._from_peer, self._to_peer, not self._dialler, host)
        # With a buffer it returns a number, of which the annotations of the standard library know nothing.
        self._read_into = cast("Callable[[int, memoryview], int]", self._ssl.read)
        self._tls = threading.Lock()
        self._outgoing = threading.Lock()
        self._unsent: Buffer = b""
        self._held = False  # whether there may be something to decrypt without asking the socket
        self._aside = b""  # what was decrypted before anybody asked for it
        self._large = False  # whether a large frame was received last: the next one is large too, perhaps
        self._error: ssl.SSLError | None = None
        self._ended = self._finishing = False
        self._handshake_bytes = 0

    def handshake(self, timeout: float) -> None:
        """Prove to each other who we are.

        Raises:
            UnreachableError: One of us could not, or the peer did not answer within `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        try:
            self._advance(self._ssl.do_handshake, deadline)
            if not self._dialler:
                self._advance(lambda: self._ssl.write(WELCOME), deadline)
            elif self._advance(lambda: self._ssl.read(len(WELCOME)), deadline) != WELCOME:
                raise ConnectionAbortedError("it is not a hub")
            with self._tls:
                shown = self._shown()
                self.credentials = credentials_of(shown) if shown else None
                # It came together with the end of the handshake.
                self._held = self._from_peer.pending > 0 or self._ssl.pending() > 0
        except TimeoutError as error:
            raise UnreachableError(f"{NO_TLS} {self.peer}: no answer for {timeout:g} seconds") from error
        except OSError as error:
            raise UnreachableError(f"{NO_TLS} {self.peer}: {_reason_of(error)}") from error

    def _shown(self) -> Mapping[str, object]:
        """Return the certificate that the peer has shown.

        Raises:
            ConnectionAbortedError: The connection was closed meanwhile.
        """
        try:
            return self._ssl.getpeercert() or {}
        except ValueError as error:  # OpenSSL takes a connection that has failed for one that has not begun
            raise ConnectionAbortedError("it was closed in the middle of it") from error

    def send(self, pieces: Sequence[Buffer]) -> int:
        """Encrypt and write as much as goes without waiting and return how many bytes were taken.

        Raises:
            OSError: The connection is broken or closed.
        """
        if self._closed:
            raise closed_error(self.peer)
        if not self._has_room():
            return 0
        buffer_bytes = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        take_bytes = min(TAKE_BYTES_MAX, max(RECORD_BYTES, buffer_bytes // 6))
        taken = 0
        for portion in _portions(pieces, take_bytes - take_bytes % RECORD_BYTES):
            if taken and (taken >= SEND_BYTES_MAX or not super().writable(0)):
                break
            with self._tls:
                self._ssl.write(portion)
            taken += len(portion)
            if not self._flush():
                break
        return taken

    def receive(self) -> bytes | None:
        """Return the next bytes, b"" at the end of the stream, None when nothing came for `QUIET_SECONDS`.

        Raises:
            OSError: The connection is broken or closed, or ended without the peer saying so.
        """
        if not self._fetch():
            return None
        wanted = NEXT_BYTES if self._large else GIVE_BYTES_MAX
        self._large = False
        with self._tls:
            data, self._aside = self._aside or self._decrypt(wanted), b""
            answering = self._to_peer.pending > 0
        if answering:
            self._flush()
        return data if data or self._ended else None

    def receive_into(self, buffer: memoryview) -> int | None:
        """Receive into a buffer and return how many bytes came, 0 at the end of the stream, None as `receive` does.

        Raises:
            OSError: The connection is broken or closed, or ended without the peer saying so.
        """
        if not self._fetch():
            return None
        self._large = True
        with self._tls:
            if self._aside:
                count = min(len(buffer), len(self._aside))
                buffer[:count], self._aside = self._aside[:count], self._aside[count:]
            else:
                count = self._decrypt_into(buffer)
            answering = self._to_peer.pending > 0
        if answering:
            self._flush()
        return count if count or self._ended else None

    @property
    def holds(self) -> bool:
        """Whether `receive` would return at once, whatever the socket says."""
        return self._held or self._ended or bool(self._aside) or self._error is not None

    def readable(self, milliseconds: int) -> bool:
        """Return whether within a time something arrives that `receive` would look at."""
        waited = min(milliseconds, UNSENT_MILLISECONDS_MAX)  # should ciphertext be left, `receive` sees to it
        return self.holds or super().readable(waited)

    def writable(self, milliseconds: int) -> bool:
        """Return whether within a time `send` would take something, or fail."""
        if not super().writable(milliseconds):
            return False
        try:
            return self._flush() or self._has_room()
        except OSError:
            return True

    def finish(self) -> None:
        """Say, by TLS and by TCP, that no more bytes come from this side."""
        with self._tls, contextlib.suppress(OSError):  # the peer has not said so yet, or is gone
            self._aside += self._decrypt(sys.maxsize)  # OpenSSL would take it for said too late, and drop it
            self._ssl.unwrap()
        self._finishing = True
        with contextlib.suppress(OSError):
            self._flush()

    def close(self) -> None:
        """Close at once, with a word to the peer if it goes without waiting, and wake whoever receives."""
        if not self._closed:
            self.finish()
        super().close()

    def _advance(self, step: Callable[[], Result], deadline: float) -> Result:
        """Do a step of the handshake, with as much sending and receiving as it needs.

        Raises:
            TimeoutError: The peer did not answer before the deadline.
            OSError: The step failed, or the connection did, or the peer sends more than anybody has to say here.
        """
        while True:
            try:
                with self._tls:
                    return step()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                if _is_untold_cut(error):
                    raise _cut() from error
                raise
            finally:
                self._flush()  # also the alert that tells the peer what is wrong with it
            if self._handshake_bytes > HANDSHAKE_BYTES_MAX:  # and it is not done
                raise ConnectionAbortedError(f"it sent {self._handshake_bytes} bytes, limit is {HANDSHAKE_BYTES_MAX}")
            remaining = max(0, round((deadline - time.monotonic()) * 1000))
            if not remaining or not super().readable(remaining):
                raise TimeoutError
            ciphertext = super().receive()
            if ciphertext is not None:
                self._handshake_bytes += len(ciphertext)
                with self._tls:
                    self._feed(ciphertext)

    def _has_room(self) -> bool:
        """Return whether the socket reports room and nothing is left from before."""
        return (not self._unsent or self._flush()) and super().writable(0)

    def _fetch(self) -> bool:
        """Have something to decrypt, from the socket if need be, or an end; return False when nothing came.

        Raises:
            OSError: The connection is broken or closed, or what came last cannot be decrypted.
        """
        if self._unsent:
            self._flush()
        if not self._held and not self._aside and not self._ended:
            if self._error is not None:
                raise self._error
            ciphertext = super().receive()
            if ciphertext is None:
                return False
            with self._tls:
                self._feed(ciphertext)
                self._held = True
        return True

    def _feed(self, ciphertext: bytes) -> None:
        """Give the SSL object what came from the socket."""
        if ciphertext:
            self._from_peer.write(ciphertext)
        else:
            self._from_peer.write_eof()

    def _decrypt(self, bytes_max: int) -> bytes:
        """Return what is held, and no further record when it is so many bytes. `_tls` is held.

        Raises:
            SSLError: It cannot be decrypted; what comes before such a record is returned, and the error waits.
        """
        records, read, ciphertext = list[bytes](), self._ssl.read, self._from_peer
        try:
            while self._held and bytes_max > 0:
                record = read(RECORD_BYTES)  # all of it: none is longer
                records.append(record)
                bytes_max -= len(record)
                self._ended = not record
                self._held = not self._ended and ciphertext.pending > 0
        except ssl.SSLError as error:
            self._stop(error, begun=bool(records))
        return b"".join(records)

    def _decrypt_into(self, buffer: memoryview) -> int:
        """Decrypt what is held into a buffer, as much as goes, and return how much that is. `_tls` is held.

        Raises:
            SSLError: As `_decrypt` does.
        """
        count, size, read, ciphertext = 0, len(buffer), self._read_into, self._from_peer
        try:
            while self._held and count < size:
                record_bytes = read(size, buffer[count:])
                count += record_bytes
                self._ended = not record_bytes
                self._held = not self._ended and (ciphertext.pending > 0 or (count == size and self._ssl.pending() > 0))
        except ssl.SSLError as error:
            self._stop(error, begun=count > 0)
        return count

    def _stop(self, error: ssl.SSLError, *, begun: bool) -> None:
        """Note why nothing more can be decrypted; what came before it is good, and an error waits for the next call.

        Raises:
            SSLError: Nothing came before it.
        """
        self._held = False
        if isinstance(error, ssl.SSLZeroReturnError):
            self._ended = True
        elif not isinstance(error, ssl.SSLWantReadError):
            self._error = _cut() if _is_untold_cut(error) else error
            if not begun:
                raise self._error

    def _flush(self) -> bool:
        """Write ciphertext to the socket as far as it goes and return whether nothing is left.

        Raises:
            OSError: The connection is broken or closed.
        """
        with self._outgoing:
            while True:
                if not self._unsent:
                    if not self._to_peer.pending:
                        break
                    with self._tls:
                        self._unsent = self._to_peer.read()
                sent = super().send([self._unsent])
                if sent < len(self._unsent):
                    self._unsent = memoryview(self._unsent)[sent:]
                    return False
                self._unsent = b""
            if self._finishing:
                super().finish()
            return True


def _portions(pieces: Sequence[Buffer], bytes_max: int) -> Iterator[Buffer]:
    """Yield the bytes of all pieces, at most so many at a time: small pieces are joined, large ones are not copied."""
    join_bytes_max = min(JOIN_BYTES_MAX, bytes_max)
    small: list[memoryview] = []
    small_bytes = 0
    for piece in pieces:
        view = memoryview(piece).cast("B")
        size = len(view)
        if small and (size >= RECORD_BYTES or small_bytes + size > join_bytes_max):
            yield b"".join(small)
            small, small_bytes = [], 0
        if size >= RECORD_BYTES:
            for at in range(0, size, bytes_max):
                yield view[at : at + bytes_max]
        elif size:
            small.append(view)
            small_bytes += size
    if small:
        yield small[0] if len(small) == 1 else b"".join(small)


def _is_untold_cut(error: OSError) -> bool:
    """Whether a connection was cut and the error does not say so by its class: in 3.11.2 none does."""
    return type(error) is ssl.SSLError and error.reason == CUT


def _cut() -> ssl.SSLEOFError:
    """Return the error that newer Pythons have for a connection that was cut."""
    return ssl.SSLEOFError(ssl.SSL_ERROR_EOF, "EOF occurred in violation of protocol")


def _reason_of(error: OSError) -> str:
    """Return in a few words why there is no connection."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is refused: {error.verify_message}"
        case ssl.SSLEOFError() | ConnectionResetError() | BrokenPipeError():
            return "it closed the connection"
        case ssl.SSLError():
            return REASONS.get(error.reason, error.reason)
        case _:
            return error.strerror or str(error)
