"""Which side of a partition goes on, and with whose order: one rule, applied by all to the same States.

A view of the engine below is *primary* if a majority of the configured members is in it, counting only those with
*history*: a process that was just started has forgotten what its name has promised and held before, so it has no say
until it was brought up to date. Any two majorities share a member with history, which holds whatever was delivered:

    view of epoch 5: A B C         everything that was delivered is held by A, B and C
    view of epoch 9: A B           everything that was delivered is held by A and B
    A is started anew              A C: one of three has history (C), so not primary; B C, and A B C, are

Of those with history, the one that holds the order of the highest epoch, and of that the most, is *chosen*: its order
is what the view goes on with. Those who hold the same are *participants* at once, if they are a majority; the others
catch up beside them and are admitted later. If they are none, all with history take part, and the view waits for them.

*Cold start.* If there is no majority with history, because nobody has any yet or because a majority was lost, all
configured members must be there. If some have history, the one of them who would be chosen above holds whatever any of
them was given, and brings the others up to date; unless the application of one without history has more messages than
any of theirs. Then that one does, as when nobody has history. What a lost majority alone held is lost: so it is with a
group in memory. Applications say what they have a little late, so of those with history none is preferred for it; but
who is chosen first gives its own what any of them was given, so that it has as much when others ask for its state.

The *epoch* is above everything that a member of the view has promised, and grows with every State that is replaced by
a later one, so that no process ever promises the same epoch twice. Processes forget it when they end: after a cold
start epochs may come again that only ended ones had promised. Those that live are all in it, and whoever accepts an
epoch has promised it with that, also when it has only caught up. So it is above whatever one of them holds, and an
order of before is never taken for one of after it.
"""

from collections.abc import Mapping, Sequence

import msgspec

from echoic.groups.agreement.messages import VERSION, Place, Signature, State

__all__ = ["Decision", "decide", "is_replaced"]


class Decision(msgspec.Struct, frozen=True):
    """What follows from the States of a view."""

    epoch: int
    signature: Signature
    primary: bool
    reason: str = ""
    """Why it is not primary."""
    cold: bool = False
    chosen: Place = (0, 0)
    anew: bool = False
    """Whether the order begins anew, since the chosen one has no history either."""
    position: int = 0
    """Where the chosen order ends."""
    same: frozenset[Place] = frozenset()
    """Who holds the chosen order."""
    participants: frozenset[Place] = frozenset()
    counted: frozenset[Place] = frozenset()
    """Who is a configured member at all: these are participants, or become ones when they have caught up."""


def decide(members: Sequence[str], states: Mapping[Place, State]) -> Decision:
    """Return what all members of a view decide, given what each has said; `members` are the configured ones, sorted."""
    signature = tuple(sorted((*place, state.serial) for place, state in states.items()))
    epoch = max(state.promised for state in states.values()) + sum(state.serial for state in states.values())
    known = _counted(members, states)
    voters = {place: state for place, state in known.items() if state.history}
    if 2 * len(voters) > len(members):
        chosen, same = _holders_of_most(voters)
        participants = same if 2 * len(same) > len(members) else frozenset(voters)
        end = voters[chosen].end
        return Decision(epoch, signature, True, "", False, chosen, False, end, same, participants, frozenset(known))
    if len(known) == len(members):
        return _begin_cold(epoch, signature, known, voters)
    present = ", ".join(sorted(state.name for state in known.values()))
    reason = f"{len(voters)} of {len(members)} configured members are present with the group's history ({present})"
    return Decision(epoch, signature, False, reason, counted=frozenset(known))


def _begin_cold(
    epoch: int, signature: Signature, known: Mapping[Place, State], voters: Mapping[Place, State]
) -> Decision:
    most = max(state.applied for state in known.values())
    anew = all(state.applied < most for state in voters.values())
    if anew:  # whoever has history ends before this comes true, so it is the order's beginning for everybody
        same = frozenset(place for place, state in known.items() if state.applied == most)
        chosen, end = max(same), 0
    else:
        chosen, same = _holders_of_most(voters)
        end = voters[chosen].end
    everybody = frozenset(known)
    return Decision(epoch, signature, True, "", True, chosen, anew, end, same, everybody, everybody)


def _holders_of_most(voters: Mapping[Place, State]) -> tuple[Place, frozenset[Place]]:
    """Return who holds the order of the highest epoch, and of that the most: the one who is chosen, and all of them."""
    chosen = max(voters, key=lambda place: (voters[place].accepted, voters[place].end, place))
    return chosen, frozenset(place for place in voters if _alike(voters[place], voters[chosen]))


def _alike(one: State, other: State) -> bool:
    return (one.accepted, one.end, one.senders) == (other.accepted, other.end, other.senders)


def _counted(members: Sequence[str], states: Mapping[Place, State]) -> dict[Place, State]:
    """Return the States that count: of configured members, the latest life of each."""
    latest: dict[str, Place] = {}
    for place in sorted(states):
        state = states[place]
        if state.version != VERSION or list(state.members) != list(members) or state.name not in members:
            continue
        rival = latest.get(state.name)
        if rival is None or states[rival].life <= state.life:
            latest[state.name] = place
    return {place: states[place] for place in latest.values()}


def is_replaced(own: Place, states: Mapping[Place, State]) -> bool:
    """Return whether another process has come in the place of this one: it has the same name, and a later life."""
    mine = states[own]
    return any(
        state.name == mine.name and state.members == mine.members and (state.life, place) > (mine.life, own)
        for place, state in states.items()
    )
