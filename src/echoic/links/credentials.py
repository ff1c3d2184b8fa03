"""Credentials: who the peer of a connection has proved to be.

A certificate says two things, both in its subject alternative names: a URI `echoic:NAME` says who has it, and names
and numbers of hosts say where its owner may be dialled. Rights are given to the former; the latter is what a dialler
compares with the address it dialled. Certificates of an authority that knows nothing of echoic have no such URI, and
then the first name of a host is the name.

Whoever has several names of ours in one certificate has none: it is not for us to choose.
"""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from echoic.links.address import plain_host
from echoic.trust import is_name
from echoic.trust.names import URI_SCHEME

__all__ = ["Credentials", "credentials_of", "name_among"]


@dataclass(frozen=True, slots=True)
class Credentials:
    """What the verified certificate of a peer says."""

    name: str
    """Who it is; empty if the certificate has no name that rights could be given to."""
    hosts: frozenset[str]
    """The names and numbers of the hosts at which it may be dialled."""
    expires: float
    """When the certificate expires, in seconds of the Unix clock."""
    serial: int = 0
    """The number that its authority gave it, by which it may be revoked."""

    def expired(self, now: float) -> bool:
        """Whether the certificate has expired at a time, as OpenSSL sees it: in its last second it does not count."""
        return now >= self.expires

    def covers(self, host: str) -> bool:
        """Whether its owner may be dialled at a host; `*` stands for one word at the left, as in TLS."""
        plain = plain_host(host)
        return any(
            plain.partition(".")[2] == known[2:] if known.startswith("*.") else plain == known
            for known in map(plain_host, self.hosts)
        )


def credentials_of(certificate: Mapping[str, object]) -> Credentials:
    """Return what a verified certificate says, of the form in which `ssl` has it (`getpeercert`)."""
    names: dict[str, list[str]] = {}
    alternatives = certificate.get("subjectAltName", ())
    for kind, value in alternatives if isinstance(alternatives, tuple) else ():
        names.setdefault(kind, []).append(value)
    hosts = names.get("DNS", [])
    return Credentials(
        name_among(names.get("URI", []), hosts),
        frozenset(hosts + [plain_host(number.strip()) for number in names.get("IP Address", [])]),
        float(ssl.cert_time_to_seconds(str(certificate["notAfter"]))),
        int(str(certificate.get("serialNumber", "0")), 16),
    )


def name_among(uris: Sequence[str], hosts: Sequence[str]) -> str:
    """Return whose a certificate is that has these URIs and names of hosts; "" if that is nobody's, or of several."""
    ours = [uri.removeprefix(URI_SCHEME) for uri in uris if uri.startswith(URI_SCHEME)]
    name = (ours if len(ours) == 1 else [""])[0] if ours else (*hosts, "")[0]
    return name if is_name(name) else ""
