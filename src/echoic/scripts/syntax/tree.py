"""The tree of a T-script: what the parser makes, the checks read, and the graphs are compiled from.

    Script
      ProcessDefinition  name, formals, body: Process
      ToolDefinition     name, formals, features
      Configuration      toolbus(P(1), Q)
      ChannelNote        note channel "prices" as price(<str>,<real>)

    Process     Sequence  Choice  RightBiased  LeftBiased  Merge  Iteration  Disrupt  Conditional  Let  Call  | Action
    Action      Atom  Assign  Create        each with its timing: one atomic step
    Expression  Constant  Variable  Application  ListOf  PlaceholderOf

Every node knows where it stands (`Span`), so that whatever is said about it shows the line and a caret. Nodes are
compared by identity where it matters: two equal atoms at two places are two atoms.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from echoic.terms import Value

__all__ = [
    "ATOMS",
    "Action",
    "Application",
    "Assign",
    "Atom",
    "Call",
    "ChannelNote",
    "Choice",
    "Conditional",
    "Configuration",
    "Constant",
    "Create",
    "Declaration",
    "Disrupt",
    "Expression",
    "Formal",
    "Iteration",
    "LeftBiased",
    "Let",
    "ListOf",
    "Merge",
    "PlaceholderOf",
    "Process",
    "ProcessDefinition",
    "RightBiased",
    "Script",
    "Sequence",
    "Span",
    "Timing",
    "ToolDefinition",
    "Variable",
]

ATOMS: Final = (
    "delta", "tau", "printf", "read", "snd-msg", "rec-msg", "snd-note", "rec-note", "no-note", "subscribe",
    "unsubscribe", "execute", "rec-connect", "rec-disconnect", "snd-eval", "rec-value", "snd-do", "snd-cancel",
    "rec-event", "snd-ack-event", "rec-request", "snd-response", "snd-terminate", "snd-kill", "get-perf-stats",
    "rec-perf-stats", "shutdown",
)  # fmt: skip
"""The names of `Atom`; `V := E` is an `Assign`, `create(P, V?)` a `Create`."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where something stands: lines and columns count from 1, in the file as its author wrote it."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int  # behind the last character


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A number, string, truth value, or `undefined`."""

    value: Value
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """An occurrence of a variable: of its value, or, `X?`, of the variable itself, to be bound."""

    name: str
    result: bool
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Application:
    """`f(1,X)`, or `f`."""

    name: str
    arguments: tuple["Expression", ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class ListOf:
    """`[1,X]`."""

    elements: tuple["Expression", ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class PlaceholderOf:
    """`<int>`; what stands inside is a type."""

    type: Value
    span: Span


Expression: TypeAlias = Constant | Variable | Application | ListOf | PlaceholderOf


@dataclass(frozen=True, slots=True, eq=False)
class Timing:
    """One of `delay timeout abs-delay abs-timeout` behind an atom."""

    kind: str
    arguments: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """An atom by its name, one of `ATOMS`."""

    name: str
    arguments: tuple[Expression, ...]
    timing: tuple[Timing, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Assign:
    """`V := E`."""

    variable: Variable
    expression: Expression
    timing: tuple[Timing, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """`P(1,X?)`: a process in place, or, where the name is that of a `str` variable, the process it names."""

    name: str
    arguments: tuple[Expression, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Create:
    """`create(P(1), Pid?)`."""

    call: Call
    result: Expression
    timing: tuple[Timing, ...]
    span: Span


Action: TypeAlias = Atom | Assign | Create


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """`P . Q`."""

    first: "Process"
    then: "Process"
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """`P + Q`."""

    left: "Process"
    right: "Process"
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class RightBiased:
    """`P +> Q`: Q whenever it can."""

    left: "Process"
    right: "Process"
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class LeftBiased:
    """`P <+ Q`: P whenever it can."""

    left: "Process"
    right: "Process"
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Merge:
    """`P || Q`."""

    left: "Process"
    right: "Process"
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Iteration:
    """`P * Q`: P again and again, until Q is chosen."""

    body: "Process"
    exit: "Process"
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Disrupt:
    """`P >> Q`: P, but until it has ended Q may take its place."""

    body: "Process"
    breaker: "Process"
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """`if T then P else Q fi`; without Q it blocks while T is false."""

    test: Expression
    then: "Process"
    otherwise: "Process | None"
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Declaration:
    """`X : int` of a `let`."""

    name: str
    type: Value
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Let:
    """`let X : int in P endlet`."""

    declarations: tuple[Declaration, ...]
    body: "Process"
    span: Span


Process: TypeAlias = (
    Sequence | Choice | RightBiased | LeftBiased | Merge | Iteration | Disrupt | Conditional | Let | Call | Action
)


@dataclass(frozen=True, slots=True, eq=False)
class Formal:
    """A parameter: `X : int`, or, `X : int ?`, one for a result."""

    name: str
    type: Value
    result: bool
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class ProcessDefinition:
    """`process P(X : int) is ...`."""

    name: str
    formals: tuple[Formal, ...]
    body: Process
    span: Span  # of the name


@dataclass(frozen=True, slots=True, eq=False)
class ToolDefinition:
    """`tool t(X : str) is { command = "..." }`; features by name: host command details kind class channel derive."""

    name: str
    formals: tuple[Formal, ...]
    features: tuple[tuple[str, str], ...]
    span: Span

    def feature(self, name: str) -> str:
        """Return a feature, empty where it is not given."""
        return dict(self.features).get(name, "")


@dataclass(frozen=True, slots=True, eq=False)
class Configuration:
    """`toolbus(P(1), Q)`: what is started; a script may have several, and all of them are."""

    calls: tuple[Call, ...]
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class ChannelNote:
    """`note channel "prices" as price(<str>,<real>)`: notes like the pattern go to and come from a channel."""

    channel: str
    pattern: Value
    span: Span


@dataclass(frozen=True, slots=True)
class Script:
    """A whole script, its includes among it. `sources` has the text of every file, by the name spans use."""

    processes: tuple[ProcessDefinition, ...]
    tools: tuple[ToolDefinition, ...]
    configurations: tuple[Configuration, ...]
    sources: dict[str, str]
    channel_notes: tuple[ChannelNote, ...] = ()
