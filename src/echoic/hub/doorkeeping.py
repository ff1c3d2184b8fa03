"""The doors of a hub: by which rules it goes, and whether a peer may be who it says it is.

A certificate proves a name and the hosts at which its owner may be dialled. A hub says in its hello where it stands,
and much is decided by that: who may take leave of a channel, whose word about a channel is its manager's. So with
rights a hub must stand at a host of its certificate. Without, whoever has a certificate may do everything anyway.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from echoic.channels import Admission, Audited
from echoic.errors import DeniedError
from echoic.links import Connection, Identity, own_name, parse_address, plain_host
from echoic.rights import ANONYMOUS, Decision, Right, Rights
from echoic.trust import load_rights
from echoic.wire import Hello

__all__ = ["admission_by", "check_home", "check_member", "checked_addresses", "decide_here", "decide_member", "who_of"]

MEMBER_RIGHTS: Final[tuple[Right, ...]] = ("publish", "subscribe")


def checked_addresses(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return addresses.

    Raises:
        AddressError: One of them is none.
    """
    found = tuple(addresses)
    for address in found:
        parse_address(address)
    return found


def admission_by(rights: Rights | str | Path | None, identity: Identity | None) -> Admission:
    """Return by which rules a hub goes, and who it is itself.

    Raises:
        LocalError: `rights` is no file of rules.
        InsecureError: The certificate cannot be read, or others may write the file of rules.
    """
    rules = load_rights(rights) if isinstance(rights, str | Path) else rights
    return Admission(rules, own_name(identity) if identity is not None else "")


def who_of(connection: Connection) -> str:
    """Return the name in a peer's certificate, "" if it has shown none."""
    return connection.credentials.name if connection.credentials is not None else ""


def decide_here(
    admission: Admission, who: str, right: Right, name: str, request: str, peer: str, ancestors: Sequence[str] = ()
) -> Audited | None:
    """Return whether somebody may do something by the rules of a hub, for its trail; None without rules."""
    rights = admission.rights
    return Audited(rights.decide(who, right, name, ancestors), request, peer) if rights is not None else None


def check_home(admission: Admission, connection: Connection, hello: Hello) -> None:
    """Refuse a hub that says it stands where its certificate does not let it.

    Raises:
        DeniedError: Naming both.
    """
    credentials = connection.credentials
    if admission.rights is None or credentials is None:
        return
    host = plain_host(parse_address(hello.address)[0])
    if not credentials.covers(host):
        raise DeniedError(
            f"`{credentials.name}` says it stands at {host}, its certificate is for "
            f"{', '.join(sorted(credentials.hosts)) or 'no host'}"
        )


def check_member(admission: Admission, connection: Connection, group: str) -> None:
    """Refuse a member of a group that has no right to be one: to `publish` and to `subscribe` the group's name.

    Raises:
        DeniedError: It has not.
    """
    decision = decide_member(admission, connection, group)
    if decision is not None and not decision:
        raise DeniedError(f"`{decision.who or ANONYMOUS}` may not {decision.right} group `{group}`")


def decide_member(admission: Admission, connection: Connection, group: str) -> Decision | None:
    """Return whether a peer may be a member of a group, and by which right if not; None without rules."""
    if admission.rights is None:
        return None
    decisions = [admission.rights.decide(who_of(connection), right, group) for right in MEMBER_RIGHTS]
    return next((decision for decision in decisions if not decision), decisions[0])
