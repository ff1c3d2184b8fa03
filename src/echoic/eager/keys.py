"""Signing keys, and the file of keys that an operator trusts.

Whoever ships code signs it, and whoever runs it has listed the signer (threat model: "modulator author"). Ed25519 is
the one algorithm, so nothing is negotiated and nothing can be talked down. A public key is one word that fits into a
configuration or a message to a colleague:

    ed25519:lTYLqvq3pDNEFnoFwVyxTFE0XUkVJF8pKYJ0Hk1Su3Q

A private key is a PKCS 8 file in PEM, as `openssl genpkey -algorithm ed25519` makes one, and readable by its owner
alone; it is refused otherwise, as `ssh` does. The trust file has a line for each key, and nothing that could run:

    # key, where its modulators run, whose it is
    ed25519:lTYLqvq3pDNEFnoFwVyxTFE0XUkVJF8pKYJ0Hk1Su3Q process alice
    ed25519:0mYLrvT3pDNEFnoFwVyxTFE0XUkVJF8pKYJ0Hk1Su3Q sandbox bob
    * sandbox everybody

`process` is the hub's own process, with everything the hub may do; `sandbox` is a confined one. Certificates with
authorities and expiry were the alternative: they say who somebody is, which is the question of TLS (`links.identity`).
Here the question is whose code runs, which an operator answers one author at a time.

Both files lie in $ECHOIC_HOME, else in $XDG_CONFIG_HOME/echoic, else in ~/.config/echoic.
"""

import base64
import binascii
import os
import re
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.errors import InsecureError, LocalError, RefusedError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = [
    "ANYBODY",
    "SigningKey",
    "TrustedKey",
    "check_key_name",
    "check_public",
    "home",
    "key_path",
    "read_trust",
    "sandboxed_keys",
    "trust_path",
    "trusted_keys",
    "verify",
    "write_trust",
]

PREFIX: Final = "ed25519:"
PUBLIC_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
ANYBODY: Final = "*"
"""Stands for every key in the trust file, for the sandbox only."""
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\-]{0,63}\Z", re.ASCII)
PLACES: Final = {"process": False, "sandbox": True}
FILE_BYTES_MAX: Final = 1024 * 1024
KEYS_MAX: Final = 4096


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

        data = _read(Path(path), forbidden=0o077, danger="read")
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
        _write(Path(path), data, replace=force)

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


def check_key_name(name: str) -> None:
    """Refuse what cannot name a key.

    Raises:
        LocalError: Naming the rule.
    """
    if not NAME.match(name):
        raise LocalError(f"a key's name has at most 64 letters, digits, `_`, `-`, `.` and `@`, got {name[:80]!r}")


def home() -> Path:
    """Return the folder of keys: $ECHOIC_HOME, else `echoic` in the folder of configurations."""
    chosen = os.environ.get("ECHOIC_HOME")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "echoic"


def key_path(name: str = "default") -> Path:
    """Return the file of the private key of a name.

    Raises:
        LocalError: This cannot name a key.
    """
    check_key_name(name)
    return home() / f"{name}.key"


def trust_path() -> Path:
    """Return the trust file."""
    return home() / "trusted"


class TrustedKey(msgspec.Struct, frozen=True):
    """A line of the trust file: whose modulators run here, and where."""

    public: str
    """The key, or `*` for every key."""
    name: str = ""
    """Whose it is, for people."""
    sandbox: bool = False
    """Whether its modulators run only in a confined process."""


def read_trust(path: Path | str | None = None) -> tuple[TrustedKey, ...]:
    """Return the keys of a trust file; none if there is no file.

    Raises:
        LocalError: The file is not a trust file.
        InsecureError: Others than its owner may write the file.
    """
    file = Path(path) if path is not None else trust_path()
    data = _read(file, forbidden=0o022, danger="write")
    try:
        lines = (data or b"").decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise LocalError(f"expected lines of text: {error} - at {file}") from error
    rows = [(number, line.split()) for number, line in enumerate(lines, 1)]
    keys = tuple(_trusted(words, f"{file}:{number}") for number, words in rows if words and words[0][0] != "#")
    if len(keys) > KEYS_MAX:
        raise LocalError(f"the trust file has {len(keys)} keys, limit is {KEYS_MAX} - at {file}")
    return keys


def write_trust(keys: Iterable[TrustedKey], path: Path | str | None = None) -> None:
    """Write a trust file, all of it or nothing.

    Raises:
        LocalError: The file cannot be written, or would have too many keys.
    """
    file = Path(path) if path is not None else trust_path()
    lines = ["# key, where its modulators run, whose it is"]
    for key in keys:
        place = "sandbox" if key.sandbox else "process"
        _trusted([key.public, place, *([key.name] if key.name else [])], f"`{key.name}`")
        lines.append(f"{key.public} {place} {key.name}".rstrip())
    if len(lines) - 1 > KEYS_MAX:
        raise LocalError(f"cannot trust {len(lines) - 1} keys, limit is {KEYS_MAX} - at {file}")
    _write(file, "".join(f"{line}\n" for line in lines).encode(), replace=True)


def trusted_keys(path: Path | str | None = None) -> tuple[str, ...]:
    """Return the keys whose modulators run in process: `Policy(trusted_keys=trusted_keys())`.

    Raises:
        LocalError: As `read_trust` does.
    """
    return tuple(key.public for key in read_trust(path) if not key.sandbox)


def sandboxed_keys(path: Path | str | None = None) -> tuple[str, ...]:
    """Return the keys whose modulators run in the sandbox: `Policy(sandboxed_keys=sandboxed_keys())`.

    Raises:
        LocalError: As `read_trust` does.
    """
    return tuple(key.public for key in read_trust(path) if key.sandbox)


def _trusted(words: list[str], place: str) -> TrustedKey:
    if len(words) not in (2, 3) or words[1] not in PLACES:
        raise LocalError(f"expected KEY process|sandbox [NAME], got {' '.join(words)[:120]!r} - at {place}")
    public, sandbox, name = words[0], PLACES[words[1]], "".join(words[2:])
    if public != ANYBODY:
        check_public(public)
    elif not sandbox:
        raise LocalError(f"`{ANYBODY}` stands for everybody's key and is for the sandbox only - at {place}")
    if name:
        check_key_name(name)
    return TrustedKey(public, name, sandbox)


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


def _read(path: Path, *, forbidden: int, danger: str) -> bytes | None:
    """Return the bytes of a file that others must not read or write; None if there is none."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            data = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LocalError(f"cannot read {path}: {error.strerror}") from error
    if mode & forbidden:
        raise InsecureError(
            f"others may {danger} {path}, its mode is {mode:04o}; chmod {mode & ~forbidden:04o} mends it"
        )
    if len(data) > FILE_BYTES_MAX:
        raise LocalError(f"{path} has more than {FILE_BYTES_MAX} bytes, limit is {FILE_BYTES_MAX}")
    return data


def _write(path: Path, data: bytes, *, replace: bool) -> None:
    """Write a file of mode 0600 by way of another one, so that nobody ever sees half of it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if replace:
                Path(name).replace(path)
            else:
                path.hardlink_to(name)  # unlike a rename, it fails where a file is
        finally:
            Path(name).unlink(missing_ok=True)
    except FileExistsError as error:
        raise LocalError(f"{path} is there already and would be lost; --force replaces it") from error
    except OSError as error:
        raise LocalError(f"cannot write {path}: {error.strerror}") from error
