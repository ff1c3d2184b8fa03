"""Channel ids, the manager's book and the name server's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.channels import ChannelEntry, ChannelId, Directory, NameTable, SinkHub, check_channel_name
from echoic.channels.manager import Manager
from echoic.channels.messages import (
    Attach,
    Browse,
    Describe,
    Described,
    Done,
    Farewell,
    Join,
    Joined,
    Leave,
    Listing,
    Message,
    Refused,
    Register,
    Resolve,
    Resolved,
    Unregister,
)
from echoic.channels.requests import REQUEST_NS, Answer, Gone, Requests
from echoic.errors import AddressError, ChannelExistsError, ChannelNotFoundError, RefusedError

words = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,10}", fullmatch=True)
names = st.lists(words, min_size=1, max_size=4).map("/".join)


@given(st.sampled_from(["127.0.0.1:7401", "[::1]:7401", "host.example:1"]), names)
def test_an_id_is_read_as_it_was_written(address: str, name: str) -> None:
    id = ChannelId(address, name)
    assert ChannelId.parse(str(id)) == id


@given(st.text(max_size=60))
def test_a_text_is_an_id_or_refused_as_declared(text: str) -> None:
    try:
        assert str(ChannelId.parse(text)) == text
    except AddressError:
        pass


@pytest.mark.parametrize(
    "text",
    ["", "trades", "echoic://", "echoic://a:1", "echoic://a:1/", "echoic:///x", "echoic://a/x", "echoic://a:1/x/",
     "echoic://a:1//x", "echoic://a:1/x\n", "echoic://a b:1/x", "http://a:1/x", "echoic://a:123456/x"],
)  # fmt: skip
def test_what_is_not_an_id_is_refused(text: str) -> None:
    with pytest.raises(AddressError):
        ChannelId.parse(text)


@pytest.mark.parametrize("name", ["", "/x", "x/", "a//b", ".x", "-x", "é", "x y", "x\n", "x" * 201])
def test_what_cannot_be_a_name_is_refused(name: str) -> None:
    with pytest.raises(AddressError, match="channel name"):
        check_channel_name(name)


def test_a_channel_is_created_once() -> None:
    directory = Directory()
    directory.create("x", None)
    with pytest.raises(ChannelExistsError):
        directory.create("x", None)
    directory.remove("x")
    directory.create("x", None)


def test_a_channel_that_is_not_found_hints_at_one_like_it() -> None:
    directory = Directory()
    directory.create("trades", None)
    with pytest.raises(ChannelNotFoundError, match="did you mean `trades`"):
        directory.get("trade")


def test_the_book_says_whom_a_member_concerns() -> None:
    directory = Directory()
    directory.create("x", None)
    sink = SinkHub("s:1")
    assert directory.join_sink("x", sink) == []
    assert directory.join_source("x", "b:1") == [sink]
    assert directory.join_source("x", "a:1") == [sink]
    assert directory.join_sink("x", sink) == ["a:1", "b:1"]
    assert directory.entries("m:1") == [ChannelEntry("x", "echoic://m:1/x", "", 2, 1)]
    directory.forget_hub("b:1")
    directory.leave_source("x", "nobody:1")
    assert directory.leave_sink("x", "s:1") == (["a:1"], "")
    assert directory.entries("m:1") == [ChannelEntry("x", "echoic://m:1/x", "", 1, 0)]


def test_a_name_belongs_to_the_first_who_lives() -> None:
    table = NameTable()
    table.register("x", "echoic://a:1/x", set())
    table.register("x", "echoic://a:1/x", {"a:1"})
    with pytest.raises(ChannelExistsError):
        table.register("x", "echoic://b:1/x", {"a:1"})
    table.register("x", "echoic://b:1/x", set())
    assert table.resolve("x") == "echoic://b:1/x"
    table.unregister("x", "echoic://a:1/x")
    assert table.resolve("x") == "echoic://b:1/x"
    table.forget_hub("b:1")
    with pytest.raises(ChannelNotFoundError):
        table.resolve("x")


@pytest.mark.parametrize(("name", "id"), [("x", "echoic://a:1/y"), ("x y", "echoic://a:1/x y"), ("x", "x")])
def test_a_name_that_does_not_fit_its_id_is_refused(name: str, id: str) -> None:
    with pytest.raises(AddressError):
        NameTable().register(name, id, set())


def test_a_manager_does_what_is_asked() -> None:
    manager, nobody = Manager("m:1"), set[str]()
    manager.directory.create("x", None)
    sink = SinkHub("s:1")
    assert manager.handle(Join("x", "source", SinkHub("a:1")), nobody) == Joined([])
    manager.directory.join_sink("x", sink)
    assert manager.handle(Describe("x"), nobody) == Described("x", b"", ["a:1"], [sink])
    assert manager.handle(Leave("x", "source", "a:1"), nobody) == Done()
    assert manager.handle(Register("y", "echoic://b:1/y"), nobody) == Done()
    assert manager.handle(Resolve("y"), nobody) == Resolved("echoic://b:1/y")
    listing = manager.handle(Browse(), nobody)
    assert isinstance(listing, Listing)
    assert [entry.name for entry in listing.channels] == ["x", "y"]
    assert manager.handle(Unregister("y", "echoic://b:1/y"), nobody) == Done()
    with pytest.raises(RefusedError, match="Farewell is not a request"):
        manager.handle(Farewell(), nobody)


@pytest.mark.parametrize(
    ("reply", "answer", "left"),
    [
        (Done(), Joined([]), ["a:1"]),
        (Refused("ChannelNotFoundError", "not open"), Joined([]), []),
        (Refused("UnreachableError", "silence"), Refused, ["a:1"]),
    ],
)
def test_a_sink_is_admitted_when_every_source_is_told(reply: Message, answer: object, left: list[str]) -> None:
    manager, answers, asked = Manager("m:1"), list[Message](), list[tuple[str, Message]]()
    manager.directory.create("x", None)
    manager.directory.join_source("x", "a:1")

    def ask(address: str, message: Message, then: Answer) -> None:
        asked.append((address, message))
        then(reply)

    manager.admit(Join("x", "sink", SinkHub("s:1")), ask, answers.append)
    assert asked == [("a:1", Attach("echoic://m:1/x", SinkHub("s:1")))]
    assert answers == [answer] if isinstance(answer, Joined) else isinstance(answers[0], Refused)
    assert sorted(manager.directory.get("x").sources) == left


def test_registrations_are_repeated_when_a_name_server_may_have_forgotten_them() -> None:
    manager = Manager("m:1")
    message = manager.registration("n:1", "x", "echoic://m:1/x")
    assert list(manager.unregistered()) == [("n:1", message)]
    manager.registered("n:1", message)
    assert list(manager.unregistered()) == []
    manager.register_again(lambda address: address == "other:1")
    assert list(manager.unregistered()) == []
    manager.register_again(lambda address: address == "n:1")
    assert list(manager.unregistered()) == [("n:1", message)]
    assert manager.unregister("x") == [("n:1", Unregister("x", "echoic://m:1/x"))]
    assert list(manager.unregistered()) == []


def test_a_request_is_answered_once_by_whom_it_was_put_to_or_refused() -> None:
    requests, answers = Requests(), list[Message]()
    first, second, third = (requests.add("h", 0, answers.append) for _ in range(3))
    requests.answered("spy", first, Done())
    assert not answers
    requests.answered("h", first, Done())
    requests.answered("h", first, Done())
    assert answers == [Done()]
    requests.overdue(REQUEST_NS - 1)
    assert len(requests) == 2
    requests.gone("h", "it crashed")
    requests.overdue(REQUEST_NS)
    requests.answered("h", second, Done())
    requests.answered("h", third, Done())
    assert answers[1:] == [Gone("UnreachableError", "it crashed")] * 2
    requests.add("h", 0, answers.append)
    requests.overdue(REQUEST_NS)
    assert isinstance(answers[-1], Refused)
    assert not len(requests)


def test_who_stood_still_gives_nobody_up_for_the_time_that_it_did_not_see_pass() -> None:
    requests, answers = Requests(), list[Message]()
    requests.overdue(0)
    requests.add("h", 0, answers.append)  # asked when it goes on, before it has looked at the time
    requests.overdue(2 * REQUEST_NS)
    assert not answers
    for step in range(1, 10 * REQUEST_NS // 10**9 + 1):
        requests.overdue(2 * REQUEST_NS + step * 10**8)
    assert len(answers) == 1
