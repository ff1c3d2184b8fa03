"""Identities: who a hub is, by a certificate, and whom it believes.

TLS 1.3 and nothing older, and both sides show a certificate: a hub runs code that its peers send, and must know them.
Whoever has a certificate from `authority` that is not in the list of `revoked` ones is one of us. Use an authority of
your own for this (`echoic keys init` makes one); everybody has a certificate from a public one.

Hubs run for months, certificates are renewed and revoked meanwhile. So a connection is made by the files as they are at
that moment: `dialling_context` and `listening_context` look at the files, which costs four system calls, and read them
again when they are others. A file that cannot be read any more makes connections fail; the one before is not kept, as
nobody knows what it was replaced for.

A certificate and its key may be two files or one. One can be replaced in one step; two cannot, and are read again if
they did not belong together and have changed since.

Browsers and tools that are no hubs may have no certificate to show. They prove who they are by other means, by a token:

    listening    the dialler must show a certificate                                    hubs, transfers between tools
    receiving    it may show one, and who shows none is heard, and must prove itself    a bus, for its tools
    serving      none is asked for                                                      the page, metrics

A `Visitor` is the other side of that: it has no certificate, and knows the authority by which it checks whom it dials.
"""

import enum
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from echoic.errors import InsecureError
from echoic.trust import authority_folder, identity_path, read_private
from echoic.trust.folder import AUTHORITY, REVOKED
from echoic.trust.tls_files import load_authority, load_pair, load_revoked

__all__ = ["Identity", "Visitor", "serving_context"]

TRIES: Final = 5
KEPT_MAX: Final = 64
UNFINISHED: Final = getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
"""Some Pythons take a connection that somebody has cut for one that the peer has ended; not here, whichever it is."""
Fingerprint = tuple[tuple[int, int, int, int], ...]


class Role(enum.Enum):
    """Which side of a connection one is, and what one wants of the other."""

    DIALLING = ssl.CERT_REQUIRED, False
    LISTENING = ssl.CERT_REQUIRED, True
    RECEIVING = ssl.CERT_OPTIONAL, True
    SERVING = ssl.CERT_NONE, True


