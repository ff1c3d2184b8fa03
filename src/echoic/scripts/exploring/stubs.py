"""Stubs: processes of a T-script that play tools.

Where anything that a tool's interface allows is too much, a stub says what the tool does. It is a script of its own,
with a name of its own, whose `toolbus(...)` names one process, which there is for each instance of the tool. It talks
to the script by messages that are named as in interfaces:

    process ADDER is let X : int in (rec-msg(rec-eval(add(X?))) . snd-msg(snd-value(sum(X)))) * delta endlet
    toolbus(ADDER)

    the script does                          the stub does
    snd-eval(T, q)    snd-do(T, c)           rec-msg(rec-eval(q))       rec-msg(rec-do(c))
    snd-response(T, r)                       rec-msg(rec-response(r))
    rec-event(T, e, ...)                     snd-msg(snd-event(e, ...))
    rec-request(T, r)                        snd-msg(snd-request(r))
    rec-value(T, v)                          snd-msg(snd-value(v)), some time before
    rec-disconnect(T)                        snd-msg(snd-disconnect), some time before
    snd-ack-event(T, e)                      rec-msg(rec-ack-event(e)), if it waits for that
    snd-cancel(T)    snd-terminate(T, x)     rec-msg(rec-cancel)        rec-msg(rec-terminate(x)), if it waits for that

Besides it can do tau, `:=`, printf and read.
"""

from collections.abc import Iterator
from typing import Final

from echoic.scripts.exploring.local_moves import Alone, Moves
from echoic.scripts.exploring.local_states import ENDED
from echoic.scripts.graph import Bindings, Kind, consistent, match, substitute
from echoic.terms import Term, Value

__all__ = ["HEARD", "NO_STUB", "SAID", "Stubs"]

NO_STUB: Final = -1
HEARD: Final = {
    Kind.SND_EVAL: "rec-eval",
    Kind.SND_DO: "rec-do",
    Kind.SND_RESPONSE: "rec-response",
    Kind.SND_ACK_EVENT: "rec-ack-event",
    Kind.SND_CANCEL: "rec-cancel",
    Kind.SND_TERMINATE: "rec-terminate",
}
IGNORED: Final = frozenset({Kind.SND_ACK_EVENT, Kind.SND_CANCEL, Kind.SND_TERMINATE})
SAID: Final = {Kind.REC_EVENT: "snd-event", Kind.REC_REQUEST: "snd-request"}


class Stubs:
    """The stubs of an environment; where one stands is the number of a local state."""

    def __init__(self, moves: Moves) -> None:
        self._moves = moves
        self._programs = moves.surroundings.environment.stubs

    def begin(self, tool: str, number: int) -> int:
        """Return where the stub of a tool begins, `NO_STUB` where it has none."""
        program = self._programs.get(tool)
        if program is None or not program.initial:
            return NO_STUB
        name, arguments = program.initial[0]
        return self._moves.states.begin(number, name, arguments, program)

    def hear(self, stub: int, kind: Kind, values: tuple[Value, ...]) -> list[int]:
        """Return where a stub may stand when an atom has told it something: nowhere, if it must listen and does not."""
        if stub == NO_STUB or kind not in HEARD:
            return [stub]
        found = []
        message = Term(HEARD[kind], *values)
        if stub != ENDED:
            local = self._moves.states.all[stub]
            for edge in self._moves.known[stub].receives:
                bindings: Bindings = []
                if (
                    len(edge.arguments) == 1
                    and match(edge.arguments[0], local.slots, message, bindings)
                    and consistent(bindings)
                ):
                    slots = self._moves.after(local, edge, bindings)
                    found.append(self._moves.states.moved(local, edge, slots))
        return found or ([stub] if kind in IGNORED else [])

    def said(self, stub: int, name: str) -> Iterator[tuple[tuple[Value, ...], int]]:
        """Yield what a stub may say under a name, and where it stands after that."""
        if stub in (ENDED, NO_STUB):
            return
        local = self._moves.states.all[stub]
        for edge in self._moves.known[stub].sends:
            value = substitute(edge.arguments[0], local.slots)
            if len(edge.arguments) == 1 and isinstance(value, Term) and value.name == name:
                yield value.args, self._moves.states.moved(local, edge, self._moves.after(local, edge))

    def alone(self, stub: int) -> list[Alone]:
        """Return what a stub may do by itself."""
        return [] if stub in (ENDED, NO_STUB) else self._moves.known[stub].alone
