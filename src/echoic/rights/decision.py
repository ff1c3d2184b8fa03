"""What became of the question whether somebody may do something, and why."""

import msgspec

from echoic.rights.right import Right

__all__ = ["Decision"]


class Decision(msgspec.Struct, frozen=True):
    """Whether somebody may do something with a channel."""

    who: str
    right: Right
    channel: str
    allowed: bool
    reason: str
    """The rule that decided, with its place, or that there is none."""
    explicit: bool = False
    """Whether a rule has decided; otherwise nobody has said anything, which is a no."""

    def __bool__(self) -> bool:
        return self.allowed

    def __str__(self) -> str:
        verdict = "may" if self.allowed else "may not"
        return f"{self.who} {verdict} {self.right} `{self.channel}`: {self.reason}"
