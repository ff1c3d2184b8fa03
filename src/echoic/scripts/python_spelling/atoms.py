"""The atoms of T-script, under their own names with `_` for `-`: `snd_msg(term.hello(X))` is `snd-msg(hello(X))`.

What they do is what they do in T-script; arguments are filled in, never evaluated. Each returns a `Step`, which can be
delayed and limited in time (`.delay(2)`, `.timeout(5)`).
"""

from typing import TYPE_CHECKING

from echoic.scripts.python_spelling.behaviours import Step, atom
from echoic.scripts.python_spelling.formulas import Operand

if TYPE_CHECKING:
    from echoic.scripts.python_spelling.tools import Executed
    from echoic.scripts.python_spelling.variables import Bound, Var

__all__ = [
    "delta",
    "execute",
    "get_perf_stats",
    "no_note",
    "printf",
    "read",
    "rec_connect",
    "rec_disconnect",
    "rec_event",
    "rec_msg",
    "rec_note",
    "rec_perf_stats",
    "rec_request",
    "rec_value",
    "shutdown",
    "snd_ack_event",
    "snd_cancel",
    "snd_do",
    "snd_eval",
    "snd_kill",
    "snd_msg",
    "snd_note",
    "snd_response",
    "snd_terminate",
    "subscribe",
    "tau",
    "unsubscribe",
]


def delta() -> Step:
    """Never do anything."""
    return atom("delta")


def tau() -> Step:
    """Do nothing, in one step."""
    return atom("tau")


def printf(text: Operand, *terms: Operand) -> Step:
    """Print a text with terms in the place of `%d %s %f %t`."""
    return atom("printf", text, *terms)


def read(prompt: Operand, pattern: Operand) -> Step:
    """Take a line that somebody types, if it is a term like the pattern."""
    return atom("read", prompt, pattern)


def snd_msg(*terms: Operand) -> Step:
    """Send a message to a process that receives the like, at the same moment."""
    return atom("snd-msg", *terms)


def rec_msg(*patterns: Operand) -> Step:
    """Receive a message from a process that sends the like, at the same moment."""
    return atom("rec-msg", *patterns)


def snd_note(note: Operand) -> Step:
    """Send a note to everybody who has subscribed to the like; it waits there."""
    return atom("snd-note", note)


def rec_note(pattern: Operand) -> Step:
    """Take the oldest note like the pattern."""
    return atom("rec-note", pattern)


def no_note(pattern: Operand) -> Step:
    """Go on if no note like the pattern waits."""
    return atom("no-note", pattern)


def subscribe(pattern: Operand) -> Step:
    """Have notes like the pattern wait for this process; `notes` says subscription and receipt in one."""
    return atom("subscribe", pattern)


def unsubscribe(pattern: Operand) -> Step:
    """Have no more notes like the pattern; those that wait are dropped."""
    return atom("unsubscribe", pattern)


def execute(tool: "Executed", instance: "Bound") -> Step:
    """Start a tool: `execute(calc(), C.q)`."""
    return atom("execute", tool, instance)


def rec_connect(instance: "Bound") -> Step:
    """Take a tool that has connected by itself."""
    return atom("rec-connect", instance)


def rec_disconnect(tool: "Var[object] | Bound") -> Step:
    """Take note that a tool leaves, or is lost."""
    return atom("rec-disconnect", tool)


def snd_eval(tool: "Var[object]", question: Operand) -> Step:
    """Ask a tool for a value, once it is ready."""
    return atom("snd-eval", tool, question)


def rec_value(tool: "Var[object]", pattern: Operand) -> Step:
    """Take a value that a tool was asked for."""
    return atom("rec-value", tool, pattern)


def snd_do(tool: "Var[object]", action: Operand) -> Step:
    """Have a tool do something, once it is ready."""
    return atom("snd-do", tool, action)


def snd_cancel(tool: "Var[object]") -> Step:
    """Wait no more for the value that a tool was asked for."""
    return atom("snd-cancel", tool)


def rec_event(tool: "Var[object]", *patterns: Operand) -> Step:
    """Take an event of a tool."""
    return atom("rec-event", tool, *patterns)


def snd_ack_event(tool: "Var[object]", event: Operand, *answer: Operand) -> Step:
    """Tell a tool that its event was dealt with, and so that it may send the like again."""
    return atom("snd-ack-event", tool, event, *answer)


def rec_request(tool: "Var[object]", pattern: Operand) -> Step:
    """Take a question of a tool, which waits for `snd_response`."""
    return atom("rec-request", tool, pattern)


def snd_response(tool: "Var[object]", answer: Operand) -> Step:
    """Answer the question of a tool."""
    return atom("snd-response", tool, answer)


def snd_terminate(tool: "Var[object]", reason: Operand) -> Step:
    """Ask a tool to end."""
    return atom("snd-terminate", tool, reason)


def snd_kill(tool: "Var[object]", reason: Operand) -> Step:
    """End the process of a tool that was started."""
    return atom("snd-kill", tool, reason)


def get_perf_stats(tool: "Var[object]") -> Step:
    """Ask a tool for its statistics."""
    return atom("get-perf-stats", tool)


def rec_perf_stats(tool: "Var[object]", pattern: Operand) -> Step:
    """Take the statistics of a tool."""
    return atom("rec-perf-stats", tool, pattern)


def shutdown(value: Operand) -> Step:
    """End the bus and all tools."""
    return atom("shutdown", value)
