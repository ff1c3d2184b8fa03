"""A certificate authority in a folder, for people who have none.

    authority/authority.pem     its certificate; every machine has a copy
    authority/revoked.pem       the certificates that count no more, signed; every machine has a copy
    authority/issuers           the public keys that may sign tokens
    authority/revoked-tokens    the ids of tokens that count no more
    authority/authority.key     signs certificates; stays here
    authority/tokens.key        signs tokens; stays here
    authority/issued.json       what was issued (`trust.ledger`); stays here
    identities/alice.pem        a certificate and its key in one file

Key and certificate are one file because they are replaced together: a rename puts the next pair in the place of the
last one, and no reader ever has the key of one and the certificate of the other.

Whoever has `authority.key` can be anybody. It is not protected by a password, as nothing here asks for one; keep the
folder on one machine that is not a hub, if that matters.
"""

import contextlib
import datetime
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from echoic.errors import LocalError
from echoic.trust.certificates import (
    AUTHORITY_DAYS,
    CERTIFICATE_DAYS,
    Certified,
    make_authority,
    make_certificate,
    make_revocations,
    read_certified,
    read_terms,
)
from echoic.trust.folder import (
    AUTHORITY,
    ISSUERS,
    REVOKED,
    REVOKED_TOKENS,
    authority_folder,
    identity_names,
    identity_path,
)
from echoic.trust.keys import SigningKey
from echoic.trust.ledger import READ_BYTES_MAX, Issued, Ledger, read_ledger, write_ledger
from echoic.trust.private_files import read_private, write_private
from echoic.trust.tokens import Claims, new_token_id, sign_token

__all__ = ["LOCAL_HOSTS", "Authority"]

KEY: Final = "authority.key"
TOKENS_KEY: Final = "tokens.key"
LEDGER: Final = "issued.json"
LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
DAYS_MAX: Final = 3650


