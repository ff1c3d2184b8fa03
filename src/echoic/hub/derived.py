"""Derived channels, as a program makes and holds them.

`Channel.derive` checks the code here, against the channel's type, so that mistakes are told with line and caret before
anything is sent. Then the channel's manager enters the derived channel, or finds one that is just the same. Nothing is
compiled at any source before somebody subscribes.
"""

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from echoic.channels import (
    ChannelId,
    DerivationCounts,
    Derive,
    DerivedAs,
    Describe,
    Described,
    Done,
    Placement,
    Recipe,
    Report,
    Reported,
    Restore,
    Save,
    Saved,
    Step,
    Tune,
)
from echoic.eager import Modulator, SigningKey, may_stand_for, pack
from echoic.ecode import Signature, check, parameter_format, spelled, updated
from echoic.errors import FormatError, LocalError, RefusedError
from echoic.formats import NATIVE, Format
from echoic.wire import Batch

if TYPE_CHECKING:
    from echoic.hub.switchboard import Switchboard

__all__ = ["DerivationHandle", "Parameters", "Terms", "derive_steps", "modulate_step"]

PLACEMENTS: Final = ("source", "sink", "auto")
CHANGES_MAX: Final = 100


class Terms(msgspec.Struct, frozen=True):
    """How a channel is to be derived, beside the code; `Channel.derive` says what each means."""

    output: object | None = None
    params: object | None = None
    ports: int = 0
    capacities: Mapping[str, int] = {}
    placement: str = "source"
    name: str = ""
    share: bool = True


def derive_steps(
    switchboard: "Switchboard",
    parent: ChannelId,
    format: Format | None,
    code: str | Callable[..., object],
    terms: Terms,
    context: Format | None = None,
) -> tuple[Step, ...]:
    """Check a derivation, and have the parent's manager enter it.

    Raises:
        ECodeError: The code is wrong.
        FormatError: The parent has no type, or the output or the parameters cannot have one.
        EchoicError: The manager refuses, or cannot be reached.
    """
    if format is None:
        raise FormatError(f"channel `{parent.name}` has no type, and only typed channels can be derived from")
    if terms.placement not in PLACEMENTS:
        raise LocalError(f"a placement is one of {', '.join(PLACEMENTS)}, got {terms.placement!r}")
    text, spelling = spelled(code)
    made = Format.of(terms.output) if terms.output is not None else None
    block = parameter_format(terms.params) if terms.params is not None else None
    capacities = tuple(sorted(terms.capacities.items()))
    program = check(
        text,
        Signature(format.on(NATIVE), made and made.on(NATIVE), block, terms.ports, capacities, context),
        spelling=spelling,
    )
    if program.context is not None and terms.placement == "sink":
        raise LocalError("code that names `context` runs at the source, got the placement 'sink'")
    recipe = Recipe(
        parent.name,
        text,
        spelling,
        made.descriptor if made is not None else b"",
        block.descriptor if block is not None else b"",
        terms.ports,
        capacities,
        terms.placement if program.context is None else "source",  # type: ignore[arg-type] # it is one of them
    )
    values = encode_block(terms.params, block) if block is not None else b""
    step = Step("", terms.name, recipe, values)
    steps = switchboard.ask(parent.address, Derive(step, terms.share), DerivedAs).steps
    if len(steps) != (terms.ports or 1):
        raise RefusedError(f"the manager has entered {len(steps)} channels, expected {terms.ports or 1}")
    return steps


def modulate_step(
    switchboard: "Switchboard",
    parent: ChannelId,
    format: Format | None,
    modulator: Modulator,
    key: SigningKey,
    *,
    share: bool,
) -> tuple[Step, bool]:
    """Pack a modulator, and have the parent's manager enter its derived channel; tell whether it is of somebody else.

    Raises:
        LocalError: It cannot be shipped.
        FormatError: The parent has no type.
        EchoicError: The manager refuses, or cannot be reached.
    """
    if format is None:
        raise FormatError(f"channel `{parent.name}` has no type, and only typed channels can be derived from")
    parcel, identity = pack(modulator, parent.name, format, key)
    made = Format.of(modulator.output).descriptor if modulator.output is not None else b""
    recipe = Recipe(parent.name, "", "modulator", made, parcel=parcel, identity=identity)
    for sharing in (True, False) if share else (False,):
        steps = switchboard.ask(parent.address, Derive(Step("", "", recipe), sharing), DerivedAs).steps
        if len(steps) != 1:
            raise RefusedError(f"the manager has entered {len(steps)} channels, expected 1")
        found = steps[0].recipe.parcel
        if found == parcel or (sharing and may_stand_for(found, parcel)):
            return steps[0], found != parcel
    raise RefusedError("the manager has entered the modulator of somebody else")


def encode_block(values: object, format: Format) -> bytes:
    """Return a parameter block as a record.

    Raises:
        EncodeError: A value does not fit.
    """
    return bytes(Batch.of([values], format).records)


