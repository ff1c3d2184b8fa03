"""Proving anew who one is: when the list of revoked certificates changes, no connection that was made before counts.

A connection that is closed loses nothing: links and members of groups make another, if they still can. So there is no
need to find out who was revoked, nor a second place that decides about it.

A handshake may be done and its greeting not, which takes up to five seconds; such a connection is neither a link's nor
a group's yet. Whoever makes a connection therefore asks the count before the handshake, and again when it was handed
over: if it has changed, the connection is ended as if it had been there in time.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from echoic.hub.switchboard import Switchboard

__all__ = ["Proofs", "prove_anew"]


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
