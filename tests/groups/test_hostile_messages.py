"""Members that say whatever they like: a member refuses, ignores or obeys, and never fails in another way."""

import typing
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.errors import EchoicError
from echoic.groups import messages
from echoic.groups.messages import Append, Message, decode_message, encode_message
from echoic.groups.ordering import Ordering
from echoic.groups.roster import Roster, Seat, encode_roster
from echoic.groups.writes import Ballot, Entry, Image
from tests.groups.test_ordering import OPTIONS, Stage, founded

NUMBERS = st.one_of(
    st.integers(0, 20), st.sampled_from([-1, -(2**63), 2**31, 2**62, 2**63 - 1]), st.integers(-(2**63), 2**63 - 1)
)
NAMES = st.sampled_from(["n1", "n2", "n3", "n9", ""])
PAYLOADS = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([b"\x92\xa2n1\xa2n2", b"\x90", encode_roster(Roster((Seat("n1", 101, "", True),)))]),
)
ENTRIES = st.builds(Entry, NUMBERS, st.integers(-1, 4), NAMES, NUMBERS, NUMBERS, PAYLOADS)


def field_strategy(kind: object) -> st.SearchStrategy[object]:
    plain = {int: NUMBERS, messages.Number: NUMBERS, str: NAMES, bool: st.booleans(), bytes: PAYLOADS}
    if kind in plain:
        return plain[kind]  # type: ignore[index]
    return {
        list[Entry]: st.lists(ENTRIES, max_size=4),
        list[bytes]: st.lists(PAYLOADS, max_size=4),
        tuple[str, ...]: st.lists(NAMES, max_size=4).map(tuple),
    }[kind]  # type: ignore[index]


MESSAGES = st.one_of(
    *(
        st.builds(cls, **{field.name: field_strategy(field.type) for field in msgspec.structs.fields(cls)})
        for cls in typing.get_args(Message)
    )
)


def plausible(message: Message, group: int, term: int) -> Message:
    """Return a message as one of this group and of this term."""
    known = {"group": group, "term": term}
    return msgspec.structs.replace(message, **{name: known[name] for name in known if hasattr(message, name)})


def hear(member: Ordering, sender: str, home: int, message: Message, now_ns: int) -> None:
    try:
        member.receive(sender, home, decode_message(encode_message(message)), now_ns)
    except EchoicError:
        return


@settings(max_examples=400)
@given(st.lists(st.tuples(NAMES, st.sampled_from(["n1", "n2", "n3"]), MESSAGES, st.booleans()), max_size=12))
def test_a_group_lives_through_whatever_members_say(said: list[tuple[str, str, Message, bool]]) -> None:
    stage = founded("n1", "n2", "n3")
    group = stage.members["n1"].statistics().group
    stage.submit("n2", b"one", b"two")
    for sender, to, message, ours in said:
        told = plausible(message, group, stage.members[to].term) if ours else message
        hear(stage.members[to], sender, stage.homes.get(sender, 5), told, stage.now_ns)
        listen(stage)
        stage.members[to].tick(stage.now_ns + 30_000_000)
        listen(stage)


def test_a_leader_that_denies_the_beginning_of_the_log_is_given_an_answer_that_can_be_said() -> None:
    stage = founded("n1", "n2", "n3")
    member = stage.members["n2"]
    hear(member, "n3", stage.homes["n3"], Append(member.statistics().group, member.term + 1, 0, 1, [], 0), stage.now_ns)
    listen(stage)


@settings(max_examples=200)
@given(st.lists(st.tuples(NAMES, MESSAGES), max_size=8))
def test_a_member_without_a_group_lives_through_whatever_is_said(said: list[tuple[str, Message]]) -> None:
    member = Ordering(
        "n1", 1, {"n1": "", "n2": ""}, Image(1, Ballot(0, ""), None, ()), OPTIONS, Random(1), 0
    )  # fmt: skip
    for step, (sender, message) in enumerate(said):
        hear(member, sender, 7, message, step)
        member.tick(step * 10**8)
        member.flush(step * 10**8)


def listen(stage: Stage) -> None:
    for name in stage.names:
        for to, message in stage.spoken(name):
            assert decode_message(encode_message(message)) == message, "what a member says can be said"
            del to


@given(st.binary(max_size=300))
def test_bytes_are_a_message_or_refused(payload: bytes) -> None:
    try:
        message = decode_message(payload)
    except EchoicError:
        return
    assert decode_message(encode_message(message)) == message
