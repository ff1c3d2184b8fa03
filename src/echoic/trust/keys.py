"""Signing keys: who has written something, or said so.

Whoever ships code signs it, and whoever runs it has listed the signer (threat model: "modulator author"). Ed25519 is
the one algorithm, so nothing is negotiated and nothing can be talked down. A public key is one word that fits into a
configuration or a message to a colleague:

    ed25519:lTYLqvq3pDNEFnoFwVyxTFE0XUkVJF8pKYJ0Hk1Su3Q

A private key is a PKCS 8 file in PEM, as `openssl genpkey -algorithm ed25519` makes one, and readable by its owner
alone.
"""

import base64
import binascii
from pathlib import Path
from typing import TYPE_CHECKING, Final

from echoic.errors import LocalError, RefusedError
from echoic.trust.names import check_name
from echoic.trust.private_files import home, read_private, write_private

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["SIGNATURE_BYTES", "SigningKey", "check_public", "key_path", "verify"]

PREFIX: Final = "ed25519:"
PUBLIC_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64


class SigningKey:
    """A private Ed25519 key. Made by `generate` or `load`."""

    __slots__ = ("_private", "public")

    def __init__(self, private: "Ed25519PrivateKey") -> None:
        self._private = private
        self.public: Final = PREFIX + _letters(private.public_key().public_bytes_raw())
        """The public half as text, which others list."""

    @classmethod
    def generate(cls) -> "SigningKey":
        """Make a key that nobody has."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: Path | str) -> "SigningKey":
        """Read a key from its file.

        Raises:
            LocalError: There is no such file, or no Ed25519 key in it.
            InsecureError: Others than its owner may read the file.
        """
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        data = read_private(Path(path))
        if data is None:
            raise LocalError(f"there is no key file {path}; `echoic keys new` makes one")
        try:
            private = load_pem_private_key(data, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise LocalError(
                f"expected a private key in PEM without a password, got something else in {path}"
            ) from error
        if not isinstance(private, Ed25519PrivateKey):
            raise LocalError(f"expected an Ed25519 key, got another kind of key in {path}")
        return cls(private)

    def save(self, path: Path | str, *, force: bool = False) -> None:
        """Write the key to a file that only its owner can read.

        Raises:
            LocalError: The file is there already and `force` was not given, or it cannot be written.
        """
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        data = self._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_private(Path(path), data, replace=force)

    def sign(self, data: bytes) -> bytes:
        """Return the signature of bytes."""
        return self._private.sign(data)

    def __repr__(self) -> str:
        return f"<SigningKey {self.public}>"


def verify(public: str, data: bytes, signature: bytes) -> None:
    """Check that the owner of a public key has signed these bytes.

    Raises:
        RefusedError: Nobody has, or the key is none.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        raw = _public_bytes(public)
    except LocalError as error:
        raise RefusedError(str(error)) from error
    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(signature, data)
    except (InvalidSignature, ValueError) as error:
        raise RefusedError(f"the signature is not that of {public} for these {len(data)} bytes") from error


def check_public(public: str) -> None:
    """Refuse what is not a public key.

    Raises:
        LocalError: Naming the form.
    """
    _public_bytes(public)


def key_path(name: str = "default") -> Path:
    """Return the file of the private key of a name.

    Raises:
        LocalError: This cannot name a key.
    """
    check_name(name, "a key's")
    return home() / f"{name}.key"


def _letters(raw: bytes) -> str:
    return base64.b64encode(raw).rstrip(b"=").decode("ascii")


def _public_bytes(public: str) -> bytes:
    """Return the bytes of a public key; each key has one spelling.

    Raises:
        LocalError: It is none.
    """
    try:
        raw = base64.b64decode(public.removeprefix(PREFIX) + "=", validate=True)
    except (ValueError, binascii.Error):
        raw = b""
    if len(raw) != PUBLIC_BYTES or public != PREFIX + _letters(raw):
        raise LocalError(f"expected a public key like {PREFIX}BASE64 of {PUBLIC_BYTES} bytes, got {public[:80]!r}")
    return raw
