"""An authority for an hour, and a certificate of it, so that a trial can speak TLS."""

import datetime
import ipaddress
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from echoic.links import Identity

__all__ = ["issue_identity"]

LIFE: Final = datetime.timedelta(days=2)


def issue_identity(folder: Path, host: str = "127.0.0.1") -> Identity:
    """Make an authority and a certificate for a host, and return who has it and believes in it."""
    authority_key, own_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _builder("authority", "authority", authority_key).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    own = _builder("hub", "authority", own_key).add_extension(
        x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))]), critical=False
    )
    identity = Identity(folder / "hub.pem", folder / "hub.key", folder / "authority.pem")
    pem = serialization.Encoding.PEM
    identity.authority.write_bytes(authority.sign(authority_key, hashes.SHA256()).public_bytes(pem))
    identity.certificate.write_bytes(own.sign(authority_key, hashes.SHA256()).public_bytes(pem))
    identity.key.touch(0o600)
    identity.key.write_bytes(
        own_key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return identity


def _builder(subject: str, issuer: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - LIFE)
        .not_valid_after(now + LIFE)
    )
