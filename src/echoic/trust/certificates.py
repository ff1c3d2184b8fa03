"""Certificates: made and read, in memory.

    subject          CN=alice                                     for people who look at it
    alternative      URI echoic:alice                             who
      names          DNS lab.example.org, IP 10.0.0.5             where a dialler may find it
    key usage        signatures, for servers and for clients      a hub is both
    key              ECDSA on P-256                               browsers take no Ed25519 in certificates

The authority signs certificates and lists of revoked ones, nothing else, and what it has certified cannot certify
anybody further.

A certificate holds from five minutes ago on, since clocks of two machines differ.
"""

import datetime
import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from echoic.errors import LocalError
from echoic.trust.names import URI_SCHEME, check_bearer

__all__ = [
    "AUTHORITY_DAYS",
    "CERTIFICATE_DAYS",
    "Certified",
    "check_host",
    "make_authority",
    "make_certificate",
    "make_revocations",
    "read_certified",
    "read_terms",
]

AUTHORITY_DAYS: Final = 3650
CERTIFICATE_DAYS: Final = 90
HOSTS_MAX: Final = 64
HOST: Final = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_]([A-Za-z0-9_\-]{0,62})(\.[A-Za-z0-9_][A-Za-z0-9_\-]{0,62})*\Z")
DIGEST: Final = hashes.SHA256()
CLOCKS_DIFFER: Final = datetime.timedelta(minutes=5)
ONE_DAY: Final = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Certified:
    """A certificate with its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def certificate_pem(self) -> bytes:
        """Return the certificate alone, which anybody may have."""
        return self.certificate.public_bytes(Encoding.PEM)

    def key_pem(self) -> bytes:
        """Return the private key alone."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def make_authority(now: datetime.datetime, days: int = AUTHORITY_DAYS, name: str = "echoic authority") -> Certified:
    """Return an authority that nobody has certified but itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(name)
    builder = (
        _builder(subject, subject, key, now, now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
    )
    return Certified(builder.sign(key, DIGEST), key)


def make_certificate(
    authority: Certified, name: str, hosts: Sequence[str], now: datetime.datetime, days: int = CERTIFICATE_DAYS
) -> Certified:
    """Return a certificate for somebody, with a key that nobody else has.

    Args:
        authority: Who signs it.
        name: Who it is for.
        hosts: Where whoever has it may be dialled: names and numbers.
        now: When it is made.
        days: How long it holds; never longer than the authority itself.

    Raises:
        LocalError: Nobody can be called this, or a host is none.
    """
    check_bearer(name, "a certificate's")
    if len(hosts) > HOSTS_MAX:
        raise LocalError(f"a certificate is for at most {HOSTS_MAX} hosts, got {len(hosts)}")
    end = min(now + datetime.timedelta(days=days), authority.certificate.not_valid_after_utc)
    key = ec.generate_private_key(ec.SECP256R1())
    alternatives = [x509.UniformResourceIdentifier(URI_SCHEME + name), *map(check_host, hosts)]
    issuer = authority.certificate
    builder = (
        _builder(_subject(name), issuer.subject, key, now, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
    )
    return Certified(builder.sign(authority.key, DIGEST), key)


def make_revocations(
    authority: Certified, revoked: Iterable[tuple[int, int]], number: int, now: datetime.datetime
) -> bytes:
    """Return the list of revoked certificates, in PEM and signed by the authority.

    It holds as long as the authority does. A shorter time would have every hub refuse everybody when nobody has renewed
    the list in time, and nobody renews it where the authority is a folder on somebody's machine.

    Args:
        authority: Who signs it.
        revoked: For each certificate its serial number, and when it was revoked, in seconds of the Unix clock.
        number: Greater than that of every list before.
        now: When it is made.
    """
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(authority.certificate.subject)
        .last_update(now - CLOCKS_DIFFER)
        .next_update(authority.certificate.not_valid_after_utc)
        .add_extension(x509.CRLNumber(number), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
    )
    for serial, seconds in revoked:
        when = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(when).build()
        builder = builder.add_revoked_certificate(entry)
    return builder.sign(authority.key, DIGEST).public_bytes(Encoding.PEM)


def read_certified(certificate: bytes, key: bytes, place: str) -> Certified:
    """Return a certificate with its key, of PEM.

    Raises:
        LocalError: They are none, or do not belong together.
    """
    try:
        made = x509.load_pem_x509_certificate(certificate)
        private = load_pem_private_key(key, password=None)
    except (ValueError, TypeError) as error:
        raise LocalError(f"expected a certificate and its key in PEM, got something else in {place}") from error
    if not isinstance(private, ec.EllipticCurvePrivateKey) or made.public_key() != private.public_key():
        raise LocalError(f"the certificate and the key in {place} do not belong together")
    return Certified(made, private)


def read_terms(authority: Certified, pem: bytes, name: str, place: str) -> tuple[tuple[str, ...], int]:
    """Return for which hosts and how many days the authority has certified somebody, also if that is over.

    Raises:
        LocalError: It is no certificate, not of this authority, or for somebody else.
    """
    try:
        made = x509.load_pem_x509_certificate(pem)
        names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound) as error:
        raise LocalError(f"expected a certificate of `{name}` in PEM, got something else in {place}") from error
    try:
        made.verify_directly_issued_by(authority.certificate)
    except (ValueError, TypeError, InvalidSignature) as error:
        raise LocalError(f"the certificate in {place} is not of this authority, so that it cannot renew it") from error
    if URI_SCHEME + name not in names.get_values_for_type(x509.UniformResourceIdentifier):
        raise LocalError(f"the certificate in {place} is not for `{name}`")
    hosts = tuple(str(each.value) for each in names if not isinstance(each, x509.UniformResourceIdentifier))
    return hosts, max(1, round((made.not_valid_after_utc - made.not_valid_before_utc) / ONE_DAY))


def check_host(host: str) -> x509.GeneralName:
    """Return a host as certificates have it.

    Raises:
        LocalError: It is neither the name nor the number of a host.
    """
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    if not HOST.match(host) or re.fullmatch(r"[0-9.]+", host):
        raise LocalError(f"expected the name or the number of a host, without a port, got {host[:80]!r}")
    return x509.DNSName(host)


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime.datetime,
    end: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, end) - CLOCKS_DIFFER)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )
