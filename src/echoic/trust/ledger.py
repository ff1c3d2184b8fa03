"""The ledger: what an authority has issued and not yet seen expire, and what of it was revoked.

Without it nobody could revoke by name: a certificate is revoked by its number, and a token by its id, which people do
not know. What expired more than a day ago is dropped: nobody believes it any more, even by a clock that is slow.

Issuing stops when the ledger is full, and says so; revoking never does. It makes a ledger larger, by when something was
revoked, so what is read may be much larger than what issuing may make of it.
"""

from typing import Final, Literal

import msgspec

from echoic.errors import LocalError

__all__ = ["READ_BYTES_MAX", "Issued", "Ledger", "read_ledger", "write_ledger"]

ENTRIES_MAX: Final = 4096
WRITE_BYTES_MAX: Final = 4 * 1024 * 1024
READ_BYTES_MAX: Final = 16 * 1024 * 1024
SLOW_CLOCK_SECONDS: Final = 86400


class Issued(msgspec.Struct, frozen=True, omit_defaults=True):
    """A certificate or a token."""

    kind: Literal["certificate", "token"]
    name: str
    """Who it is for."""
    id: str
    """The serial number of a certificate in hexadecimal digits, or the id of a token."""
    scope: tuple[str, ...]
    """The hosts of a certificate, or the channels of a token."""
    begins: int
    expires: int
    """In seconds of the Unix clock."""
    revoked: int = 0
    """When it was revoked; 0 if it was not."""


class Ledger(msgspec.Struct, frozen=True):
    """Everything of it."""

    entries: tuple[Issued, ...] = ()
    revocations: int = 0
    """How many lists of revoked certificates there have been."""

    def add(self, entry: Issued, now: int) -> "Ledger":
        """Return the ledger with one entry more, and without what has expired.

        Raises:
            LocalError: There are too many, or they say too much.
        """
        kept = self._kept(now)
        if len(kept) >= ENTRIES_MAX:
            raise LocalError(f"{len(kept)} certificates and tokens hold at this time, limit is {ENTRIES_MAX}")
        made = Ledger((*kept, entry), self.revocations)
        size = len(write_ledger(made))
        if size > WRITE_BYTES_MAX:
            raise LocalError(
                f"the {len(kept)} certificates and tokens that hold at this time would take {size} bytes together with "
                f"that of `{entry.name}`, limit is {WRITE_BYTES_MAX}; those for fewer hosts or channels take less"
            )
        return made

    def revoke(self, what: str, now: int) -> tuple["Ledger", tuple[Issued, ...]]:
        """Return the ledger with everything revoked that has this name or id, and what that is; however large it is."""
        entries, found = list[Issued](), list[Issued]()
        for each in self._kept(now):
            meant = what in (each.name, each.id) and not each.revoked
            entries.append(msgspec.structs.replace(each, revoked=now) if meant else each)
            if meant:
                found.append(each)
        return Ledger(tuple(entries), self.revocations + 1), tuple(found)

    def latest(self, name: str) -> Issued | None:
        """Return the certificate that was issued last for a name."""
        mine = [each for each in self.entries if each.kind == "certificate" and each.name == name]
        return mine[-1] if mine else None

    def revoked(self, kind: str) -> tuple[Issued, ...]:
        """Return what was revoked, of a kind."""
        return tuple(each for each in self.entries if each.kind == kind and each.revoked)

    def _kept(self, now: int) -> tuple[Issued, ...]:
        """Return what somebody may still believe."""
        return tuple(each for each in self.entries if each.expires > now - SLOW_CLOCK_SECONDS)


def read_ledger(data: bytes, place: str) -> Ledger:
    """Return what a file says.

    Raises:
        LocalError: It is not a ledger.
    """
    try:
        return msgspec.json.decode(data, type=Ledger)
    except msgspec.DecodeError as error:
        raise LocalError(f"expected what an authority has issued: {error} - at {place}") from error


def write_ledger(ledger: Ledger) -> bytes:
    """Return what its file is to have."""
    return msgspec.json.format(msgspec.json.encode(ledger), indent=1) + b"\n"
