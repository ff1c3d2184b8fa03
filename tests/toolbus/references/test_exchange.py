"""Members that fetch values from each other, in exchanges of their own, so that they are processes to each other."""

import gc
import os
import socket
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from echoic.links import Connection, Identity, dial
from echoic.terms import Term, TermList, Value
from echoic.toolbus.protocol import Message, MessageKind, encode_message
from echoic.toolbus.references import exchange
from echoic.toolbus.references.exchange import Exchange
from echoic.toolbus.references.keeping import content_of
from echoic.toolbus.references.member import Member
from echoic.toolbus.references.routes import Route
from echoic.toolbus.references.words import Chunk, Get, Put, encode_chunk, encode_get
from echoic.values import ValueStore
from tests.hub.parties import eventually
from tests.toolbus.references.post import EPOCH, Post, puts_of, told

SECONDS = 60
BLOB = bytes(range(256)) * 4 * 1024
TEXT = "häuser und straßen " * 50_000


@pytest.fixture
def post() -> Iterator[Post]:
    office = Post()
    yield office
    office.close()


@pytest.fixture
def pair(post: Post) -> tuple[Member, Member]:
    return post.join(1, Exchange()), post.join(2, Exchange())


def fetched(asker: Member, owner: Member, *values: Value) -> list[Value]:
    return [asker.fetch(put).result(SECONDS) for put in puts_of(owner, asker.number, *values)]


@pytest.mark.parametrize(
    "value",
    [
        BLOB,
        TEXT,
        "x" * 3_000_000,
        BLOB * 6,
        TermList(*range(30_000)),
        Term("f", *range(30_000)),
        Term("f", *range(30_000), quoted=True),
    ],
)
def test_a_value_is_fetched_from_its_owner(pair: tuple[Member, Member], value: Value) -> None:
    owner, asker = pair
    assert fetched(asker, owner, value) == [value]
    assert asker.statistics().direct == owner.statistics().served == 1
    assert asker.statistics().fetched_bytes == owner.statistics().served_bytes > 0


def test_with_a_threshold_of_nothing_the_smallest_string_is_fetched(post: Post) -> None:
    owner, asker = post.join(1, Exchange(), threshold=0), post.join(2, Exchange())
    assert fetched(asker, owner, Term("f", "", b"", "a")) == ["", b"", "a"]


def test_only_the_part_that_is_asked_for_travels(pair: tuple[Member, Member]) -> None:
    owner, asker = pair
    first, second = puts_of(owner, 2, Term("pair", BLOB, b"z" * 5000))
    assert asker.fetch(second).result(SECONDS) == b"z" * 5000
    assert owner.statistics().served_bytes == 5000
    assert first.variable == second.variable


def test_a_value_of_the_same_process_is_the_very_object(post: Post) -> None:
    exchange = Exchange()
    owner, asker = post.join(1, exchange), post.join(2, exchange)
    assert fetched(asker, owner, Term("f", BLOB))[0] is BLOB
    assert asker.statistics().own == 1
    assert owner.statistics().served == asker.statistics().fetched_bytes == 0


def test_a_second_tool_of_a_process_fetches_nothing_while_the_first_has_the_value(post: Post) -> None:
    owner, exchange = post.join(1, Exchange()), Exchange()
    first, second = post.join(2, exchange), post.join(3, exchange)
    (put,) = puts_of(owner, 2, BLOB)
    variable = first.fetch_variable(put).result(SECONDS)
    assert second.fetch(put).result(SECONDS) is variable.value
    assert second.statistics().pool_hits == owner.statistics().served == 1
    del variable
    gc.collect()
    assert first.fetch(put).result(SECONDS) == BLOB
    assert owner.statistics().served == 2


def test_a_soft_pool_keeps_values_that_nobody_has(post: Post) -> None:
    owner, asker = post.join(1, Exchange()), post.join(2, Exchange(pool_bytes=10_000_000))
    (put,) = puts_of(owner, 2, BLOB)
    for _ in range(3):
        assert asker.fetch(put).result(SECONDS) == BLOB
    assert owner.statistics().served == 1


def test_many_fetches_share_one_link_and_each_gets_its_own_value(pair: tuple[Member, Member]) -> None:
    owner, asker = pair
    values = [bytes([number]) * (100_000 * number) for number in range(1, 30)]
    puts = puts_of(owner, 2, *values)
    assert [coming.result(SECONDS) for coming in [asker.fetch(put) for put in puts]] == values
    assert asker.statistics().direct == len(values)


def test_an_owner_that_cannot_be_reached_dials_who_asks(post: Post) -> None:
    owner, asker = post.join(1, Exchange(), listen=""), post.join(2, Exchange())
    assert fetched(asker, owner, BLOB * 3, TEXT) == [BLOB * 3, TEXT]
    assert asker.statistics().relayed == 2
    assert post.said == {"GET": 2}


