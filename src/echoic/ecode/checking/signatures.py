"""Whether types can stand around a program at all."""

from typing import TYPE_CHECKING, Final

from echoic.ecode.program import PORTS_MAX
from echoic.ecode.syntax.nearest import did_you_mean
from echoic.errors import FormatError
from echoic.formats import NATIVE, Format, Slots, shown

if TYPE_CHECKING:
    from echoic.ecode.program import Signature

__all__ = ["CAPACITY_MAX", "check_signature"]

CAPACITY_MAX: Final = 1_000_000


def check_signature(signature: "Signature") -> None:
    """Refuse types that no program can work on.

    Raises:
        FormatError: Records have slots of another kind, output or parameters are laid out for another machine, or
            ports or capacities are out of range.
    """
    _check_slots("input", signature.input)
    for name, format in (("output", signature.output), ("param", signature.params)):
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
