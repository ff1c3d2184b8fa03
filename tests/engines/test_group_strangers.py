"""Strangers at the door of a group: what does not belong there is refused, and no member is harmed."""

import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from msgspec import msgpack, structs

from echoic.groups.messages import (
    Append,
    Appended,
    Ask,
    Bye,
    Forward,
    Install,
    Introduction,
    Knock,
    Message,
    PreVote,
    PreVoted,
    Resign,
    Turned,
    Vote,
    Voted,
    encode_message,
)
from echoic.groups.writes import Entry
from echoic.wire import FrameKind, Hello, encode_frame, encode_hello
from tests.engines.trios import HubTrio

pytestmark = pytest.mark.system
LATE = 2**62


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubTrio]:
    made = HubTrio("embedded", tmp_path_factory.mktemp("strangers"), durability="disk")
    made.join()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def unharmed(trio: HubTrio) -> Iterator[None]:
    """Members go on as if nothing had happened, in the same view and with the same leader."""
    trio.ask_all("submit", count=5, text="before")
    trio.settle()
    leader, before = trio.leader(), trio.ask("n1", "statistics")
    threads = set(threading.enumerate())
    yield
    trio.ask_all("submit", count=5, text="after")
    trio.settle()
    found = trio.ask("n1", "statistics")
    assert found["view"] == before["view"]
    assert found["engine"]["term"] == before["engine"]["term"]
    assert trio.leader() == leader
    deadline = time.monotonic() + 60
    while set(threading.enumerate()) - threads and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not set(threading.enumerate()) - threads, "nobody waits for the stranger any more"


def frame(kind: FrameKind, payload: bytes) -> bytes:
    return b"".join(encode_frame(kind, [payload]))


HELLO = frame(FrameKind.HELLO, encode_hello(Hello(features=("group",), name="stranger")))


def introduce(group: str, name: str = "n2", home: int = 7) -> bytes:
    return HELLO + frame(FrameKind.GROUP, msgpack.encode(Introduction(group, name, home, "127.0.0.1:9")))


def say(trio: HubTrio, data: bytes, *, to: str = "n1", refused: bool = True) -> None:
    """Send bytes to a member's hub; whoever is refused is hung up on."""
    host, _, port = trio.peers[to].rpartition(":")
    with socket.create_connection((host, int(port)), timeout=8) as connection, suppress(ConnectionError):
        connection.sendall(data)
        time.sleep(0.02)
        if not refused:
            return
        connection.sendall(bytes(16))  # what is wrong with the last frame shows when more comes
        while connection.recv(65_536):
            pass


def test_garbage_behind_a_hello_is_refused(trio: HubTrio) -> None:
    chance = random.Random(11)
    for size in (1, 24, 4096):
        say(trio, HELLO + chance.randbytes(size) + bytes(64))


def test_a_group_that_is_not_joined_here_is_refused(trio: HubTrio) -> None:
    for name in ("", "nobody's", "x" * 10_000, trio.group + "\0"):
        say(trio, introduce(name))


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"\x93\x01\x02\x03", b"\x91" * 1000, msgpack.encode(["g", "n1"])])
def test_an_introduction_that_is_none_is_refused(trio: HubTrio, payload: bytes) -> None:
    say(trio, HELLO + frame(FrameKind.GROUP, payload))


def test_a_frame_larger_than_any_may_be_is_refused_before_it_comes(trio: HubTrio) -> None:
    header = bytearray(frame(FrameKind.GROUP, b"x"))
    struct.pack_into("<I", header, 0, 0x7FFFFFFF)  # how many bytes follow
    say(trio, introduce(trio.group) + bytes(header))
    say(trio, HELLO + bytes(header))


def test_messages_that_are_none_are_refused(trio: HubTrio) -> None:
    chance = random.Random(5)
    for _ in range(20):
        say(trio, introduce(trio.group) + frame(FrameKind.GROUP, chance.randbytes(chance.randrange(1, 200))))


def word(kind: type[Message], **given: object) -> Message:
    """Return a message of a kind, with nothing in the fields that are not given."""
    empty = {bool: False, bytes: b"", str: ""}
    fields = structs.fields(kind)
    return kind(**{field.name: given.get(field.name, empty.get(field.type, 0)) for field in fields})


def words_of(group: int, term: int = LATE) -> list[Message]:
    """What somebody may say who knows the group, but is not the member it claims to be."""
    bad = Entry(LATE, 2, "", 0, 0, b"not a roster")
    view = Entry(LATE, 0, "", 0, 0, b"\xc1 not a view")
    late = {"group": group, "term": term, "last": LATE, "last_term": LATE, "commit": LATE, "index": LATE}
    body = {"body": b"not a body", "summary": b"nor a summary", "last": True}
    home = {"name": "n2", "home": 9, "address": "127.0.0.1:1", "peers": ("n1", "n2", "n3")}
    return [
        word(PreVote, **late),
        word(PreVoted, **late),
        word(Vote, **late),
        word(Voted, **late, granted=True),
        word(Append, **late, entries=[bad]),
        word(Append, **late, entries=[view]),
        word(Append, group=group, term=1, entries=[bad]),
        word(Appended, **late, agreed=True),
        word(Appended, group=group, term=1, agreed=True, index=LATE),
        word(Forward, group=group, life=1, first=1, payloads=[b"not a pack", b""]),
        word(Knock, group=group, **home),
        word(Turned, reason="go away", final=True, home=7),
        word(Install, **{**late, **body}),
        word(Resign, group=group, term=term),
        word(Ask, group=group, name="n3"),
        word(Bye, group=group, term=term),
    ]


def say_everywhere(trio: HubTrio, words: list[Message]) -> None:
    said = b"".join(frame(FrameKind.GROUP, encode_message(each)) for each in words)
    for to in ("n1", "n2", "n3"):
        for name in {"n1", "n3", "n9"} - {to}:
            say(trio, introduce(trio.group, name) + said, to=to, refused=False)


@pytest.mark.parametrize("index", range(len(words_of(0))))
def test_what_strangers_say_under_members_names_does_not_count(trio: HubTrio, index: int) -> None:
    """They do not know the number of the group, which is said among members only."""
    term = trio.ask("n1", "statistics")["engine"]["term"]
    terms = (term, term + 1, LATE // 2)
    say_everywhere(trio, [words_of(number, each)[index] for each in terms for number in (0, 1)])


@pytest.mark.parametrize("index", range(len(words_of(0))))
def test_what_comes_late_from_a_members_former_home_does_not_count(trio: HubTrio, index: int) -> None:
    engine = trio.ask("n1", "statistics")["engine"]
    say_everywhere(trio, [words_of(engine["group"], engine["term"])[index]])


def test_strangers_that_say_nothing_keep_nobody_out(trio: HubTrio) -> None:
    host, _, port = trio.peers["n1"].rpartition(":")
    quiet = [socket.create_connection((host, int(port))) for _ in range(20)]
    try:
        trio.ask_all("submit", count=5, text="meanwhile")
        trio.settle()
    finally:
        for connection in quiet:
            connection.close()
