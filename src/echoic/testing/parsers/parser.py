"""A parser of the product, and how hostile input gets to it."""

from collections.abc import Callable, Iterable
from importlib import import_module
from random import Random
from typing import Any, TypeAlias

import msgspec

__all__ = ["Parser", "Repair", "Target", "load_place"]

Repair: TypeAlias = Callable[[bytes, Random], bytes]


class Target(msgspec.Struct, frozen=True):
    """What is fuzzed."""

    feed: Callable[[bytes], object]
    """Gives bytes to the parser. Whatever it raises but an `EchoicError` is a finding."""
    seeds: Callable[[], Iterable[bytes]]
    """Inputs that are right, to begin with."""
    repair: Repair | None = None
    """Makes of mutated input what gets further: right checksums, a message that is one still."""


class Parser(msgspec.Struct, frozen=True):
    """A row of the table."""

    name: str
    place: str
    """Where its target is: `module:NAME`."""

    def load(self) -> Target:
        """Return what is fuzzed."""
        target: Target = load_place(self.place)
        return target


def load_place(place: str) -> Any:  # noqa: ANN401 - whatever is there
    """Return what a place names; so the test kit reaches parts of echoic that lie above it."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
