"""Identities: who a hub is, by a certificate, and whom it believes.

TLS 1.3 and nothing older, and both sides show a certificate: a hub runs code that its peers send, and must know them.
Whoever has a certificate from `authority` is one of us. Use an authority of your own for this; everybody has a
certificate from a public one.

Browsers and tools that are no hubs have no certificate to show. They are served by `serving_context`, and prove who
they are by other means, if at all.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path

from echoic.errors import InsecureError

__all__ = ["Identity", "serving_context"]


@dataclass(frozen=True, slots=True)
class Identity:
    """The files, all PEM, that make a hub's connections secret and its peers known."""

    certificate: Path
    key: Path
    authority: Path

    def dialling_context(self) -> ssl.SSLContext:
        """Return how to dial: the listener's certificate must be from the authority, and for the host we dialled.

        Raises:
            InsecureError: One of the files is missing, or is not what it should be.
        """
        return self._context(ssl.PROTOCOL_TLS_CLIENT)

    def listening_context(self) -> ssl.SSLContext:
        """Return how to listen: the dialler must have a certificate from the authority.

        Raises:
            InsecureError: One of the files is missing, or is not what it should be.
        """
        context = self._context(ssl.PROTOCOL_TLS_SERVER)
        context.num_tickets = 0  # sessions are not resumed; a ticket nobody reads would reset the connection
        return context

    def _context(self, protocol: int) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_cert_chain(self.certificate, self.key, password=_refuse_password)
            context.load_verify_locations(self.authority)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise InsecureError(
                f"cannot use certificate {self.certificate}, key {self.key} and authority {self.authority}: {error}"
            ) from error
        return context


def serving_context(certificate: str | Path, key: str | Path | None) -> ssl.SSLContext:
    """Return how to serve others than hubs: by a certificate of ours, whoever they are.

    Args:
        certificate: A PEM file.
        key: That of its key; None if it is in the same file.

    Raises:
        InsecureError: They cannot be read, do not belong together, or the key has a password.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password=_refuse_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise InsecureError(f"cannot use certificate {certificate} and key {key}: {error}") from error
    return context


def _refuse_password() -> str:
    """Keep OpenSSL from asking at the terminal."""
    raise ValueError("the key is encrypted, expected one without a password")
