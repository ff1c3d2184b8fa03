"""Scripts for the tests of values by reference: one process, with a source S and a sink T that come by themselves."""

from echoic.terms import Term
from echoic.toolbus import Bus
from echoic.toolbus.protocol import Message, MessageKind
from tests.papers.reference_puppets import Puppet

OVERHEAD = 16 * 1024
"""All that is said beside values in a short conversation has fewer bytes."""
PASSIVE = {"data_listen": ""}
"""Makes a tool one that cannot be reached."""
GET_X = "snd-eval(S, get) . rec-value(S, val(X?))"
NEXT = "rec-event(S, next) . snd-ack-event(S, next)"
"""The script goes on when the source says so."""


def with_tools(body: str, variables: str = "X: str, Y: str, Z: term", more: str = "", also: str = "") -> str:
    """Return a script whose process P has the tools S and T, with more processes, some of which are started also."""
    return f"""
    tool source is {{ command = "none" }}
    tool sink is {{ command = "none" }}
    process P is let S: source, T: sink, {variables} in
        rec-connect(S?) . rec-connect(T?) . {body}
    endlet
    {more}
    toolbus(P{also})
    """


def moving(size: int, times: int = 1) -> str:
    """Return a script that moves a string from a source to a sink."""
    once = f"snd-eval(S, make({size})) . rec-value(S, val(X?)) . snd-do(T, use(X)) . "
    return with_tools(once * times + "snd-eval(T, ping) . rec-value(T, pong) . shutdown(1)")


def started(bus: Bus) -> str:
    """Start a bus, and return where it is."""
    bus.start()
    return bus.address


def go_on(source: Puppet) -> None:
    """Let the script pass NEXT."""
    source.say(Message(MessageKind.EVENT, 1, (Term("next"),)))
