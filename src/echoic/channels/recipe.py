"""How a derived channel is made: what whoever derives it has written, and what its manager has made of that."""

from typing import Literal, TypeAlias

import msgspec

__all__ = ["Placement", "Recipe", "Step"]

Placement: TypeAlias = Literal["source", "sink", "auto"]


class Recipe(msgspec.Struct, frozen=True):
    """How the events of a derived channel are made of those of its parent, as whoever derives it has written it."""

    parent: str
    code: str
    spelling: Literal["ecode", "python", "modulator"] = "ecode"
    output: bytes = b""
    """The descriptor of the type that comes out; empty for a filter."""
    params: bytes = b""
    """The descriptor of the parameter block's type; empty if there is none."""
    ports: int = 0
    capacities: tuple[tuple[str, int], ...] = ()
    placement: Placement = "source"
    parcel: bytes = b""
    """A modulator, signed by whoever has written it, instead of code."""
    identity: bytes = b""
    """What equal modulators have in common, so that they share one channel."""


class Step(msgspec.Struct, frozen=True):
    """A derived channel: what it is called, its recipe, the parameters at present, and the type of its parent.

    The ports of a router are channels of one `group`, which is computed once for all of them.
    """

    name: str
    group: str
    recipe: Recipe
    values: bytes = b""
    version: int = 0
    port: int = 0
    input: bytes = b""
    context: bytes = b""
    """The descriptor of the context that sources of the parent have; empty if they have none."""
    owned_by: str | msgspec.UnsetType = msgspec.UNSET
    """Who has derived it, as the manager knows by his certificate; missing if he has shown none."""

    @property
    def owner(self) -> str:
        """Who has derived it, "" if that is not known."""
        return self.owned_by if isinstance(self.owned_by, str) else ""
