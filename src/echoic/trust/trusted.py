"""The trust file: the keys whose code an operator runs, and where.

A line for each key, and nothing that could run:

    # key, where its modulators run, whose it is
    ed25519:lTYLqvq3pDNEFnoFwVyxTFE0XUkVJF8pKYJ0Hk1Su3Q process alice
    ed25519:0mYLrvT3pDNEFnoFwVyxTFE0XUkVJF8pKYJ0Hk1Su3Q sandbox bob
    * sandbox everybody

`process` is the hub's own process, with everything the hub may do; `sandbox` is a confined one. Certificates with
authorities and expiry were the alternative: they say who somebody is, which is the question of TLS
(`trust.certificates`). Here the question is whose code runs, which an operator answers one author at a time.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from echoic.errors import LocalError
from echoic.trust.keys import check_public
from echoic.trust.names import check_name
from echoic.trust.private_files import OTHERS_WRITE, home, read_private, write_private

__all__ = [
    "ANYBODY",
    "TrustedKey",
    "read_trust",
    "sandboxed_keys",
    "trust_path",
    "trusted_keys",
    "write_trust",
]

ANYBODY: Final = "*"
"""Stands for every key in the trust file, for the sandbox only."""
PLACES: Final = {"process": False, "sandbox": True}
KEYS_MAX: Final = 4096


class TrustedKey(msgspec.Struct, frozen=True):
    """A line of the trust file: whose modulators run here, and where."""

    public: str
    """The key, or `*` for every key."""
    name: str = ""
    """Whose it is, for people."""
    sandbox: bool = False
    """Whether its modulators run only in a confined process."""


def trust_path() -> Path:
    """Return the trust file."""
    return home() / "trusted"


def read_trust(path: Path | str | None = None) -> tuple[TrustedKey, ...]:
    """Return the keys of a trust file; none if there is no file.

    Raises:
        LocalError: The file is not a trust file.
        InsecureError: Others than its owner may write the file.
    """
    file = Path(path) if path is not None else trust_path()
    data = read_private(file, forbidden=OTHERS_WRITE)
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
    write_private(file, "".join(f"{line}\n" for line in lines).encode(), replace=True)


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
        check_name(name, "a key's")
    return TrustedKey(public, name, sandbox)
