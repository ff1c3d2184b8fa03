"""Notes: subscription and receipt said once, and no note lost between `create` and `subscribe`.

    prices = notes(term.price(S.q, P.q))
    prices.subscribe()                    subscribe(price(<str>,<real>))
    prices.receive()                      rec-note(price(S?,P?))
    prices.each(P)                        subscribe(price(<str>,<real>)) . ( rec-note(price(S?,P?)) . P ) * delta

A process that is created hears no note before it has subscribed. Where that matters it says when it has, and whoever
creates it waits for that:

    create_ready(watcher(), Pid.q)        create(WATCHER, Pid?) . rec-msg(process-is-ready(Pid))
    ready(prices, ...)                    subscribe(...) . let Me : int in
                                          Me := process-id . snd-msg(process-is-ready(Me)) endlet
"""

from typing import TYPE_CHECKING, Final

from echoic.scripts.python_spelling.atoms import delta, no_note, rec_msg, rec_note, snd_msg, subscribe, unsubscribe
from echoic.scripts.python_spelling.behaviours import Behaviour, Expansion, Step, let, sequence
from echoic.scripts.python_spelling.definitions import Called, create
from echoic.scripts.python_spelling.formulas import Data, Formula, Hole, Listed, Operand, fn, formula, term
from echoic.scripts.python_spelling.places import here
from echoic.scripts.python_spelling.variables import Bound, Var

if TYPE_CHECKING:
    from echoic.scripts.python_spelling.builder import Builder

__all__ = ["Notes", "create_ready", "notes", "ready"]


class Notes:
    """Notes of one pattern."""

    def __init__(self, pattern: Formula) -> None:
        self.pattern: Final = pattern
        self.subscription: Final = _holed(pattern)
        """The pattern with a place for a type instead of each variable that is bound."""

    def subscribe(self) -> Step:
        """Return the subscription."""
        return subscribe(self.subscription)

    def unsubscribe(self) -> Step:
        """Return the end of the subscription."""
        return unsubscribe(self.subscription)

    def receive(self) -> Step:
        """Return the receipt of the oldest note."""
        return rec_note(self.pattern)

    def absent(self) -> Step:
        """Return the step that goes on if no note waits."""
        return no_note(self.pattern)

    def each(self, behaviour: Behaviour, *, until: Behaviour | None = None) -> Behaviour:
        """Return the subscription, and then something for each note, forever or until something else is chosen."""
        return self.subscribe() >> (self.receive() >> behaviour) * (delta() if until is None else until)


def notes(pattern: Operand) -> Notes:
    """Return what can be done with notes of a pattern, in which `X.q` is bound by each.

    Raises:
        ScriptError: It is not a pattern.
    """
    return Notes(formula(pattern, here()))


def ready(*subscriptions: Notes) -> Behaviour:
    """Return subscriptions, and the word to `create_ready` that they are there."""
    span = here()

    def make(builder: "Builder") -> Behaviour:
        me: Var[object] = Var(builder.fresh("me"), int, span)
        told = let(me)(me.set(fn.process_id()) >> snd_msg(term.process_is_ready(me)))
        return sequence(*(each.subscribe() for each in subscriptions), told)

    return Expansion(make, span)


def create_ready(called: Called, instance: Bound) -> Behaviour:
    """Return the creation of a process and the wait until it is `ready`, so that it hears every note from then on.

    Raises:
        ScriptError: It is not a process with its arguments.
    """
    return create(called, instance) >> rec_msg(term.process_is_ready(instance.variable))


def _holed(pattern: Formula) -> Formula:
    match pattern:
        case Bound():
            return Hole(pattern.type, pattern.span)
        case Data(name=name, arguments=arguments):
            return Data(name, tuple(map(_holed, arguments)), pattern.span)
        case Listed(elements=elements):
            return Listed(tuple(map(_holed, elements)), pattern.span)
        case _:
            return pattern