class Parameters:
    """The parameter block of a derived channel: read by its code, replaced from here.

    Whoever shares the channel shares its parameters.
    """

    def __init__(self, switchboard: "Switchboard", id: ChannelId, step: Step, values: object | None) -> None:
        self._switchboard = switchboard
        self._id = id
        self.format: Final = Format.from_descriptor(step.recipe.params)
        """The type of the block."""
        given = values is not None and encode_block(values, self.format) == step.values
        self._decoded = not given  # a channel that was there before has parameters of its own
        self._values = values if given else _record(self.format, step.values)
        self._version = step.version
        self._lock = threading.Lock()

    @property
    def values(self) -> object:
        """The parameters as they were when they were last changed from here, others' changes included.

        A dict, or an object of the class they were given as.
        """
        if self._decoded:
            return {name: getattr(self._values, name) for name in self.format.by_name}
        return self._values

    def update(self, **changes: object) -> None:
        """Change some parameters at every source. Returns when all of them have taken the change.

        Every source takes it between two batches, all of it at once. While a manager that was started anew has yet to
        hear of a source in another process, it does not wait for that one, which takes the change when it is known.

        Raises:
            FormatError: There is no parameter of a name.
            EncodeError: A value does not fit.
            EchoicError: The manager cannot be reached, knows the channel no more, or others change it without end.
        """
        with self._lock:
            if not any(self._change(changes) for _ in range(CHANGES_MAX)):
                raise RefusedError(f"others have changed the parameters {CHANGES_MAX} times meanwhile")

    def _change(self, changes: Mapping[str, object]) -> bool:
        """Change some parameters, unless others have done so meanwhile; then know what they have made of them."""
        values, ask = updated(self._values, changes), self._switchboard.ask
        block = encode_block(values, self.format)
        try:
            ask(self._id.address, Tune(self._id.name, block, base=self._version), Done)
        except RefusedError:
            lineage = ask(self._id.address, Describe(self._id.name), Described).lineage
            if not lineage or lineage[-1].version == self._version:
                raise
            self._values, self._version, self._decoded = (
                _record(self.format, lineage[-1].values),
                lineage[-1].version,
                True,
            )
            return False
        self._values, self._version = values, self._version + 1
        return True

    def __repr__(self) -> str:
        return f"<Parameters {self.values!r}>"


class DerivationHandle:
    """What a derived channel is made of, and how it fares at its sources."""

    def __init__(self, switchboard: "Switchboard", id: ChannelId, lineage: tuple[Step, ...]) -> None:
        self._switchboard = switchboard
        self._id = id
        self._step: Final = lineage[-1]

    @property
    def code(self) -> str:
        """The code, in the spelling it was written in."""
        return self._step.recipe.code

    @property
    def parent(self) -> str:
        """The name of the channel it is derived from."""
        return self._step.recipe.parent

    @property
    def placement(self) -> Placement:
        """Where it was asked to run."""
        return self._step.recipe.placement

    def counts(self) -> dict[str, DerivationCounts]:
        """Return what the derivation does in each hub that has sources, by the hubs' addresses.

        Raises:
            EchoicError: The manager or a source's hub cannot be reached.
        """
        found = {}
        for address in self._sources():
            report = self._switchboard.ask(address, Report(), Reported)
            for counts in report.derivations:
                if counts.name == self._step.group and counts.parent == self._step.recipe.parent:
                    found[address] = counts
        return found

    def save(self) -> dict[int, dict[str, Any]]:
        """Return the static variables of every source, by source: plain values by the names they have in the code.

        Raises:
            EchoicError: The manager or a source's hub cannot be reached.
        """
        states: dict[int, dict[str, Any]] = {}
        for address in self._sources():
            saved = self._switchboard.ask(address, Save(str(self._id)), Saved)
            if saved.descriptor:
                format = Format.from_descriptor(saved.descriptor)
                states |= {source: _decoded(format, block) for source, block in saved.states.items()}
        return states

    def restore(self, states: Mapping[int, Mapping[str, Any]]) -> None:
        """Give sources back their static variables; the state of source 0 is for all that are not named.

        Raises:
            EncodeError: A value does not fit its variable.
            EchoicError: The manager or a source's hub cannot be reached.
        """
        for address in self._sources():
            descriptor = self._switchboard.ask(address, Save(str(self._id)), Saved).descriptor
            if descriptor:
                format = Format.from_descriptor(descriptor)
                blocks = {source: encode_block(dict(state), format) for source, state in states.items()}
                self._switchboard.ask(address, Restore(str(self._id), blocks), Done)

    def _sources(self) -> list[str]:
        return self._switchboard.ask(self._id.address, Describe(self._id.name), Described).sources

    def __repr__(self) -> str:
        return f"<Derivation {self._id} of {self.parent}>"


def _record(format: Format, block: bytes) -> Any:  # noqa: ANN401 - an event of any type
    return Batch.of_record(block, format).to(format).events()[0]


def _decoded(format: Format, block: bytes) -> dict[str, Any]:
    record = _record(format, block)
    return {field.name: getattr(record, field.name) for field in format.fields}
