"""Files of TLS: a certificate with its key, an authority, a list of revoked certificates, loaded into a context.

Of a file that is not what it should be, OpenSSL says something like `[SSL] PEM lib`, and not which one it is. So each
is loaded by itself, and looked at when that fails.
"""

import ssl
from pathlib import Path
from typing import Final

from echoic.errors import InsecureError
from echoic.trust.private_files import FILE_BYTES_MAX

__all__ = ["load_authority", "load_pair", "load_revoked"]

CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"
KEY: Final = b"PRIVATE KEY-----"
OTHER_KEY: Final = "KEY_VALUES_MISMATCH"


def load_pair(context: ssl.SSLContext, certificate: str | Path, key: str | Path | None) -> None:
    """Have a context show a certificate.

    Args:
        context: Whose it is to be.
        certificate: A PEM file.
        key: That of its key; None if it is in the same file.

    Raises:
        InsecureError: They cannot be read, do not belong together, or the key has a password.
    """
    try:
        context.load_cert_chain(certificate, key, password=_refuse_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        why = _wrong_with_pair(Path(certificate), Path(key or certificate), error)
        raise InsecureError(f"cannot use certificate {certificate}: {why}") from error


def load_authority(context: ssl.SSLContext, authority: str | Path) -> None:
    """Have a context believe whom an authority has certified.

    Raises:
        InsecureError: The file cannot be read, or has no certificate.
    """
    try:
        context.load_verify_locations(authority)
    except ssl.SSLError as error:
        raise InsecureError(
            f"expected the certificate of an authority in PEM, got something else in {authority}"
        ) from error
    except OSError as error:
        raise InsecureError(f"cannot read {authority}: {error.strerror}") from error


def load_revoked(context: ssl.SSLContext, revoked: str | Path) -> None:
    """Have a context refuse what a list names.

    Raises:
        InsecureError: The list cannot be read or is none, or there is more in the file, which would be believed.
    """
    before, wrong = context.cert_store_stats(), f"expected a list of revoked certificates and nothing else in {revoked}"
    try:
        context.load_verify_locations(revoked)
    except ssl.SSLError as error:
        raise InsecureError(wrong) from error
    except OSError as error:
        raise InsecureError(f"cannot read {revoked}: {error.strerror}") from error
    after = context.cert_store_stats()
    if after["crl"] != 1 or after["x509"] != before["x509"]:
        raise InsecureError(wrong)
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _wrong_with_pair(certificate: Path, key: Path, error: Exception) -> str:
    """Return what is wrong with a certificate and its key, of which OpenSSL has said something."""
    for path, mark, what in ((certificate, CERTIFICATE, "a certificate"), (key, KEY, "a private key")):
        try:
            with path.open("rb") as file:
                data = file.read(FILE_BYTES_MAX)
        except OSError as unread:
            return f"cannot read {path}: {unread.strerror}"
        if mark not in data:
            return f"expected {what} in PEM in {path}, found none"
    if not isinstance(error, ssl.SSLError):
        return f"{error} - at {key}"
    if error.reason == OTHER_KEY:
        return f"the key in {key} is that of another one"
    return f"it or the key in {key} is damaged: {error}"


def _refuse_password() -> str:
    """Keep OpenSSL from asking at the terminal."""
    raise ValueError("the key is encrypted, expected one without a password")
