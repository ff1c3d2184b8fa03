"""Types of events as they change over the years: fields are added, removed, reordered and widened."""

import random
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from echoic.formats import event, float32, float64, int32, int64, uint8, uint16, uint32
from echoic.testing.ledger import check

__all__ = ["Pair", "draw_pair", "events_of"]

Value: TypeAlias = int | float | str | bool

WIDER: Final[dict[object, object]] = {int32: int64, uint8: uint32, uint16: uint32, float32: float64}
DRAWN: Final[dict[object, Callable[[random.Random], Value]]] = {
    int32: lambda chance: chance.randint(-(2**31), 2**31 - 1),
    int64: lambda chance: chance.randint(-(2**31), 2**31 - 1),
    uint8: lambda chance: chance.randint(0, 255),
    uint16: lambda chance: chance.randint(0, 65_535),
    uint32: lambda chance: chance.randint(0, 255),
    float32: lambda chance: chance.randrange(1 << 20) / 16,
    float64: lambda chance: chance.randrange(1 << 20) / 16,
    str: lambda chance: "§x" * chance.randrange(9),
}
"""How a value is drawn that both widths of its type have."""
FIELDS: Final = (2, 8)


class Pair(msgspec.Struct, frozen=True):
    """A type, what became of it, and the fields that both have."""

    former: type
    latter: type
    common: tuple[str, ...]
    widened: bool
    """Whether a field has more bits in the latter."""

    def compare(self, sent: Sequence[object], got: Sequence[object]) -> None:
        """Check that events mean the same in both types.

        Raises:
            AssertionError: They do not.
        """
        check(len(got) == len(sent), f"{len(got)} of {len(sent)} events arrived")
        for place, (one, other) in enumerate(zip(sent, got, strict=True)):
            for name in self.common:
                before, after = getattr(one, name), getattr(other, name)
                check(before == after, f"{name} of event {place} was {before!r} and is {after!r}")


def draw_pair(chance: random.Random) -> Pair:
    """Return a type and what became of it."""
    kinds = list(DRAWN)
    fields = {f"f{number}": chance.choice(kinds) for number in range(chance.randint(*FIELDS))}
    kept = [name for name in fields if chance.random() < 0.8] or ["f0"]
    share = chance.choice((0.0, 0.5))
    changed = {
        name: WIDER.get(fields[name], fields[name]) if chance.random() < share else fields[name] for name in kept
    }
    added = {f"g{number}": chance.choice(kinds) for number in range(chance.randrange(3))}
    names = [*changed, *added]
    chance.shuffle(names)
    latter = {name: {**changed, **added}[name] for name in names}
    widened = any(changed[name] is not fields[name] for name in kept)
    return Pair(declare(fields), declare(latter), tuple(kept), widened)


def declare(fields: dict[str, object]) -> type:
    """Return an event type with fields, all of which have defaults."""
    defaults = {name: "" if kind is str else 0 for name, kind in fields.items()}
    declared: type = event(type("Thing", (), {"__annotations__": fields, **defaults}))
    return declared


def events_of(declared: type, count: int, chance: random.Random) -> list[object]:
    """Return events of a type."""
    kinds: dict[str, object] = declared.__annotations__
    return [declared(**{name: DRAWN[kind](chance) for name, kind in kinds.items()}) for _ in range(count)]
