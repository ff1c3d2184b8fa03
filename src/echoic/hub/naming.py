"""Sources with names: after a crash they go on with the event after the last one that was recorded.

A source has a number of its own in all the world, drawn when it is opened; a process that is started again has another
source. A *named* source draws its number from its name instead, and asks the recorders of its channel how far they have
come with it. So a program whose events can be made again from its own data (a file, a counter, a database) goes on
without losing or repeating any:

    source = trades.source(name="feed-1")
    for trade in trades_from(source.position): source.submit(trade)
"""

import hashlib
from typing import TYPE_CHECKING

from echoic.channels import Ask, ChannelId, Describe, Described, Kept
from echoic.errors import EchoicError, LocalError, UnreachableError
from echoic.hub.moving import SourceState

if TYPE_CHECKING:
    from echoic.hub.switchboard import Switchboard

__all__ = ["named_source", "source_number"]


def source_number(channel: str, name: str) -> int:
    """Return the number of the source of a name."""
    digest = hashlib.blake2b(f"{channel}\0{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def named_source(switchboard: "Switchboard", id: ChannelId, name: str) -> SourceState:
    """Return where a source with a name goes on: after the last event that every recorder has.

    Raises:
        LocalError: A source of this name is open in this hub.
        UnreachableError: No recorder of the channel, or not every one, answers.
        EchoicError: The channel's manager does not know it.
    """
    source = source_number(id.name, name)
    with switchboard.lock:
        member = switchboard.core.members.get(str(id))
        if member is not None and source in member.sources:
            raise LocalError(f"a source `{name}` of `{id.name}` is open in this hub already")
    described = switchboard.ask(id.address, Describe(id.name), Described)
    recorders: dict[str, list[str]] = {}
    for sink in described.sinks:
        if sink.journal:  # a recorder that was killed may not be missed yet when its successor is there
            recorders.setdefault(sink.journal, []).append(sink.address)
    if not recorders:
        raise UnreachableError(
            f"no recorder of `{id.name}` is there, so where the source `{name}` goes on is not known: "
            "record the channel first"
        )
    positions = [_position(switchboard, id, source, addresses) for addresses in recorders.values()]
    return SourceState(str(id), source, min(positions))


def _position(switchboard: "Switchboard", id: ChannelId, source: int, addresses: list[str]) -> int:
    """Return how far a journal has a source; it may be recorded at any of some addresses."""
    problems: list[str] = []
    for address in reversed(addresses):
        try:
            return switchboard.ask(address, Ask(str(id), source), Kept).positions.get(source, 0)
        except EchoicError as error:
            problems.append(f"at {address}: {error}")
    raise UnreachableError(f"the recorder of `{id.name}` does not answer, {'; '.join(problems)}")
