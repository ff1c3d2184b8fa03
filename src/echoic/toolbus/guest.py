"""Guests: who a tool is for its bus, and what has proved that. This module is pure.

    started       by the bus itself, with the launcher's secret; neither rights nor shares are asked about it, nor
                  whether its certificate has expired, which is the bus's own; only whether that is revoked
    certificate   a name that the authority has given
    token         a name, and the tools that its owner may be, signed
    nothing       where a bus wants no proof: whoever reaches it

It is remembered as long as the conversation lasts, however often its connection breaks: who comes back must be who was
there, and is asked for the same proof.
"""

from dataclasses import dataclass
from typing import Final

from echoic.links import Credentials
from echoic.rights import Pattern

__all__ = ["NOBODY", "OURS", "TOOL_PREFIX", "TOOL_RIGHT", "Guest"]

TOOL_PREFIX: Final = "tool:"
TOOL_RIGHT: Final = "publish"


@dataclass(frozen=True, slots=True)
class Guest:
    """Who a tool is."""

    who: str = ""
    """The name in its certificate or token; empty where it has none."""
    credentials: Credentials | None = None
    """Its certificate, if it has shown one."""
    token: str = ""
    """What lets it be this tool, if it has shown that in the place of a certificate."""
    tools: tuple[str, ...] = ("*",)
    """Patterns of what it may be, with `TOOL_PREFIX`."""
    started: bool = False
    """Whether the bus has started it."""

    @property
    def account(self) -> str:
        """By what its share is counted: its name; empty for who has none, or was started by the bus."""
        return "" if self.started else self.who

    def may_be(self, tool: str) -> bool:
        """Whether its token, if it has come by one, names a tool."""
        return any(Pattern(each).matches(TOOL_PREFIX + tool) for each in self.tools)

    def is_proved_by(self, shown: Credentials | None) -> bool:
        """Whether a certificate, or none, is what it has come with: the same name, though it may be renewed."""
        known = self.credentials
        if known is None or shown is None:
            return known is shown
        return shown.name == known.name and bool(shown.name or shown.serial == known.serial)


NOBODY: Final = Guest()
OURS: Final = Guest(started=True)