class Authority:
    """Issues certificates and tokens, and revokes them. Made by `create` or `load`."""

    def __init__(self, folder: Path, certified: Certified, tokens: SigningKey) -> None:
        self.folder: Final = folder
        self._certified = certified
        self._tokens = tokens

    @classmethod
    def create(cls, folder: Path | None = None, *, days: int = AUTHORITY_DAYS) -> "Authority":
        """Make an authority, in a folder that has none; what it issues comes into the folder `identities` beside.

        Raises:
            LocalError: There is one already, or the folder cannot be written.
        """
        folder = folder or authority_folder()
        if (folder / KEY).exists() or (folder / AUTHORITY).exists():
            raise LocalError(f"there is an authority in {folder} already; whoever has its certificate would be lost")
        made = cls(folder, make_authority(_date(time.time()), days), SigningKey.generate())
        write_private(folder / ISSUERS, f"{made.issuer}\n".encode(), replace=True)
        made._write(Ledger())
        made._tokens.save(folder / TOKENS_KEY, force=True)
        write_private(folder / AUTHORITY, made._certified.certificate_pem(), replace=False)
        write_private(folder / KEY, made._certified.key_pem(), replace=False)  # last: it says that all is there
        return made

    @classmethod
    def load(cls, folder: Path | None = None) -> "Authority":
        """Read the authority in a folder.

        Raises:
            LocalError: There is none, or not all of it.
            InsecureError: Others than its owner may read its keys.
        """
        folder = folder or authority_folder()
        key, certificate = read_private(folder / KEY), read_private(folder / AUTHORITY)
        if key is None:
            raise LocalError(f"there is no authority in {folder}; `echoic keys init` makes one")
        certified = read_certified(certificate or b"", key, str(folder))
        return cls(folder, certified, SigningKey.load(folder / TOKENS_KEY))

    @property
    def issuer(self) -> str:
        """The public key by which its tokens are known."""
        return self._tokens.public

    def issued(self) -> tuple[Issued, ...]:
        """Return what was issued and has not expired.

        Raises:
            LocalError: The ledger cannot be read.
        """
        now = time.time()
        return tuple(each for each in self._read().entries if each.expires > now)

    def issue(
        self, name: str, hosts: Sequence[str] = LOCAL_HOSTS, days: int = CERTIFICATE_DAYS, *, replace: bool = False
    ) -> Path:
        """Issue a certificate with its key, and return the file that has both.

        Raises:
            LocalError: Nobody can be called this, a host is none, there is such a file already, or the ledger is full.
        """
        with self._alone():
            return self._issue(name, tuple(hosts), days, replace=replace)

    def rotate(self, name: str) -> Path:
        """Issue key and certificate of a name anew, for the same hosts and as many days, and return their file.

        Whoever reads the file at any moment has a pair that belongs together. The certificate before holds until it
        expires or is revoked. One that has expired is renewed all the same: what the ledger has dropped is in its file.

        Raises:
            LocalError: The authority has never certified this name, its file is gone or not from here, or the ledger is
                full.
        """
        with self._alone():
            hosts, days = self._terms(name)
            return self._issue(name, hosts, days, replace=True)

    def renewable(self) -> frozenset[str]:
        """Return the names whose certificates are in the ledger or in a file, also those that have expired.

        Raises:
            LocalError: The ledger cannot be read.
        """
        listed = {each.name for each in self._read().entries if each.kind == "certificate"}
        return frozenset(listed | set(identity_names(self.folder.parent)))

    def issue_token(self, who: str, rights: Sequence[str], channels: Sequence[str], seconds: int) -> str:
        """Return a token that holds from here on for some seconds.

        Raises:
            LocalError: The claims are none that anybody would believe, or the ledger is full.
        """
        now = int(time.time())
        claims = Claims(who, tuple(rights), tuple(channels), now, now + seconds, new_token_id())
        token = sign_token(self._tokens, claims)
        with self._alone():
            entry = Issued("token", who, claims.id, claims.channels, now, claims.expires)
            self._write(self._read().add(entry, now))
        return token

    def revoke(self, what: str) -> tuple[Issued, ...]:
        """Revoke all that has a name, or the certificate or token of an id, and return what that was.

        Raises:
            LocalError: Nothing of this name or id is there to revoke.
        """
        with self._alone():
            ledger, found = self._read().revoke(what, int(time.time()))
            if not found:
                raise LocalError(f"no certificate or token of the name or id `{what[:80]}` holds")
            self._write(ledger)
        return found

    def _terms(self, name: str) -> tuple[tuple[str, ...], int]:
        """Return for which hosts and how many days the last certificate of a name is."""
        before = self._read().latest(name)
        if before is not None:
            return before.scope, max(1, round((before.expires - before.begins) / 86400))
        path = identity_path(name, self.folder.parent)
        pem = read_private(path)
        if pem is None:
            raise LocalError(f"no certificate of `{name}` is known; `echoic keys issue {name}` makes one")
        return read_terms(self._certified, pem, name, str(path))

    def _issue(self, name: str, hosts: tuple[str, ...], days: int, *, replace: bool) -> Path:
        if not 1 <= days <= DAYS_MAX:
            raise LocalError(f"a certificate holds for 1 to {DAYS_MAX} days, got {days}")
        now, path = time.time(), identity_path(name, self.folder.parent)
        if not replace and path.exists():
            raise LocalError(f"{path} is there already; `echoic keys rotate {name}` renews it, --force replaces it")
        made = make_certificate(self._certified, name, hosts, _date(now), days)
        certificate = made.certificate
        entry = Issued(
            "certificate",
            name,
            f"{certificate.serial_number:x}",
            hosts,
            int(now),
            int(certificate.not_valid_after_utc.timestamp()),
        )
        self._write(self._read().add(entry, int(now)))  # first: what is in no ledger cannot be revoked
        write_private(path, made.key_pem() + made.certificate_pem(), replace=True)
        return path

    def _read(self) -> Ledger:
        path = self.folder / LEDGER
        data = read_private(path, bytes_max=READ_BYTES_MAX)
        if data is None:
            raise LocalError(f"there is no {path}, so nobody knows what was issued")
        return read_ledger(data, str(path))

    def _write(self, ledger: Ledger) -> None:
        """Write the ledger, and what follows from it; what was revoked before anything else."""
        revoked = [(int(each.id, 16), each.revoked) for each in ledger.revoked("certificate")]
        crl = make_revocations(self._certified, revoked, ledger.revocations, _date(time.time()))
        tokens = "".join(f"{each.id}\n" for each in ledger.revoked("token"))
        write_private(self.folder / LEDGER, write_ledger(ledger), replace=True)
        write_private(self.folder / REVOKED, crl, replace=True)
        write_private(self.folder / REVOKED_TOKENS, tokens.encode(), replace=True)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other programs from changing the ledger meanwhile."""
        handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _date(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC)
