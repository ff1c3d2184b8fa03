"""The six rights. Each is about channels whose names match a pattern.

    publish     have sources: submit events
    subscribe   have sinks: receive events, replay and resume what is recorded of them
    derive      have E-Code run inside the sources
    steer       change parameters of derived channels, use the controls that sources offer
    modulate    have Python run inside the sources of those who list the key that has signed it
    admin       manage the channel: create it, enter its name, keep its book, tell its sources whom to send to

None contains another. Code is shipped to learn something, so `derive` and `modulate` are of use only to who may
subscribe.
"""

from typing import Final, Literal, TypeAlias, get_args

from echoic.errors import LocalError

__all__ = ["RIGHTS", "Right", "check_right"]

Right: TypeAlias = Literal["publish", "subscribe", "derive", "steer", "modulate", "admin"]
RIGHTS: Final[tuple[Right, ...]] = get_args(Right)


def check_right(text: str) -> Right:
    """Return the right that a text names.

    Raises:
        LocalError: There is none of this name.
    """
    for right in RIGHTS:
        if text == right:
            return right
    raise LocalError(f"expected a right, one of {', '.join(RIGHTS)}, got {text[:40]!r}")
