"""Handlers: which methods of a tool answer what, found once for each class.

    @eval_                              snd-eval(C, expr("1+2"))        ->  calc.expr("1+2"), whose result is the value
    def expr(self, text: str) -> Term

    @do                                 snd-do(C, set-text("x"))        ->  calc.set_text("x")
    def set_text(self, text: str)

    @event                              self.button("ok")               ->  rec-event(C, button("ok"))
    def button(self, name: str)

    @request                            self.look_up("k")               ->  rec-request(C, look-up("k"))
    def look_up(self, key: str) -> int

What an eval returns is its value if it is a term; a number, string or list `x` is `value(x)`, since `rec-value` takes
nothing else. The name in the script is that of the method with `-` for `_`; `@eval_("name")` says another. What stands
in `@event` and `@request` methods is never run: they declare, and calling them sends.
"""

import functools
import inspect
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeVar, overload

from echoic.errors import EncodeError, FormatError
from echoic.terms import Annotated, Placeholder, Term, TermList, Value, parse_text, plain
from echoic.toolbus.hints import BASE_NAMES, TERM, from_hint, pattern_of, to_hint, type_of

__all__ = [
    "VALUE_OF",
    "Handler",
    "HandlerKind",
    "do",
    "eval_",
    "event",
    "handlers_of",
    "offer_of",
    "request",
    "script_name",
]

HandlerKind = Literal["eval", "do", "event", "request"]
F = TypeVar("F", bound=Callable[..., Any])
G = TypeVar("G", bound=Callable[..., Any])

MARK: Final = "__toolbus__"
ARGUMENTS_MAX: Final = 64
INCOMING: Final = {"eval": "rec-eval", "do": "rec-do"}
WRAPPER: Final = "value"
VALUE_OF: Final = Term("value-of")
OUTGOING: Final = {"event": "snd-event", "request": "snd-request"}


class Decorate(Protocol):
    """What marks a method."""

    def __call__(self, function: G, /) -> G:
        """Mark it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What a decorator leaves at a method."""

    kind: HandlerKind
    name: str
    returns: str


@dataclass(frozen=True, slots=True)
class Handler:
    """A method that answers, or declares."""

    kind: HandlerKind
    name: str
    method: str
    hints: tuple[object, ...]
    required: int
    variadic: bool
    returns: object
    """The hint of the result."""
    told: tuple[Value, ...] = field(default=())
    """The type of the result where the decorator says it."""

    @property
    def result_type(self) -> Value:
        """The type of the value, as terms have it; `rec-value` takes applications only, so others are `value(T)`."""
        type_ = self.told[0] if self.told else type_of(self.returns)
        return type_ if _is_application(type_) else Term(WRAPPER, type_)

    def arguments(self, values: tuple[Value, ...]) -> list[object]:
        """Return the arguments of a call.

        Raises:
            EncodeError: They are too few or too many, or one does not fit its hint.
        """
        if len(values) < self.required or (len(values) > len(self.hints) and not self.variadic):
            most = "or more" if self.variadic else f"to {len(self.hints)}"
            raise EncodeError(f"`{self.name}` takes {self.required} {most} arguments, got {len(values)}")
        hints = (*self.hints, *(object,) * (len(values) - len(self.hints)))
        made: list[object] = []
        for at, (hint, value) in enumerate(zip(hints, values, strict=False), 1):
            try:
                made.append(to_hint(hint, value))
            except EncodeError as error:
                raise EncodeError(f"{error} - at argument {at} of `{self.name}`") from None
        return made

    def values(self, arguments: tuple[object, ...]) -> tuple[Value, ...]:
        """Return the arguments of something a tool is about to send.

        Raises:
            EncodeError: They are too few or too many, or one does not fit its hint.
        """
        if len(arguments) < self.required or (len(arguments) > len(self.hints) and not self.variadic):
            raise EncodeError(f"`{self.name}` takes {len(self.hints)} arguments, got {len(arguments)}")
        hints = (*self.hints, *(object,) * (len(arguments) - len(self.hints)))
        made: list[Value] = []
        for at, (hint, argument) in enumerate(zip(hints, arguments, strict=False), 1):
            try:
                made.append(from_hint(hint, argument))
            except EncodeError as error:
                raise EncodeError(f"{error} - at argument {at} of `{self.name}`") from None
        return tuple(made)

    def result(self, returned: object) -> Value:
        """Return what a call has returned as a value.

        Raises:
            EncodeError: It is none, or not what the method says it returns.
        """
        try:
            value = from_hint(self.told[0] if self.told else self.returns, returned)
        except EncodeError as error:
            raise EncodeError(f"{error} - at what `{self.name}` returns") from None
        return value if isinstance(plain(value), Term) else Term(WRAPPER, value)

    def patterns(self) -> Iterator[Value]:
        """Yield what the handler takes, as interfaces have it: one pattern for each number of arguments."""
        if self.variadic:
            yield Placeholder(Term(self.name))
            return
        for count in range(self.required, len(self.hints) + 1):
            yield Term(self.name, *(pattern_of(type_of(hint)) for hint in self.hints[:count]))


