"""A charter: who takes part in a trial, by certificates, and what each of them may do, by a file of rights.

What is not tried with rights on breaks with them on. So every trial of real hubs is run in two parts, of which one is
plain and the other *secured*: every hub has a certificate of its own role, all links are TLS with both sides known, and
every hub goes by the same file of rights, which gives each role what it needs and nothing else.

    folder/authority/     issues the certificates
    folder/identities/    one for each role: source.pem, sink.pem, ...
    folder/rights         allow source publish ticks
                          allow sink subscribe ticks

The folder is $ECHOIC_HOME for the processes of a trial. A hub is started by `Hub(listen, **party)`: its party comes
from the charter where hubs are in the trial's own process, and from the environment (`party_of_environment`) in a
worker, whose code is thereby the same in both parts.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias, TypedDict

from echoic.links import Identity
from echoic.trust import write_private
from echoic.trust.authority import LOCAL_HOSTS, Authority

__all__ = ["PLAIN", "Charter", "Grants", "Party", "environment_of", "party_of", "party_of_environment"]

Grants: TypeAlias = Mapping[str, Sequence[str]]
"""For each role the ends of its rules, as `{"source": ["publish ticks"]}`; one without any is let in and no more."""
HOSTS: Final = (*LOCAL_HOSTS, "127.0.0.2", "127.0.0.3")
RIGHTS: Final = "rights"


class Party(TypedDict):
    """What a hub is started with, beside everything else."""

    identity: Identity | None
    rights: Path | None


PLAIN: Final = Party(identity=None, rights=None)


class Charter:
    """Certificates and rights in a folder."""

    def __init__(self, folder: Path) -> None:
        """Go by what was drawn up in a folder."""
        self.folder: Final = folder
        self.rights: Final = folder / RIGHTS

    @classmethod
    def draw_up(cls, folder: Path, grants: Grants, hosts: Mapping[str, Sequence[str]] | None = None) -> "Charter":
        """Make an authority, a certificate for each role and the file of rights, in a folder without any.

        Args:
            folder: Where.
            grants: What each role may do.
            hosts: Where roles are dialled, if not on loopback.

        Raises:
            LocalError: There is such a folder already, or a role cannot be a name.
        """
        authority = Authority.create(folder / "authority")
        for role in grants:
            authority.issue(role, (hosts or {}).get(role, HOSTS))
        lines = [f"allow {role} {grant}\n" for role, given in grants.items() for grant in given]
        write_private(folder / RIGHTS, "".join(lines).encode(), replace=False)
        return cls(folder)

    def party(self, role: str) -> Party:
        """Return what a hub of a role is started with.

        Raises:
            InsecureError: There is no such role.
        """
        return Party(identity=Identity.named(role, self.folder), rights=self.rights)

    def environment(self, role: str) -> dict[str, str]:
        """Return what a process of a role has in its environment."""
        return {"ECHOIC_HOME": str(self.folder), "ECHOIC_IDENTITY": role, "ECHOIC_RIGHTS": str(self.rights)}


def party_of(charter: Charter | None, role: str) -> Party:
    """Return what a hub of a role is started with, in a trial that may have no charter."""
    return PLAIN if charter is None else charter.party(role)


def environment_of(charter: Charter | None, role: str) -> dict[str, str]:
    """Return what a process of a role has in its environment, in a trial that may have no charter."""
    return {"ECHOIC_IDENTITY": "", "ECHOIC_RIGHTS": ""} if charter is None else charter.environment(role)


def party_of_environment() -> Party:
    """Return what the environment says that a hub is started with: nothing, if it says nothing.

    Raises:
        InsecureError: There is no identity of this name.
    """
    rights = os.environ.get("ECHOIC_RIGHTS")
    return Party(identity=Identity.of_environment(), rights=Path(rights) if rights else None)
