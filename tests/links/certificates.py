"""Certificates for tests: an authority, and what it issues, good and bad."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from echoic.links import Identity

DAY = datetime.timedelta(days=1)


class Authority:
    """Issues identities into a folder."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self.folder = folder
        self.path = folder / "authority.pem"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name_of(name)
        certificate = (
            _builder(self._name, self._name, self._key, days=30)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *, host: str = "127.0.0.1", days: int = 30, believing: Path | None = None) -> Identity:
        """Make a certificate for a host, which has expired when `days` is negative, and who it believes."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _builder(_name_of(name), self._name, key, days=days)
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        certificate_path, key_path = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        certificate_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        key_path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return Identity(certificate_path, key_path, believing or self.path)


def _name_of(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, *, days: int
) -> x509.CertificateBuilder:
    today = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - 60 * DAY)
        .not_valid_after(today + days * DAY)
    )
