"""Dialling: the quickest way to the hub at an address.

    a listener of this process       queues in memory
    127.0.0.1, and it has one        its Unix socket
    anything else                    TCP
    with an identity                 TLS over TCP, wherever it is

The environment variable ECHOIC_LINKS, if set, names the only ways to take without an identity: `memory`, `unix`, `tcp`
or several with commas between. It is meant for measuring and for finding faults.

A hub that was killed leaves its Unix socket behind, where nobody answers; TCP will tell then whether the hub is there.
"""

import errno
import os
import socket
import ssl
from typing import Final

from echoic.errors import UnreachableError
from echoic.links.address import format_address, has_unix_socket, is_loopback, parse_address, unix_path
from echoic.links.connection import Connection
from echoic.links.identity import Identity, Visitor
from echoic.links.listener import find_listener
from echoic.links.sockets import SocketConnection, tune_tcp
from echoic.links.tls import TlsConnection
from echoic.links.unix import UnixConnection

__all__ = ["dial"]

DIAL_SECONDS: Final = 3.0


def dial(
    address: str, identity: Identity | Visitor | None = None, *, timeout: float = DIAL_SECONDS, polled: bool = False
) -> Connection:
    """Connect to the hub at an address.

    Args:
        address: Where it listens.
        identity: Who we are, or whose authority we believe; the connection is then TLS.
        polled: Have a connection whose file descriptor tells when `receive` returns something, so not one in memory.
        timeout: How many seconds to wait for each of the addresses that a host name stands for, and for a handshake.

    Raises:
        AddressError: It is not an address.
        InsecureError: The files of the identity cannot be used.
        UnreachableError: Nobody answers there, or not who it should be.
    """
    host, port = parse_address(address)
    if identity is not None:
        return _dial_tls(host, port, identity.dialling_context(), timeout)
    ways = os.environ.get("ECHOIC_LINKS", "memory,unix,tcp").split(",")
    if polled:
        ways = [way for way in ways if way != "memory"] or ["unix", "tcp"]
    listener = find_listener(host, port) if "memory" in ways else None
    if listener is not None:
        return listener.connect(address)
    local = _dial_unix(port, address, timeout) if "unix" in ways and has_unix_socket(host) else None
    if local is not None:
        return local
    if "tcp" not in ways:
        raise UnreachableError(f"no hub answers at {address} by way of {','.join(ways)}, which ECHOIC_LINKS demands")
    connected, remote = _dial_tcp(host, port, address, timeout)
    return SocketConnection(connected, address, checked=not is_loopback(remote))


def _dial_unix(port: int, address: str, timeout: float) -> Connection | None:
    """Return a connection to the Unix socket of a port, None when nobody answers there."""
    path = unix_path(port)
    if path is None or not path.exists():
        return None
    local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        local.settimeout(timeout)
        local.connect(str(path))
        return UnixConnection(local, address)
    except OSError:
        local.close()
        return None


def _dial_tcp(host: str, port: int, address: str, timeout: float) -> tuple[socket.socket, str]:
    """Return a socket that is connected to an address, and the number of the host at the other end.

    Raises:
        UnreachableError: Nobody answers there.
    """
    connected: socket.socket | None = None
    try:
        connected = socket.create_connection((host, port), timeout)
        remote = connected.getpeername()
        if remote == connected.getsockname():
            # The system may choose the very port we dial for our own end, and so connect us to ourselves.
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        tune_tcp(connected)
    except (OSError, UnicodeError) as error:  # the latter for a name that no host can have
        if connected is not None:
            connected.close()
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise UnreachableError(f"no hub answers at {address}: {reason}") from error
    return connected, remote[0]


def _dial_tls(host: str, port: int, context: ssl.SSLContext, timeout: float) -> Connection:
    """Return a connection whose peer has proved to be the host we dialled."""
    address = format_address(host, port)
    connected, _ = _dial_tcp(host, port, address, timeout)
    connection = TlsConnection(connected, address, context, host=host)
    try:
        connection.handshake(timeout)
    except UnreachableError:
        connection.close()
        raise
    return connection
