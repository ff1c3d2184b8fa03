"""Whether types can stand around a program at all."""

from typing import TYPE_CHECKING, Final

from echoic.ecode.context import CONTEXT_BYTES_MAX
from echoic.ecode.program import PORTS_MAX
from echoic.ecode.syntax.nearest import did_you_mean
from echoic.errors import FormatError
from echoic.formats import NATIVE, Format, Kind, Slots, shown

if TYPE_CHECKING:
    from echoic.ecode.program import Signature

__all__ = ["CAPACITY_MAX", "check_context", "check_signature"]

CAPACITY_MAX: Final = 1_000_000


def check_signature(signature: "Signature") -> None:
    """Refuse types that no program can work on.

    Raises:
        FormatError: Records have slots of another kind, output, parameters or context are laid out for another
            machine, ports or capacities are out of range, or the context has more than numbers.
    """
    _check_slots("input", signature.input)
    for name, format in (("output", signature.output), ("param", signature.params), ("context", signature.context)):
        if format is not None:
            _check_slots(name, format)
            if format.byte_order != NATIVE.byte_order:
                raise FormatError(
                    f"`{name}` is {format.byte_order}-endian, expected this machine's order, which is "
                    f"{NATIVE.byte_order}-endian - at `{format.name}`"
                )
    if not 0 <= signature.ports <= PORTS_MAX:
        raise FormatError(f"a router has {signature.ports} ports, limit is {PORTS_MAX}")
    _check_capacities(signature)
    if signature.context is not None:
        check_context(signature.context)


def check_context(format: Format) -> None:
    """Refuse what cannot be the type of a context.

    Raises:
        FormatError: It has texts or dynamic arrays, or is too large.
    """
    for path, field in format.walk():
        if field.text or field.dynamic or (field.kind is Kind.CHAR and field.dimensions):
            raise FormatError(
                f"a context has numbers, and fixed arrays and records of them, not `{field.spelling}` "
                f"- at `{format.name}.{path}`"
            )
    if format.size > CONTEXT_BYTES_MAX:
        raise FormatError(f"a context has {format.size} bytes, limit is {CONTEXT_BYTES_MAX} - at `{format.name}`")


def _check_slots(name: str, format: Format) -> None:
    if format.variable and format.slots is not Slots.SPAN:
        raise FormatError(
            f"`{name}` has C pointers as slots ({format.slots.name.lower()}), expected spans: convert it first "
            f"- at `{format.name}`"
        )


def _check_capacities(signature: "Signature") -> None:
    output = signature.output
    arrays = [path for path, field in output.walk() if field.dynamic] if output is not None else []
    named: set[str] = set()
    for path, capacity in signature.capacities:
        place = f" - at `{shown(path)}`"
        if path not in arrays:
            advice = did_you_mean(path, arrays)
            raise FormatError(f"a capacity is for a dynamic array of `output`, which this is not{advice}{place}")
        if path in named:
            raise FormatError(f"two capacities are given for one array{place}")
        named.add(path)
        if not 1 <= capacity <= CAPACITY_MAX:
            raise FormatError(f"the capacity is {capacity}, expected 1 to {CAPACITY_MAX}{place}")
