"""Proving anew who one is: what was proved once does not count for ever.

    the list of revoked certificates changes     no connection that was made before counts
    the certificate of this hub is renewed       the same: the others are shown the other one before the first expires
    the certificate of a peer expires            its connections count no more (`end_expired`, asked twice a second)

A connection that is closed loses nothing: links and members of groups make another, if they still can. So there is no
need to find out who was revoked, nor a second place that decides about it. Whoever has let its certificate expire goes
on where it was, if it comes with another one before its link is given up.

A handshake may be done and its greeting not, which takes up to five seconds; such a connection is neither a link's nor
a group's yet. Whoever makes a connection therefore asks the count before the handshake, and again when it was handed
over: if it has changed, the connection is ended as if it had been there in time. Certificates that expire need no such
count, because they are asked for again and again.
"""

import logging
from typing import TYPE_CHECKING, Final

from echoic.links import Identity

if TYPE_CHECKING:
    from echoic.hub.switchboard import Switchboard

__all__ = ["Proofs", "end_expired", "prove_anew", "show_anew"]

log: Final = logging.getLogger("echoic.hub")


class Proofs:
    """How often all had to prove anew who they are."""

    def __init__(self) -> None:
        self.count = 0


def prove_anew(board: "Switchboard") -> None:
    """Have all who have proved who they are do so again."""
    board.proofs.count += 1  # before anything is closed: who comes later than that sees it
    for link in board.links():
        connection = link.connection
        if connection is not None and connection.credentials is not None:
            connection.close()
    for group in list(board.groups.values()):
        group.prove_anew()


def show_anew(board: "Switchboard", identity: Identity) -> None:
    """Have all connections made anew, with the certificate that this hub has by now.

    Raises:
        InsecureError: It cannot be used, as its key is still to come perhaps; what was shown before counts meanwhile.
    """
    identity.dialling_context()
    prove_anew(board)


def end_expired(board: "Switchboard", now: float) -> None:
    """Hang up on those whose certificates have expired at a time, in seconds of the Unix clock."""
    for link in board.links():
        connection = link.connection
        shown = connection.credentials if connection is not None else None
        if connection is None or shown is None or connection.fileno() < 0:  # or closed, and a handler is still at work
            continue
        if shown.expired(now):
            log.warning("%s is hung up: the certificate of `%s` has expired", link.neighbour.address, shown.name)
            connection.close()
    for group in list(board.groups.values()):
        group.end_expired(now)