@dataclass(frozen=True, slots=True)
class Identity:
    """The files, all PEM, that make a hub's connections secret and its peers known."""

    certificate: Path
    key: Path
    """May be the same file."""
    authority: Path
    revoked: Path | None = None
    """The list of revoked certificates, signed by the authority; None if nobody is ever revoked."""

    @classmethod
    def named(cls, name: str, root: Path | None = None) -> "Identity":
        """Return the identity that `echoic keys issue NAME` has made, or that was copied to this machine.

        Args:
            name: Whose it is.
            root: The folder of identities, if not $ECHOIC_HOME or what stands for it.

        Raises:
            LocalError: Nobody can be called this.
            InsecureError: There is none of this name, or others than its owner may read its key.
        """
        path, folder = identity_path(name, root), authority_folder(root)
        if read_private(path) is None:
            raise InsecureError(f"there is no identity `{name}`, expected {path}; `echoic keys issue {name}` makes one")
        return cls(path, path, folder / AUTHORITY, folder / REVOKED)

    @classmethod
    def of_environment(cls) -> "Identity | None":
        """Return the identity that $ECHOIC_IDENTITY names; None if it names none.

        Raises:
            LocalError: Nobody can be called this.
            InsecureError: There is none of this name, or others than its owner may read its key.
        """
        name = os.environ.get("ECHOIC_IDENTITY")
        return cls.named(name) if name else None

    def dialling_context(self) -> ssl.SSLContext:
        """Return how to dial: the listener's certificate must be from the authority, and for the host we dialled.

        Raises:
            InsecureError: One of the files is missing, or is not what it should be.
        """
        return _context(self, Role.DIALLING)

    def listening_context(self) -> ssl.SSLContext:
        """Return how to listen: the dialler must have a certificate from the authority.

        Raises:
            InsecureError: One of the files is missing, or is not what it should be.
        """
        return _context(self, Role.LISTENING)

    def receiving_context(self) -> ssl.SSLContext:
        """Return how to listen for those too who show no certificate; one that is shown must be from the authority.

        Raises:
            InsecureError: One of the files is missing, or is not what it should be.
        """
        return _context(self, Role.RECEIVING)

    def serving_context(self) -> ssl.SSLContext:
        """Return how to serve browsers, which are asked for none; a renewed certificate of ours is shown from then on.

        Raises:
            InsecureError: One of the files is missing, or is not what it should be.
        """
        context = _context(self, Role.SERVING)
        context.sni_callback = self._renew
        return context

    def _renew(self, made: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> int | None:
        """Have a connection that begins use the files as they are at this moment."""
        try:
            made.context = self.serving_context()
        except InsecureError:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        return None


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody without a certificate, who knows the authority of those it dials, and proves itself by a token."""

    authority: Path
    revoked: Path | None = None

    @classmethod
    def of_authority(cls) -> "Visitor":
        """Return one that believes the authority whose files are on this machine."""
        folder = authority_folder()
        return cls(folder / AUTHORITY, folder / REVOKED)

    def dialling_context(self) -> ssl.SSLContext:
        """Return how to dial: the listener's certificate must be from the authority, and for the host we dialled.

        Raises:
            InsecureError: One of the files is missing, or is not what it should be.
        """
        return _context(self, Role.DIALLING)


_contexts: Final[dict[tuple[Identity | Visitor, Role], tuple[Fingerprint, ssl.SSLContext]]] = {}


def _context(identity: Identity | Visitor, role: Role) -> ssl.SSLContext:
    """Return the context of an identity, made anew if one of its files is another than the last time.

    Two threads may make one at the same moment, and either will do.

    Raises:
        InsecureError: One of the files is missing, or is not what it should be.
    """
    for tries in range(1, TRIES + 1):
        before = _fingerprint(identity)
        known = _contexts.get((identity, role))
        if known is not None and known[0] == before:
            return known[1]
        try:
            context = _make(identity, role)
        except InsecureError:
            if tries == TRIES or _fingerprint(identity) == before:
                raise
            continue  # replaced while it was read
        if len(_contexts) >= KEPT_MAX:
            _contexts.clear()
        _contexts[identity, role] = before, context
        return context
    raise AssertionError("the last try returns or raises")


def _fingerprint(identity: Identity | Visitor) -> Fingerprint:
    """Return what changes when a file of an identity does.

    Raises:
        InsecureError: One of the files is missing.
    """
    own = (identity.certificate, identity.key) if isinstance(identity, Identity) else ()
    files = (*own, identity.authority, identity.revoked)
    try:
        found = [os.stat(file) for file in files if file is not None]  # noqa: PTH116 - a third of the time
    except OSError as error:
        raise InsecureError(f"cannot read {error.filename}: {error.strerror}") from error
    return tuple((each.st_dev, each.st_ino, each.st_mtime_ns, each.st_size) for each in found)


def _make(identity: Identity | Visitor, role: Role) -> ssl.SSLContext:
    wanted, listens = role.value
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if listens else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = wanted
    context.options &= ~UNFINISHED
    if listens:
        context.num_tickets = 0  # sessions are not resumed; a ticket nobody reads would reset the connection
    if isinstance(identity, Identity):
        load_pair(context, identity.certificate, identity.key)
    load_authority(context, identity.authority)
    if identity.revoked is not None:
        load_revoked(context, identity.revoked)
    return context


def serving_context(certificate: str | Path, key: str | Path | None) -> ssl.SSLContext:
    """Return how to serve others than hubs: by a certificate of ours, whoever they are.

    Args:
        certificate: A PEM file.
        key: That of its key; None if it is in the same file.

    Raises:
        InsecureError: They cannot be read, do not belong together, or the key has a password.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    load_pair(context, certificate, key)
    return context
