"""Revocations: the certificates that count no more, as their file is at the moment.

TLS itself refuses a revoked certificate, at the handshake. A conversation that is under way goes on, so whoever holds
one that cannot be made anew without harm asks here, again and again: a bus of its tools, which may not know how to come
back, and a service of its clients in the middle of their requests. Links between hubs do not need it: they are made
anew.

A list that cannot be read changes nothing for those who are there: half of a file that is being copied would send
everybody away. Nobody new comes in meanwhile.
"""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from echoic.trust.watched import Mark, mark_of

if TYPE_CHECKING:
    from cryptography.x509 import CertificateRevocationList

__all__ = ["Revocations"]

log: Final = logging.getLogger("echoic.trust")


class Revocations:
    """Knows what a list names. Any thread may ask."""

    def __init__(self, path: Path | None) -> None:
        """Take a file; without one nothing is ever revoked."""
        self._path = path
        self._known: tuple[Mark | None, CertificateRevocationList | None] = (None, None)

    def lists(self, serial: int) -> bool:
        """Whether the certificate with a serial number is revoked."""
        if self._path is None:
            return False
        mark = mark_of(self._path)
        if mark != self._known[0]:
            self._known = (mark, self._read(self._path) or self._known[1])
        listed = self._known[1]
        return listed is not None and listed.get_revoked_certificate_by_serial_number(serial) is not None

    @staticmethod
    def _read(path: Path) -> "CertificateRevocationList | None":
        from cryptography import x509

        try:
            return x509.load_pem_x509_crl(path.read_bytes())
        except (OSError, ValueError) as error:
            log.warning("%s cannot be used, so what it said before still counts: %s", path, error)
            return None