def test_between_two_that_cannot_be_reached_a_value_is_streamed_through_the_bus(post: Post) -> None:
    owner, asker = post.join(1, Exchange(), listen=""), post.join(2, Exchange(), listen="")
    assert fetched(asker, owner, BLOB * 5, TEXT) == [BLOB * 5, TEXT]
    assert asker.statistics().streamed == 2
    assert post.said["CHUNK"] >= 20
    assert post.outstanding_max <= 4


def test_a_way_that_failed_is_not_tried_again(post: Post) -> None:
    owner, asker = post.join(1, Exchange()), post.join(2, Exchange())
    puts = [replace(put, endpoints=(nobody(),)) for put in puts_of(owner, 2, BLOB, TEXT)]
    assert [asker.fetch(put).result(SECONDS) for put in puts] == [BLOB, TEXT]
    assert asker.statistics().failed_dials == 1
    assert asker.statistics().relayed == 2


def test_one_who_cannot_be_dialled_back_gets_the_value_through_the_bus(post: Post) -> None:
    owner, asker = post.join(1, Exchange(), listen=""), post.join(2, Exchange())
    post.misdirected = nobody()
    assert fetched(asker, owner, BLOB) == [BLOB]
    assert owner.statistics().failed_dials == 1
    assert asker.statistics().streamed == 1


ELSEWHERE = "192.0.2.1:7"  # nobody's: for documents


