"""Papers: identities of the good and of everybody who must be refused.

One authority that the system believes, another that it does not, and what either would issue to somebody who is up to
no good. All of it is made of the parts that `echoic keys` uses.
"""

import datetime
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Final

from echoic.links import Identity
from echoic.trust import identity_path, write_private
from echoic.trust.authority import Authority
from echoic.trust.certificates import Certified, make_authority, make_certificate, read_certified

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BAD_PAPERS", "Papers"]

HOST: Final = "127.0.0.1"
ELSEWHERE: Final = "192.0.2.1"  # nobody's: for documents
BAD_PAPERS: Final = ("wrong authority", "expired", "not yet valid", "self-signed", "revoked")
"""Whom nobody believes, dialled or dialling."""


class Papers:
    """All identities of a trial, in a folder of its own."""

    def __init__(self, root: Path) -> None:
        self.root: Final = root
        self.authority: Final = Authority.create(root / "authority")
        self.authority.issue("good", [HOST])
        self.authority.issue("other", [HOST])
        self.good: Final = Identity.named("good", root)
        self.other: Final = Identity.named("other", root)
        self.bad: Final[Mapping[str, Identity]] = {**self._bad(), "wrong host": self._elsewhere()}

    def context(self, who: Identity, *, listening: bool) -> ssl.SSLContext:
        """Return how somebody speaks who believes everybody, so that it is always the other side that refuses."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if listening else ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.load_cert_chain(who.certificate, who.key)
        return context

    def _bad(self) -> dict[str, Identity]:
        now = datetime.datetime.now(datetime.UTC)
        folder = self.authority.folder
        ours = read_certified(
            (folder / "authority.pem").read_bytes(), (folder / "authority.key").read_bytes(), str(folder)
        )
        made = {
            "wrong authority": make_certificate(make_authority(now), "good", [HOST], now),
            "expired": make_certificate(ours, "good", [HOST], now - datetime.timedelta(days=100), 90),
            "not yet valid": make_certificate(ours, "good", [HOST], now + datetime.timedelta(days=10), 90),
            "self-signed": make_authority(now, name="good"),
        }
        bad = {kind: self._keep(kind.replace(" ", "-"), each) for kind, each in made.items()}
        self.authority.issue("revoked", [HOST])
        self.authority.revoke("revoked")
        return {**bad, "revoked": Identity.named("revoked", self.root)}

    def _elsewhere(self) -> Identity:
        self.authority.issue("elsewhere", [ELSEWHERE])
        return Identity.named("elsewhere", self.root)

    def _keep(self, name: str, made: Certified) -> Identity:
        write_private(identity_path(name, self.root), made.key_pem() + made.certificate_pem(), replace=False)
        return Identity.named(name, self.root)
