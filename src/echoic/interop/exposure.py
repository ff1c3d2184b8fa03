"""Where something is served to other tools, and whether that may be: on this machine, by TLS, or since it is meant."""

from pathlib import Path
from typing import TypeAlias

import msgspec

from echoic.links import check_exposure, serving_context

__all__ = ["Certificate", "Exposure", "exposed"]

Certificate: TypeAlias = tuple[str | Path, str | Path]
"""The PEM files of a certificate and of its key."""


class Exposure(msgspec.Struct, frozen=True):
    """An address that was found safe enough to listen at."""

    host: str
    port: int
    certificate: Certificate | None

    def url(self, scheme: str, port: int) -> str:
        """Return the address as a URL, when the port is known: `http` becomes `https` and `ws` becomes `wss` by TLS."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}{'s' if self.certificate else ''}://{shown}:{port}"


def exposed(listen: str, certificate: Certificate | None, *, insecure: bool) -> Exposure:
    """Return where to listen.

    Raises:
        AddressError: `listen` is not an address.
        InsecureError: It can be reached from other machines, without TLS, and nobody said that this is meant; or the
            certificate cannot be used.
    """
    host, port = check_exposure(
        listen, secure=certificate is not None, insecure=insecure, remedy="certificate=... and its key"
    )
    if certificate is not None:
        serving_context(*certificate)  # refused before anything listens
    return Exposure(host, port, certificate)
