"""What a sink may ask the sources of a channel to do, and what one of them has made of it (see `steering`)."""

from typing import Literal, TypeAlias

import msgspec

__all__ = ["Action", "Plain", "Steering"]

Action: TypeAlias = Literal["start", "stop", "tune"]
Plain: TypeAlias = bool | int | float | str


class Steering(msgspec.Struct, frozen=True):
    """The answer of one source; of a hub that could not be asked, with `source` 0."""

    hub: str
    source: int
    refusal: str = ""
    """Why it has not done as asked, "" if it has."""
    values: dict[str, Plain] = {}
    """What it has to say."""

    @property
    def taken(self) -> bool:
        """Whether it has done as asked."""
        return not self.refusal
