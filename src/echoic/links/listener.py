"""Listeners: where other hubs connect to.

    Listener --- TCP socket          anybody who can reach the address
             --- Unix socket         processes of this user on this machine       (not with an identity)
             --- queue               hubs of this process                         (not with an identity)

With an identity everything is TLS. A Unix socket beside it would let in who has no certificate.

Strangers must not be able to stop a listener. So `accept` does nothing that waits for the other side: a TLS handshake
happens when the hub asks for it, in a thread of the hub's choice. A connection that was reset before it was accepted is
skipped, and when the process has no more file descriptors, `accept` waits a little and lets its caller go on.

Each connection is accepted by the files of the identity as they are at that moment. When they cannot be used any more,
nobody is let in, the log says why, and the next connection tries again.
"""

import contextlib
import errno
import logging
import os
import select
import socket
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from echoic.errors import InsecureError, UnreachableError
from echoic.links.address import EVERY_INTERFACE, format_address, has_unix_socket, is_loopback, parse_address, unix_path
from echoic.links.connection import Connection
from echoic.links.identity import Identity
from echoic.links.memory import connect_in_memory
from echoic.links.sockets import SocketConnection, tune_tcp
from echoic.links.tls import TlsConnection
from echoic.links.unix import UnixConnection

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Listener", "find_listener"]

BACKLOG: Final = 512
EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
EXHAUSTED_SECONDS: Final = 0.05
log: Final = logging.getLogger("echoic.links")


class Listener:
    """Accepts connections at an address."""

    def __init__(self, address: str, identity: Identity | None = None, *, visitors: bool = False) -> None:
        """Listen at an address; port 0 takes a free one.

        Args:
            address: Where.
            identity: Makes it TLS.
            visitors: Whether who shows no certificate is heard too; then it must prove itself by other means.

        Raises:
            AddressError: It is not an address.
            InsecureError: The files of the identity cannot be used.
            UnreachableError: The address cannot be listened at.
        """
        host, port = parse_address(address)
        if identity is not None:
            identity.listening_context()  # fails here rather than at the first connection
        self._identity = identity
        self._visitors = visitors
        self._complaint = ""
        self._tcp = _listen_tcp(host, port, address)
        self.host: Final = host
        self.port: Final[int] = self._tcp.getsockname()[1]
        self.address: Final = format_address(host, self.port)
        self._path: Path | None = None
        self._unix: socket.socket | None = None
        if identity is None and has_unix_socket(host, listening=True):
            self._listen_unix()
        self._waiting: deque[Connection] = deque()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._process = os.getpid()
        self._closed = False
        self._lock = threading.Lock()
        if identity is None:
            _listeners.append(self)

    def accept(self, milliseconds: int) -> Connection | None:
        """Return the next connection, None when none came in time or the listener is closed."""
        poller = select.poll()
        with self._lock:
            if self._closed:
                return None
            poller.register(self._wake, select.POLLIN)
        sockets = {listening.fileno(): listening for listening in (self._unix, self._tcp) if listening is not None}
        for descriptor in sockets:
            if descriptor >= 0:
                poller.register(descriptor, select.POLLIN)
        for descriptor, _ in poller.poll(milliseconds):
            listening = sockets.get(descriptor)
            connection = self._accept_waiting() if listening is None else self._accept_from(listening)
            if connection is not None:
                return connection
        return None

    def connect(self, address: str) -> Connection:
        """Return a connection from within this process.

        Raises:
            UnreachableError: The listener is closed, or too many connections wait for it.
        """
        dialler, accepted = connect_in_memory(address)
        with self._lock:
            refused = self._closed or len(self._waiting) >= BACKLOG
            if not refused:
                self._waiting.append(accepted)
                os.eventfd_write(self._wake, 1)
        if refused:
            dialler.close()
            accepted.close()
            raise UnreachableError(f"the hub at {address} is closed, or {BACKLOG} connections wait for it")
        return dialler

    def close(self) -> None:
        """Listen no longer. Connections that were accepted stay."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            os.eventfd_write(self._wake, 1)  # whoever polls it comes back, though it is closed at once
            os.close(self._wake)
            waiting = list(self._waiting)
        if self in _listeners:
            _listeners.remove(self)
        if self._path is not None and self._process == os.getpid():
            self._path.unlink(missing_ok=True)
        if self._unix is not None:
            self._unix.close()
        with contextlib.suppress(OSError):
            self._tcp.shutdown(socket.SHUT_RDWR)  # whoever polls it keeps it open a little longer, but not the port
        self._tcp.close()
        for connection in waiting:
            connection.close()

    def _listen_unix(self) -> None:
        """Listen on the Unix socket too, when that is possible."""
        path = unix_path(self.port)
        if path is None:
            return
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            path.unlink(missing_ok=True)  # of a hub that was killed: the port is ours
            listening.bind(str(path))
            listening.listen(BACKLOG)
            listening.setblocking(False)
        except OSError:
            listening.close()
        else:
            self._path, self._unix = path, listening

    def _accept_waiting(self) -> Connection | None:
        """Return the next connection from within this process."""
        with self._lock:
            if self._closed or not self._waiting:
                return None
            if len(self._waiting) == 1:
                os.eventfd_read(self._wake)
            return self._waiting.popleft()

    def _accept_from(self, listening: socket.socket) -> Connection | None:
        """Return the next connection of a socket, None when it vanished or there is no room for it."""
        try:
            accepted, where = listening.accept()
        except OSError as error:
            if error.errno in EXHAUSTED:
                time.sleep(EXHAUSTED_SECONDS)
            return None
        try:
            if accepted.family == socket.AF_UNIX:
                return UnixConnection(accepted)
            tune_tcp(accepted)
            peer = format_address(where[0], where[1])
            if self._identity is not None:
                identity = self._identity
                context = identity.receiving_context() if self._visitors else identity.listening_context()
                return TlsConnection(accepted, peer, context)
            return SocketConnection(accepted, peer, checked=not is_loopback(where[0]))
        except OSError:
            accepted.close()
            return None
        except InsecureError as error:
            accepted.close()
            self._complain(str(error))
            return None

    def _complain(self, complaint: str) -> None:
        """Say why nobody is let in, once; strangers decide how often it happens."""
        if complaint != self._complaint:
            self._complaint = complaint
            log.error("nobody can connect to %s: %s", self.address, complaint)


_listeners: Final[list[Listener]] = []
os.register_at_fork(after_in_child=_listeners.clear)  # nobody accepts in the child


def find_listener(host: str, port: int) -> Listener | None:
    """Return the listener of this process at an address that has no identity, if there is one."""
    wanted = {_canonical(host)} | ({EVERY_INTERFACE} if has_unix_socket(host) else set())
    for listener in _listeners.copy():
        if listener.port == port and _canonical(listener.host) in wanted:
            return listener
    return None


def _canonical(host: str) -> str:
    return "127.0.0.1" if has_unix_socket(host) else host


def _listen_tcp(host: str, port: int, address: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise UnreachableError(f"cannot listen at {address}: {error.strerror or error}") from error
    listening.setblocking(False)
    return listening
