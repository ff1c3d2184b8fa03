"""What a source has for others besides events."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from echoic.hub.context import Context
    from echoic.hub.steering import SourceHelm

__all__ = ["NOTHING", "Delegate", "Offer"]

Delegate: TypeAlias = Callable[[str], object | None]


class Offer(NamedTuple):
    """What a source has for the code of others, and for those who steer it."""

    delegate: Delegate | None = None
    context: "Context | None" = None
    helm: "SourceHelm | None" = None


NOTHING: Final = Offer()
