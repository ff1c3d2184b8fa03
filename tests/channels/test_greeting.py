"""Greetings: both sides agree whatever each remembers, and nothing a stranger says does harm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.channels import Greeting, Session
from echoic.channels.greeting import COUNT, count_frame
from echoic.errors import EchoicError, MalformedFrameError
from echoic.wire import Frame, FrameKind, FrameReader, Hello, encode_frame, encode_hello

FRESH = 999


def a_greeting(name: str, session: int = 0, received: int = 0, *, dialled: bool) -> Greeting:
    hello = Hello(hub=name, address=f"{name}:1")
    return Greeting(hello, lambda hub: (session, received), dialled=dialled, fresh=FRESH)


def greet(dialler: Greeting, acceptor: Greeting) -> None:
    """Carry frames between the two until both are done."""
    wire, readers, sides = [dialler.opening], (FrameReader(), FrameReader()), (acceptor, dialler)
    for turn in range(6):
        data, wire = wire, []
        for piece in data:
            wire += [sides[turn % 2].receive(frame) for frame in readers[turn % 2].receive(piece)]
    assert dialler.done
    assert acceptor.done


known = st.tuples(st.integers(0, 3), st.integers(0, 100)).map(lambda pair: pair if pair[0] else (0, 0))


@given(known, known)
def test_both_sides_agree_on_the_session_whatever_each_remembers(mine: tuple[int, int], other: tuple[int, int]) -> None:
    dialler, acceptor = a_greeting("d", *mine, dialled=True), a_greeting("a", *other, dialled=False)
    greet(dialler, acceptor)
    same = mine[0] == other[0] != 0
    assert dialler.resumed == acceptor.resumed == same
    assert dialler.session == acceptor.session == (mine[0] if same else FRESH)
    assert (dialler.received, acceptor.received) == ((mine[1], other[1]) if same else (0, 0))
    assert (dialler.received_by_peer, acceptor.received_by_peer) == (acceptor.received, dialler.received)
    assert dialler.peer is not None
    assert acceptor.peer is not None
    assert (dialler.peer.hub, acceptor.peer.hub) == ("a", "d")


def frame_of(data: bytes) -> Frame:
    (frame,) = FrameReader().receive(data)
    return frame


def hello_frame(hub: str = "d") -> Frame:
    return frame_of(b"".join(encode_frame(FrameKind.HELLO, [encode_hello(Hello(hub=hub))])))


def test_a_session_that_was_given_up_during_the_greeting_is_not_gone_on_with() -> None:
    memory = [(5, 10)]
    acceptor = Greeting(Hello(hub="a"), lambda hub: memory[-1], dialled=False, fresh=FRESH)
    acceptor.receive(hello_frame())
    memory.append((0, 0))
    with pytest.raises(MalformedFrameError, match="given up"):
        acceptor.receive(frame_of(count_frame(5, 3)))


def test_a_session_begun_on_another_connection_during_the_greeting_is_not_mistaken_for_this_one() -> None:
    memory = [(0, 0)]
    acceptor = Greeting(Hello(hub="a"), lambda hub: memory[-1], dialled=False, fresh=FRESH)
    acceptor.receive(hello_frame())
    memory.append((6, 2))
    with pytest.raises(MalformedFrameError):
        acceptor.receive(frame_of(count_frame(6, 3)))


def test_what_was_told_does_not_hold_when_more_has_come_since() -> None:
    session = Session(5)
    acceptor = Greeting(Hello(hub="a"), lambda hub: (5, session.received), dialled=False, fresh=FRESH)
    acceptor.receive(hello_frame())
    acceptor.receive(frame_of(count_frame(5, 0)))
    assert acceptor.holds(session)
    session.receive(1)
    assert not acceptor.holds(session)
    assert acceptor.holds(Session(6)), "of another session nothing was told"


def test_a_dialler_that_names_no_session_is_refused() -> None:
    acceptor = a_greeting("a", dialled=False)
    acceptor.receive(hello_frame())
    with pytest.raises(MalformedFrameError, match="no session"):
        acceptor.receive(frame_of(count_frame(0, 0)))


def test_a_hub_without_a_name_is_refused() -> None:
    with pytest.raises(MalformedFrameError, match="which hub"):
        a_greeting("a", dialled=False).receive(hello_frame(""))


def test_an_acceptor_says_nothing_to_whoever_says_nothing() -> None:
    assert a_greeting("a", dialled=False).opening == b""


def test_nothing_is_expected_after_the_greeting() -> None:
    dialler, acceptor = a_greeting("d", dialled=True), a_greeting("a", dialled=False)
    greet(dialler, acceptor)
    for side in (dialler, acceptor):
        with pytest.raises(MalformedFrameError, match="expected a ACKS"):
            side.receive(frame_of(count_frame(1, 1)))


payloads = st.one_of(
    st.binary(max_size=40),
    st.builds(lambda hub: encode_hello(Hello(hub=hub)), st.sampled_from(["d", "", "é"])),
    st.builds(COUNT.pack, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)),
)


@given(st.booleans(), known, st.lists(st.tuples(st.sampled_from(FrameKind), payloads), max_size=5))
def test_hostile_frames_are_refused_as_declared(
    dialled: bool, mine: tuple[int, int], frames: list[tuple[FrameKind, bytes]]
) -> None:
    side = a_greeting("x", *mine, dialled=dialled)
    try:
        for kind, payload in frames:
            side.receive(Frame(kind, 0, memoryview(payload)))
    except EchoicError:
        assert not side.done or len(frames) > 2
    else:
        assert not side.done or (side.session and side.peer is not None)