def _is_application(type_: Value) -> bool:
    """Whether values of a type are terms with a symbol, or may be."""
    return type_ is TERM or (isinstance(type_, Term) and type_.name not in BASE_NAMES) or isinstance(type_, Placeholder)


def script_name(method: str) -> str:
    """Return what a script calls a method: `get_text` is `get-text`, `print_` is `print`."""
    return method.rstrip("_").replace("_", "-")


@overload
def eval_(marked: F, /) -> F: ...
@overload
def eval_(marked: str = "", /, *, returns: str = "") -> "Decorate": ...
def eval_(marked: F | str = "", /, *, returns: str = "") -> "F | Decorate":
    """Mark a method that answers `snd-eval`.

    Args:
        marked: The name in the script, if it is not that of the method.
        returns: The type of the value, `val(int)`, where a hint cannot say it.
    """
    return _mark("eval", marked, returns)


@overload
def do(marked: F, /) -> F: ...
@overload
def do(marked: str = "", /) -> "Decorate": ...
def do(marked: F | str = "", /) -> "F | Decorate":
    """Mark a method that does what `snd-do` asks; what it returns is not looked at."""
    return _mark("do", marked, "")


def event(marked: F, /) -> F:
    """Declare an event: calling the method sends it, and returns what `Tool.event` does."""
    return _declare("event", marked)


def request(marked: F, /) -> F:
    """Declare a request: calling the method sends it, and returns what `Tool.request` does."""
    return _declare("request", marked)


def handlers_of(cls: type) -> dict[tuple[str, str], Handler]:
    """Return the handlers of a class, those it inherits among them, by kind and name.

    Raises:
        FormatError: A hint stands for no type of terms, or two methods have one name.
    """
    found: dict[tuple[str, str], Handler] = {}
    for name in dir(cls):
        method = inspect.getattr_static(cls, name)
        mark = getattr(method, MARK, None)
        if not isinstance(mark, Mark):
            continue
        handler = _handler(mark, name, method)
        if (mark.kind, handler.name) in found:
            raise FormatError(f"two methods of `{cls.__name__}` are called `{handler.name}`")
        found[mark.kind, handler.name] = handler
    return found


def offer_of(tool: str, handlers: dict[tuple[str, str], Handler]) -> Term:
    """Return the interface that handlers make, `signature([in],[out],[other])`.

    A value is annotated with the name of its eval, so that those which a script does not use need not fit it.
    """
    me = Placeholder(Term(tool))
    incoming = [
        Term(INCOMING[each.kind], me, pattern)
        for each in handlers.values()
        if each.kind in INCOMING
        for pattern in each.patterns()
    ]
    outgoing: list[Value] = [
        Annotated(Term("snd-value", me, pattern_of(each.result_type)), TermList(VALUE_OF, each.name))
        for each in handlers.values()
        if each.kind == "eval"
    ]
    outgoing += [
        Term(OUTGOING[each.kind], me, pattern)
        for each in handlers.values()
        if each.kind in OUTGOING
        for pattern in each.patterns()
    ]
    other = [Term("rec-terminate", me, Placeholder(TERM))]
    return Term("signature", TermList(*incoming), TermList(*dict.fromkeys(outgoing)), TermList(*other))


def _mark(kind: HandlerKind, marked: F | str, returns: str) -> F | Decorate:
    if isinstance(marked, str):
        name = marked

        def decorate(function: G) -> G:
            setattr(function, MARK, Mark(kind, name, returns))
            return function

        return decorate
    setattr(marked, MARK, Mark(kind, "", ""))
    return marked


def _declare(kind: HandlerKind, function: F) -> F:
    name = script_name(function.__name__)

    @functools.wraps(function)
    def send(self: Any, *arguments: object, **keywords: Any) -> object:  # noqa: ANN401 - a tool, and its keywords
        return getattr(self, kind)(name, *arguments, **keywords)

    setattr(send, MARK, Mark(kind, "", ""))
    return typing.cast("F", send)


def _handler(mark: Mark, name: str, method: Callable[..., Any]) -> Handler:
    signature = inspect.signature(method)
    try:
        hints = typing.get_type_hints(method, include_extras=True)
    except (NameError, TypeError) as error:
        raise FormatError(f"the hints of `{name}` cannot be read: {error}") from error
    parameters = list(signature.parameters.values())[1:]
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    variadic = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    if len(positional) > ARGUMENTS_MAX:
        raise FormatError(f"`{name}` has {len(positional)} arguments, limit is {ARGUMENTS_MAX}")
    kinds = tuple(hints.get(each.name, object) for each in positional)
    for each in kinds:
        type_of(each)
    returns = hints.get("return", object)
    if returns is type(None):
        returns = object
    told = (parse_text(mark.returns),) if mark.returns else ()
    type_of(returns)
    required = sum(each.default is each.empty for each in positional)
    return Handler(mark.kind, mark.name or script_name(name), name, kinds, required, variadic, returns, told)