def test_in_the_clear_nobody_connects_to_another_machine_whatever_the_owner_says(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialled = _noted(monkeypatch)
    owner, asker = post.join(1, Exchange()), post.join(2, Exchange())
    puts = [replace(put, endpoints=(ELSEWHERE, "nonsense", *put.endpoints)) for put in puts_of(owner, 2, BLOB)]
    assert [asker.fetch(put).result(SECONDS) for put in puts] == [BLOB]
    assert dialled == list(owner.endpoints)
    assert asker.statistics().direct == 1


def test_in_the_clear_nobody_dials_back_to_another_machine(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    dialled = _noted(monkeypatch)
    owner, asker = post.join(1, Exchange(), listen=""), post.join(2, Exchange())
    post.misdirected = ELSEWHERE
    assert fetched(asker, owner, BLOB) == [BLOB]
    assert not dialled
    assert asker.statistics().streamed == 1


def _noted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return where is dialled from here on."""
    dialled: list[str] = []
    real = exchange.dial

    def dial(address: str, identity: Identity | None, *, timeout: float) -> Connection:
        dialled.append(address)
        return real(address, identity, timeout=timeout)

    monkeypatch.setattr(exchange, "dial", dial)
    return dialled


def test_links_are_encrypted_for_who_has_an_identity(post: Post, identity: Identity) -> None:
    owner, asker = post.join(1, Exchange(), identity=identity), post.join(2, Exchange(), identity=identity)
    assert fetched(asker, owner, BLOB * 2) == [BLOB * 2]
    assert asker.statistics().direct == 1


def test_without_the_right_token_nothing_is_had(post: Post) -> None:
    owner, asker = post.join(1, Exchange()), post.join(2, Exchange())
    (put,) = puts_of(owner, 2, BLOB)
    lost = asker.fetch(replace(put, token=b"?" * 32)).result(SECONDS)
    assert lost == Term("lost-value", "the token is not that of the value")
    for_another = puts_of(owner, 3, BLOB)[0]
    assert asker.fetch(for_another).result(SECONDS).name == "lost-value"
    assert owner.statistics().served == 0
    assert asker.statistics().lost == 2


def test_a_value_that_was_released_is_lost(pair: tuple[Member, Member]) -> None:
    owner, asker = pair
    (put,) = puts_of(owner, 2, BLOB)
    owner.release([put.variable, put.variable, 99])
    assert "does not keep the variable" in str(asker.fetch(put).result(SECONDS))
    assert owner.statistics().kept == 0
    assert owner.exchange.store.statistics().values == 0


def test_a_value_whose_owner_is_gone_is_lost(post: Post, pair: tuple[Member, Member]) -> None:
    owner, asker = pair
    put, other = puts_of(owner, 2, BLOB, TEXT)
    assert asker.fetch(put).result(SECONDS) == BLOB
    post.leave(1)
    assert asker.fetch(other).result(SECONDS) == Term("lost-value", "tool 1 is gone")


def test_what_is_being_fetched_is_lost_when_the_bus_says_that_its_owner_is_gone(post: Post) -> None:
    asker, owner = post.join(2, Exchange()), post.join(1, Exchange())
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"127.0.0.1:{silent.getsockname()[1]}"
        (put,) = puts_of(owner, 2, BLOB)
        coming = asker.fetch(replace(put, endpoints=(endpoint,)))
        asker.lost(1, "it crashed")
        assert coming.result(SECONDS) == Term("lost-value", "it crashed")


def test_a_member_that_closes_leaves_others_of_its_process_their_fetches(post: Post) -> None:
    owner, exchange = post.join(1, Exchange()), Exchange()
    first, second = post.join(2, exchange), post.join(3, exchange)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"127.0.0.1:{silent.getsockname()[1]}"
        (put,) = puts_of(owner, 2, BLOB)
        lost = first.fetch(replace(put, endpoints=(endpoint,)))
        shared = second.fetch(told(put, 3))
        post.leave(2)
        assert "closed" in str(lost.result(SECONDS))
        assert shared.result(SECONDS) == BLOB


def test_content_is_kept_as_it_came_and_served_on(post: Post) -> None:
    owner, asker = post.join(0, Exchange()), post.join(2, Exchange())
    values = [TEXT, TermList(*range(30_000))]
    for value in values:
        content = content_of(value)
        with owner.receive(content.size) as incoming:
            for piece in content.pieces:
                incoming.write(piece)
            variable = owner.adopt(incoming.done(), content.kind)
        head = Put(0, variable, 0, owner.endpoints, (), content.kind, "", 0, content.size, epoch=EPOCH)
        assert asker.fetch(told(head, 2)).result(SECONDS) == value
        assert owner.value(variable, ()) == value


def test_what_there_is_no_room_for_goes_with_its_put(post: Post) -> None:
    owner = post.join(1, Exchange(store=ValueStore(encode=list, budget_bytes=1000, file_bytes_max=1000)))
    said = list(owner.outgoing(Message(MessageKind.VALUE, 1, (BLOB,))))
    assert b"".join(message.body for message in said) == BLOB
    assert owner.statistics().kept == 0


def test_strangers_are_told_nothing(pair: tuple[Member, Member]) -> None:
    owner, _ = pair
    (put,) = puts_of(owner, 2, BLOB)
    get = Get(5, put.variable, 1, put.path, (), b"guessed", Route.DIRECT, 2, put.epoch)
    for message in (encode_get(get), encode_chunk(Chunk(5, b"x", True)), Message(MessageKind.EVAL, 1, ("x",))):
        stranger = dial(put.endpoints[0], polled=True)
        stranger.send(encode_message(message))
        assert received(stranger) == b""
        stranger.close()
    assert owner.statistics().served == 0


def test_one_who_gives_no_credit_stops_nobody(pair: tuple[Member, Member]) -> None:
    owner, asker = pair
    (put,) = puts_of(owner, 2, BLOB * 40)
    stalled = dial(put.endpoints[0], polled=True)
    get = Get(5, put.variable, 1, put.path, (), put.token, Route.DIRECT, 2, put.epoch)
    stalled.send(encode_message(encode_get(get)))
    assert stalled.readable(SECONDS * 1000)
    assert asker.fetch(put).result(SECONDS) == BLOB * 40
    assert owner.statistics().served == 1
    stalled.close()


def test_nothing_is_left_of_members_that_have_closed() -> None:
    def use() -> None:
        office = Post()
        owner, asker = office.join(1, Exchange()), office.join(2, Exchange())
        assert fetched(asker, owner, BLOB) == [BLOB]
        office.close()

    use()
    wait_for_threads()
    before = descriptors()
    for _ in range(5):
        use()
    wait_for_threads()
    gc.collect()
    assert descriptors() <= before
    assert not list(Path(os.environ["XDG_RUNTIME_DIR"]).iterdir())


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def nobody() -> str:
    """Return an address where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def received(connection: Connection) -> bytes:
    """Return all that comes until the other side hangs up."""
    whole = b""
    try:
        while True:
            data = connection.receive()
            if data == b"":
                return whole
            whole += data or b""
    except OSError:
        return whole


def wait_for_threads() -> None:
    """Wait until the threads of links and doors have ended."""
    deadline = time.monotonic() + SECONDS
    names = ("echoic-exchange-read", "echoic-exchange-hear", "echoic-exchange-accept")
    while any(each.name in names for each in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_value_that_was_fetched_and_let_go_is_gone_without_a_collector(pair: tuple[Member, Member]) -> None:
    owner, asker = pair
    (put,) = puts_of(owner, asker.number, TermList(*(Term("part", number) for number in range(5000))))
    gc.collect()
    gc.disable()
    try:
        value = asker.fetch(put).result(SECONDS)
        assert isinstance(value, TermList)
        gone = weakref.ref(value)
        owner.release([put.variable])
        del value
        eventually(lambda: gone() is None, "nobody has it any more")
    finally:
        gc.enable()
