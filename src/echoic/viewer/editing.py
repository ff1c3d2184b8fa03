"""Channels as a person looks at them and changes them: described, derived with code of their own, steered, dropped.

Code is checked by the compiler that the sources use, so a mistake has the line and column that they would name. The
types around it are texts too: `Mean{average: float}` for what comes out, `low=75.5 lot:int32=100` for parameters. They
are only ever declarations; nothing that a browser sends is imported or evaluated.

A derived channel stands in the book of its parent's manager. To drop one means to forget its name at the name servers;
the manager forgets the rest when it needs the room, or at once if it is this very hub.
"""

import re
import threading
from collections.abc import Mapping
from typing import Final

import msgspec

from echoic.channels import ChannelId, Concentrator, Policy, Step, ignore
from echoic.ecode import Signature, analyse, check, parameter_format, spelled
from echoic.errors import EchoicError, ECodeError, EncodeError, FormatError, LimitExceededError, RefusedError
from echoic.formats import NATIVE, Field, Format, Kind, format_of_text, shown
from echoic.formats.text_values import Bare, fit
from echoic.hub import Channel, Hub
from echoic.monitor import browse, find, manager_of
from echoic.monitor.reduction import KINDS, shapes
from echoic.viewer.messages import Check, Checked, Derive, Description, Mistake, Parameter, ParameterValue, Steer
from echoic.viewer.shares import Shares
from echoic.wire import Batch

__all__ = ["Desk"]

KEPT_MAX: Final = 256
ELEMENTS_MAX: Final = 1000
FIELDS_MAX: Final = 1000
BLOCK: Final = "Parameters"
PARAMETER: Final = re.compile(
    r"[\s,;]*(?P<name>[A-Za-z_]\w*)\s*(?::\s*(?P<type>[A-Za-z]\w*(?:\[\d+\])*)\s*)?=\s*"
    r"(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^\s,;]+)",
    re.ASCII,
)
WORDS: Final = {"true": True, "false": False}


