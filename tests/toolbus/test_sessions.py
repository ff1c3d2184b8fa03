"""Sessions: whatever a connection loses, everything is heard once and in order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import MalformedFrameError
from echoic.toolbus.protocol import Message, MessageKind
from echoic.toolbus.references.words import decode_seen
from echoic.toolbus.sessions import SEEN_EVERY, Session


class Side:
    """One end of a conversation, which may be cut at any message."""

    def __init__(self) -> None:
        self.session = Session()
        self.wire: list[Message] = []
        self.heard: list[int] = []

    def say(self, number: int) -> None:
        message = Message(MessageKind.EVENT, number)
        self.session.say(message, 8)
        self.wire.append(message)

    def hear(self, message: Message) -> None:
        if message.kind is MessageKind.SEEN:
            self.session.seen(decode_seen(message))
            return
        self.heard.append(message.transaction)
        seen = self.session.hear(message)
        if seen is not None:
            self.wire.append(seen)


def deliver(source: Side, target: Side, count: int) -> None:
    """Let the first so many messages arrive."""
    for message in source.wire[:count]:
        target.hear(message)
    del source.wire[:count]


def reconnect(one: Side, other: Side) -> None:
    """Lose what is on the way both ways, and begin again."""
    one.wire, other.wire = (
        list(one.session.again(other.session.heard)),
        list(other.session.again(one.session.heard)),
    )


@given(
    st.lists(st.tuples(st.sampled_from(["say", "deliver", "break"]), st.booleans(), st.integers(1, 60)), max_size=60)
)
def test_everything_is_heard_once_and_in_order_wherever_a_connection_breaks(
    acts: list[tuple[str, bool, int]],
) -> None:
    tool, bus = Side(), Side()
    said = {id(tool): 0, id(bus): 0}
    for act, by_tool, count in acts:
        one, other = (tool, bus) if by_tool else (bus, tool)
        match act:
            case "say":
                for _ in range(count):
                    said[id(one)] += 1
                    one.say(said[id(one)])
            case "deliver":
                deliver(one, other, count)
            case _:
                reconnect(tool, bus)
    for _ in range(3):
        deliver(tool, bus, len(tool.wire))
        deliver(bus, tool, len(bus.wire))

    assert bus.heard == list(range(1, said[id(tool)] + 1))
    assert tool.heard == list(range(1, said[id(bus)] + 1))


def test_what_was_heard_is_not_kept() -> None:
    tool, bus = Side(), Side()
    for number in range(10 * SEEN_EVERY):
        tool.say(number)
        deliver(tool, bus, 1)
        deliver(bus, tool, 1)

    assert tool.session.again(bus.session.heard) == ()


def test_who_says_he_heard_what_was_never_said_is_told_so() -> None:
    session = Session()
    session.say(Message(MessageKind.EVENT, 1), 8)

    with pytest.raises(MalformedFrameError, match="has heard 2 messages, expected 0 to 1"):
        session.again(2)


def test_a_session_that_keeps_too_much_cannot_be_resumed() -> None:
    session = Session(kept_bytes_max=100)
    for number in range(10):
        session.say(Message(MessageKind.EVENT, number), 20)

    assert not session.resumable
    with pytest.raises(MalformedFrameError, match="not kept any more"):
        session.again(3)


def test_what_belongs_to_a_connection_is_not_counted() -> None:
    session = Session()
    session.say(Message(MessageKind.WELCOME, 0, (1,)), 8)

    assert session.again(0) == ()
    assert session.hear(Message(MessageKind.SEEN, 0, (1,))) is None
    assert session.heard == 0
