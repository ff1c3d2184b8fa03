"""Addresses: where a hub listens, `host:port`, and the Unix socket beside it for peers on the same machine.

A Unix socket saves a third of a round trip and can carry shared memory, so that a hub listening at 127.0.0.1:7401 also
listens at a path made of the port. The folder of that path must be ours alone: whoever can write into it could put a
socket of their own there and sit in the middle of every connection.

    127.0.0.1:7401   ->   $XDG_RUNTIME_DIR/echoic-7401-4026531840.sock
                          /tmp/echoic-1000/echoic-7401-4026531840.sock

The last number is the network namespace. Two containers may share the folder and each have a hub at port 7401 of what
it takes for 127.0.0.1. For the same reason only 127.0.0.1 has a Unix socket: 127.0.0.2 and ::1 are loopback addresses
too, but the hub there may be another.
"""

import ipaddress
import os
import stat
from pathlib import Path
from typing import Final

from echoic.errors import AddressError

__all__ = ["format_address", "has_unix_socket", "is_loopback", "parse_address", "plain_host", "unix_path"]

PORT_MAX: Final = 65535
PORT_DIGITS_MAX: Final = 5
MAIN_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost"})
EVERY_INTERFACE: Final = "0.0.0.0"  # noqa: S104 - compared with, not listened at


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of `host:port` or `[v6]:port`.

    Raises:
        AddressError: It is neither.
    """
    host, _, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]") if host.startswith("[") and host.endswith("]") else host
    numeric = port.isascii() and port.isdigit() and len(port) <= PORT_DIGITS_MAX and int(port) <= PORT_MAX
    if not numeric or not _is_host(bare, bracketed=bare != host):
        raise AddressError(f"expected an address like 127.0.0.1:7401 or [::1]:7401, got `{text}`")
    return bare, int(port)


def format_address(host: str, port: int) -> str:
    """Return the text from which `parse_address` gives the same host and port."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def plain_host(host: str) -> str:
    """Return the one spelling of a host's number or name; OpenSSL writes all the zeros of IPv6."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.lower()


def is_loopback(host: str) -> bool:
    """Tell whether only programs on this machine can reach a host."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def has_unix_socket(host: str, *, listening: bool = False) -> bool:
    """Tell whether the hub at a host of this machine, and no other hub, owns the Unix socket of its port."""
    return host in MAIN_LOOPBACK or (listening and host == EVERY_INTERFACE)


def unix_path(port: int) -> Path | None:
    """Return where the hub at a port of this machine has its Unix socket, None when the folder is not ours alone."""
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/tmp/echoic-{os.getuid()}")  # noqa: S108 - checked below
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        network = Path("/proc/self/ns/net").stat().st_ino
    except OSError:
        return None
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return folder / f"echoic-{port}-{network}.sock" if ours else None


def _is_host(host: str, *, bracketed: bool) -> bool:
    """Tell whether a text can be a host: a v6 address in brackets, or a name or v4 address without."""
    if bracketed:
        try:
            ipaddress.IPv6Address(host)
        except ValueError:
            return False
        return True
    return bool(host) and host.isprintable() and not set(host) & set(" []:/")
