"""Meetings: which messages two processes can exchange, found once for each pair of local states."""

from typing import NamedTuple

from echoic.scripts.exploring.local_moves import Moves
from echoic.scripts.exploring.local_states import LocalState
from echoic.scripts.exploring.steps import Step, atom_text
from echoic.scripts.graph import Bindings, Edge, consistent, unify

__all__ = ["Meeting", "find_meetings"]


class Meeting(NamedTuple):
    """A message, and where both stand after it."""

    step: int
    sender: int
    receiver: int


def find_meetings(moves: Moves, sender: LocalState, receiver: LocalState) -> tuple[Meeting, ...]:
    """Return the messages that one process can send to another."""
    found = []
    for sends in moves.known[sender.id].sends:
        for receives in moves.known[receiver.id].receives:
            bound = _match(sends, sender, receives, receiver)
            if bound is not None:
                found.append(_meeting(moves, (sender, sends, bound[0]), (receiver, receives, bound[1])))
    return tuple(found)


def _match(sends: Edge, sender: LocalState, receives: Edge, receiver: LocalState) -> tuple[Bindings, Bindings] | None:
    """Return what is bound on both sides."""
    if len(sends.arguments) != len(receives.arguments):
        return None
    mine: Bindings = []
    theirs: Bindings = []
    for one, other in zip(sends.arguments, receives.arguments, strict=True):
        if not unify(one, sender.slots, other, receiver.slots, mine, theirs):
            return None
    return (mine, theirs) if consistent(mine) and consistent(theirs) else None


def _meeting(moves: Moves, one: tuple[LocalState, Edge, Bindings], other: tuple[LocalState, Edge, Bindings]) -> Meeting:
    sender, sends, mine = one
    receiver, receives, theirs = other
    slots, other_slots = moves.after(sender, sends, mine), moves.after(receiver, receives, theirs)
    step = Step(
        str(sender),
        atom_text(sends, None, slots),
        sends.span,
        str(receiver),
        receives.span,
        undefined=moves.undefined(sender, sends) + moves.undefined(receiver, receives),
    )
    return Meeting(
        moves.steps.number(step),
        moves.states.moved(sender, sends, slots),
        moves.states.moved(receiver, receives, other_slots),
    )
