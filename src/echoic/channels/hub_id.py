"""What a hub calls itself: a random number, and for one with a certificate a mark that belongs to its name.

    3f9c0a7711d2e845                whoever
    3f9c0a7711d2e845-91c07e55d0a2   a hub of `desk`, and of nobody else

Ids are no secret: whoever has met a hub knows its own, and who takes part in a channel is told others'. Without a mark,
somebody could call himself what a hub is called that has yet to come, which would be turned away when it does.
"""

import hashlib
from typing import Final

from echoic.errors import MalformedFrameError

__all__ = ["check_hub_id", "hub_id"]

MARK_BYTES: Final = 6


def hub_id(random: str, who: str) -> str:
    """Return the id of a hub; `who` is the name in its certificate, "" if it has none."""
    return f"{random}-{_mark(random, who)}" if who else random


def check_hub_id(id: str, who: str) -> None:
    """Refuse an id that belongs to another name; who has shown none cannot be asked.

    Raises:
        MalformedFrameError: It does.
    """
    random, dash, mark = id.partition("-")
    if who and dash and len(mark) == 2 * MARK_BYTES and mark != _mark(random, who):
        raise MalformedFrameError(f"`{who}` calls its hub {id[:80]}, which is an id of somebody else")


def _mark(random: str, who: str) -> str:
    return hashlib.blake2b(f"{random}-{who}".encode(), digest_size=MARK_BYTES).hexdigest()