class Desk:
    """Looks at channels, and changes them, for all tabs of a viewer."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._kept: dict[str, Channel] = {}
        self._owners: dict[str, str] = {}
        self._shares = Shares(KEPT_MAX, "channels were derived here")
        self._lock = threading.Lock()

    def find(self, channel: str) -> Channel:
        """Open a channel by name or id.

        Raises:
            EchoicError: It is not there.
        """
        return find(self._hub, channel) if self._hub.names else self._hub.open(channel)

    def is_known(self, address: str) -> bool:
        """Tell whether the manager of a channel stands at an address, as far as this hub and its name server know.

        Raises:
            EchoicError: The name server does not answer.
        """
        if address in (self._hub.address, *self._hub.names):
            return True
        return any(manager_of(entry.id) == address for entry in browse(self._hub))

    def describe(self, channel: str, number: int) -> Description:
        """Return what a channel is.

        Raises:
            EchoicError: It is not there.
        """
        opened = self.find(channel)
        described = self._hub.describe(opened.id)
        step = described.lineage[-1] if described.lineage else None
        format = opened.format
        fields = shapes(format)[:FIELDS_MAX] if format is not None else ()
        views = {"Chart": any(field.series for field in fields), "Field": any(field.plane for field in fields)}
        return Description(
            number=number,
            name=opened.name,
            id=opened.id,
            channel_type=format.name if format is not None else "",
            layout=format.describe() if format is not None else "",
            fields=list(fields),
            parent=step.recipe.parent if step is not None else "",
            code=step.recipe.code if step is not None else "",
            spelling=step.recipe.spelling if step is not None else "",
            output=_declaration(Format.from_descriptor(step.recipe.output)) if step and step.recipe.output else "",
            params=_parameters(step) if step is not None else [],
            derived_here=opened.id in self._kept,
            sources=len(described.sources),
            sinks=len(described.sinks),
            views=[view for view, possible in views.items() if possible] + ["Events"],
        )

    def check(self, request: Check) -> Checked:
        """Return what is wrong with code.

        Raises:
            EchoicError: The channel is not there, or has no type.
        """
        parent = self.find(request.channel)
        made = _Draft.read(request)
        mistakes, cost = made.check(parent)
        return Checked(request.number, mistakes, cost, Policy().cost_max)

    def derive(self, request: Derive, who: str = "") -> Description | list[Mistake]:
        """Derive a channel, or return what is wrong with its code.

        One that a program has derived already is described, and not kept: it is not for the page to drop.

        Args:
            request: What a person has written.
            who: Of whose share of the channels that are kept here it is one.

        Raises:
            EchoicError: The channel is not there, or cannot be derived from.
        """
        parent = self.find(request.channel)
        made = _Draft.read(request)
        mistakes, _ = made.check(parent)
        if mistakes:
            return mistakes
        crowd = self._shares.take(who)
        if crowd:
            raise LimitExceededError(f"{crowd}: drop some")
        kept = False
        try:
            before = {entry.id for entry in browse(self._hub)}
            derived = parent.derive(request.code, made.output, params=made.params, name=request.name)
            with self._lock:
                # Else it is an equal one, which counts for who has derived it first.
                kept = derived.id not in self._kept and derived.id not in before
                if kept:
                    self._kept[derived.id] = derived
                    self._owners[derived.id] = who
        except ECodeError as error:
            return _mistakes(error)
        finally:
            if not kept:
                self._shares.give_back(who)
        return self.describe(derived.id, request.number)

    def kept(self, channel: str) -> Channel | None:
        """Return a channel that was derived here, by name or id, without asking anybody; None if it was not."""
        with self._lock:
            return next((kept for id, kept in self._kept.items() if channel in (id, kept.name)), None)

    def drop(self, channel: str) -> str:
        """Forget a channel that was derived here; return its id.

        Raises:
            RefusedError: It was not.
        """
        with self._lock:
            named = [id for id, kept in self._kept.items() if channel in (id, kept.name)]
            if not named:
                raise RefusedError(f"channel '{shown(channel)}' was not derived by this viewer")
            dropped = self._kept.pop(named[0])
            self._shares.give_back(self._owners.pop(named[0]))
        name = dropped.name
        if ChannelId.parse(dropped.id).address == self._hub.address:
            self._hub.remove(name)
            return dropped.id

        def forget(core: Concentrator) -> None:
            for server, message in core.manager.unregister(name):
                core.ask(server, message, ignore)

        dropped.endpoints.switchboard.do(forget)
        return dropped.id

    def steer(self, request: Steer) -> Description:
        """Change parameters of a derived channel; returns when every source knows.

        Raises:
            EchoicError: It is not there, has no such parameters, or a value does not fit.
        """
        opened = self.find(request.channel)
        params = opened.params
        changes = {name: _fitting(params.format, name, value) for name, value in request.values.items()}
        params.update(**changes)
        return self.describe(opened.id, request.number)


class _Draft(msgspec.Struct):
    """A derivation as a person has written it: what of the types around the code could be read, and what not."""

    code: str
    output: Format | None
    params: object | None
    mistakes: list[Mistake]

    @classmethod
    def read(cls, request: Check | Derive) -> "_Draft":
        draft = cls(request.code, None, None, [])
        try:
            draft.output = format_of_text(request.output) if request.output.strip() else None
        except EchoicError as error:
            draft.mistakes.append(Mistake(1, _place(str(error)), str(error), "output"))
        try:
            draft.params = _block(request.params)
        except EchoicError as error:
            draft.mistakes.append(Mistake(1, 1, str(error), "params"))
        return draft

    def check(self, parent: Channel) -> tuple[list[Mistake], int]:
        """Return what is wrong, and what an event costs at most.

        Raises:
            FormatError: The parent has no type.
        """
        if parent.format is None:
            raise FormatError(f"channel '{parent.name}' has no type, and only typed channels can be derived from")
        if self.mistakes:
            return self.mistakes, 0
        try:
            block = parameter_format(self.params) if self.params is not None else None
            output = self.output.on(NATIVE) if self.output is not None else None
            text, spelling = spelled(self.code)
            signature = Signature(parent.format.on(NATIVE), output, block, context=parent.context)
            return [], analyse(check(text, signature, spelling=spelling)).cost
        except ECodeError as error:
            return _mistakes(error), 0
        except FormatError as error:
            return [Mistake(1, 1, str(error), "output" if self.output is not None else "code")], 0


def _mistakes(error: ECodeError) -> list[Mistake]:
    return [Mistake(line, column, message) for line, column, message in error.problems] or [Mistake(1, 1, str(error))]


def _place(text: str) -> int:
    """Return the column that a message about a declaration names, 1 if it names none."""
    found = re.search(r"at character (\d+)", text)
    return int(found.group(1)) if found else 1


def _block(params: Mapping[str, ParameterValue] | str) -> object | None:
    """Return a parameter block, None without any parameter.

    Raises:
        EncodeError: A value does not fit its type.
        FormatError: A type is not one, or the text is none of parameters.
    """
    if not isinstance(params, str):
        if params:
            parameter_format(params)
        return dict(params) or None
    at, fields, values = 0, list[Field](), dict[str, object]()
    text = params.rstrip(" \t\r\n,;")
    while at < len(text):
        found = PARAMETER.match(text, at)
        if found is None:
            raise FormatError(f"expected NAME=VALUE or NAME:TYPE=VALUE, got `{shown(text[at : at + 40].strip())}`")
        at = found.end()
        name, declared, word = found.group("name", "type", "value")
        if name in values:
            raise FormatError(f"parameter `{name}` is given twice")
        plain = word[1:-1] if word[0] in "\"'" else Bare(word)
        if declared:
            field = format_of_text(f"{BLOCK}{{{name}: {declared}}}").fields[0]
            values[name] = fit(plain, field, name)
        else:
            values[name] = _guessed(plain)
            field = parameter_format({name: values[name]}).fields[0]
        fields.append(field)
    return Batch.of([values], Format.place(BLOCK, fields, NATIVE)).events()[0] if fields else None


def _guessed(word: str) -> bool | int | float | str:
    """Return what a word without a type looks like."""
    if not isinstance(word, Bare):
        return word
    if word.lower() in WORDS:
        return WORDS[word.lower()]
    for number in (int, float):
        try:
            return number(word)
        except ValueError:
            continue
    return str(word)


def _fitting(format: Format, name: str, value: ParameterValue) -> object:
    """Return a value as a parameter of its type has it; a text may stand for a number.

    Raises:
        EncodeError: It does not fit.
        FormatError: There is no such parameter.
    """
    field = format.member(name, name)
    if isinstance(value, str) and not field.text and field.kind is not Kind.CHAR:
        value = Bare(value)
    if isinstance(value, float) and value.is_integer() and field.kind in (Kind.INT, Kind.UINT):
        value = int(value)
    if isinstance(value, list) and not field.dimensions:
        raise EncodeError(f"expected `{field.spelling}`, got a list - at `param.{name}`")
    return fit(value, field, f"param.{name}")


def _parameters(step: Step) -> list[Parameter]:
    """Return the parameters of a derived channel with their values at present; arrays as far as they can be shown."""
    if not step.recipe.params:
        return []
    format = Format.from_descriptor(step.recipe.params)
    block = Batch.of_record(step.values, format).to(format).events()[0]
    found = []
    for field in format.fields:
        shape = [-1 if isinstance(size, str) else size for size in field.dimensions]
        found.append(Parameter(field.name, KINDS[field.kind], _plain(getattr(block, field.name)), shape))
    return found


def _plain(value: object) -> object:
    """Return a value as JSON has it; None for what it has not, and what is too long."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, bool | int | float | str):
        return value
    listed = getattr(value, "tolist", None)
    if listed is not None and getattr(value, "size", 0) <= ELEMENTS_MAX:
        return listed()
    if isinstance(value, list | tuple) and len(value) <= ELEMENTS_MAX:
        return [_plain(each) for each in value]
    return None


def _declaration(format: Format) -> str:
    """Return a type as it would be declared in one word."""
    fields = ", ".join(
        f"{field.name}: "
        + (_declaration(field.record) + field.spelling[len(field.record.name) :] if field.record else field.spelling)
        for field in format.fields
    )
    return f"{format.name}{{{fields}}}"
