"""Handlers that raise, hang, submit, subscribe and close."""

import logging
import sys
import threading
import time
from typing import Any

import pytest

from echoic import Hub, event, int64
from echoic.errors import ClosedError, DeliveryError
from tests.hub.parties import Collector, StartHub, Tick, eventually


def fail(tick: Any) -> None:
    raise ValueError(f"no {tick.number} today")


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even its text can be had")


@event
class Picky:
    number: int64

    def __post_init__(self) -> None:
        if self.number == 13:
            raise ValueError("13 brings bad luck")


@pytest.mark.parametrize("where", ["here", "there"])
@pytest.mark.parametrize("options", [{}, {"thread": True}], ids=["in place", "thread"])
def test_a_handler_that_raises_is_named_and_the_others_go_on(
    start_hub: StartHub, where: str, options: dict[str, bool]
) -> None:
    here, there = start_hub(), start_hub(name="desk")
    created = here.create("ticks", Tick)
    before, after, local = Collector(), Collector(), Collector()
    opened = (here if where == "here" else there).open(created.id, Tick)
    opened.subscribe(before)
    sink = opened.subscribe(fail, **options)
    opened.subscribe(after)
    created.subscribe(local)
    source = created.source()
    for number in range(3):
        with pytest.raises(DeliveryError, match=rf"fail#\d+.*ValueError: no {number} today") as raised:
            source.submit_sync(Tick(1, number), timeout=30)
        assert len(raised.value.failures) == 1
    source.submit(Tick(1, 3))
    source.submit_batch([Tick(1, 4), Tick(1, 5)])
    for seen in (before, after, local):
        seen.has(6)
        assert seen.numbers == list(range(6))
    eventually(lambda: sink.statistics().failures >= 4, "failures are counted")


@pytest.mark.parametrize(
    "problem", [UnspeakableError(), ValueError("\udc80"), ValueError("x" * 100_000), SystemExit(1), StopIteration()]
)
@pytest.mark.parametrize("options", [{}, {"thread": True}], ids=["in place", "thread"])
def test_nothing_that_a_handler_raises_breaks_the_link(
    start_hub: StartHub, problem: BaseException, options: dict[str, bool]
) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    opened = there.open(created.id, Tick)
    seen = Collector()

    def raise_it(tick: Tick) -> None:
        raise problem

    sink = opened.subscribe(raise_it, **options)
    opened.subscribe(seen)
    source = created.source()
    with pytest.raises(DeliveryError, match=type(problem).__name__):
        source.submit_sync(Tick(1, 1), timeout=60)
    sink.close()
    source.submit_sync(Tick(1, 2), timeout=60)
    assert seen.numbers == [1, 2]


class Curious(logging.Handler):
    """A handler of the log that wants the text of every error."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is not None:
            str(record.exc_info[1])
        self.said = record.getMessage()


def test_an_error_without_a_text_is_logged_even_where_the_log_asks_for_it(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)

    def raise_it(tick: Tick) -> None:
        raise UnspeakableError

    there.open(created.id, Tick).subscribe(raise_it)
    curious = Curious()
    logging.getLogger("echoic.hub").addHandler(curious)
    try:
        with pytest.raises(DeliveryError, match="UnspeakableError"):
            created.source().submit_sync(Tick(1, 1), timeout=60)
    finally:
        logging.getLogger("echoic.hub").removeHandler(curious)
    assert curious.said.endswith("failed: UnspeakableError: its text cannot be had")


def test_a_class_that_refuses_its_values_fails_like_a_handler(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    seen, plain = Collector(), Collector()
    opened = there.open(created.id)
    opened.subscribe(seen, Picky)
    opened.subscribe(plain, Tick)
    source = created.source()
    for number in (12, 13, 14):
        try:
            source.submit_sync(Tick(1, number), timeout=60)
        except DeliveryError as error:
            assert number == 13, error  # noqa: PT017 - where classes are built without __init__, nothing is raised
    assert plain.numbers == [12, 13, 14]
    assert seen.numbers in ([12, 14], [12, 13, 14])


def test_a_report_of_gaps_that_raises_breaks_nothing(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    seen = Collector()
    seen.gate.clear()

    def complain(gap: object) -> None:
        seen.gaps.append(gap)
        raise ValueError("I did not want to know")

    there.open(created.id, Tick).subscribe(seen, slow="latest", on_gap=complain)
    source = created.source()
    for number in range(100):
        source.submit_batch([Tick(1, number)])
    eventually(lambda: seen.gaps, "something is missed")
    seen.gate.set()
    source.submit_sync(Tick(1, 100), timeout=60)
    assert seen.numbers[-1] == 100
    assert len(seen.events) + len(seen.missed) == 101


@pytest.mark.parametrize("where", ["here", "there"])
def test_a_handler_that_hangs_is_named_when_time_is_up(start_hub: StartHub, where: str) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    released = threading.Event()

    def hang(tick: Tick) -> None:
        released.wait(60)

    quick = Collector()
    other = start_hub()
    other.open(created.id, Tick).subscribe(quick)
    (here if where == "here" else there).open(created.id, Tick).subscribe(hang, thread=True)
    source = created.source()
    started = time.monotonic()
    with pytest.raises(DeliveryError, match=r"hang#\d+.*0.3 s"):
        source.submit_sync(Tick(1, 1), timeout=0.3)
    assert time.monotonic() - started < 30
    assert quick.numbers == [1]
    released.set()
    source.submit_sync(Tick(1, 2), timeout=30)
    assert quick.numbers == [1, 2]


def test_a_handler_that_hangs_in_the_reading_thread_holds_up_only_its_own_link(start_hub: StartHub) -> None:
    here, there, elsewhere = start_hub(), start_hub(), start_hub()
    created = here.create("ticks", Tick)
    released = threading.Event()
    there.open(created.id, Tick).subscribe(lambda tick: released.wait(60))
    quick = Collector()
    elsewhere.open(created.id, Tick).subscribe(quick)
    source = created.source()
    for number in range(1000):
        source.submit(Tick(1, number))
    quick.has(1000)
    with pytest.raises(DeliveryError, match="lambda#"):
        source.submit_sync(Tick(1, 1000), timeout=0.2)
    released.set()
    source.submit_sync(Tick(1, 1001), timeout=30)
    assert quick.numbers == list(range(1002))


def test_a_handler_may_submit_to_another_channel_and_back(start_hub: StartHub, any_link: str) -> None:
    here, there = start_hub(), start_hub()
    ping, pong = here.create("ping", Tick), there.create("pong", Tick)
    answers = there.open(pong.id).source()
    there.open(ping.id, Tick).subscribe(lambda tick: answers.submit(Tick(2, tick.number)))
    seen = Collector()
    here.open(pong.id, Tick).subscribe(seen)
    source = ping.source()
    for number in range(500):
        source.submit(Tick(1, number))
    seen.has(500)
    assert seen.numbers == list(range(500))


def test_a_handler_may_submit_to_the_channel_it_listens_to(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    opened = there.open(created.id, Tick)
    echo, seen = opened.source(), Collector()

    def count_down(tick: Tick) -> None:
        if tick.number:
            echo.submit(Tick(tick.producer, tick.number - 1))

    opened.subscribe(count_down)
    created.subscribe(seen)
    created.source().submit(Tick(1, 20))
    seen.has(21)
    assert seen.numbers == list(range(20, -1, -1))


def test_a_handler_that_waits_for_its_own_link_is_refused_and_not_stuck(start_hub: StartHub, any_link: str) -> None:
    here, there = start_hub(), start_hub()
    ping, pong = here.create("ping", Tick), here.create("pong", Tick)
    seen = Collector()
    pong.subscribe(seen)
    back = there.open(pong.id, Tick).source()
    there.open(ping.id, Tick).subscribe(back.submit_sync)
    source = ping.source()
    started = time.monotonic()
    with pytest.raises(DeliveryError, match="subscribe with thread=True"):
        source.submit_sync(Tick(1, 1), timeout=60)
    assert time.monotonic() - started < 40
    assert seen.numbers == []


def test_a_handler_in_its_own_thread_may_wait_for_the_link_it_was_called_by(start_hub: StartHub, any_link: str) -> None:
    here, there = start_hub(), start_hub()
    ping, pong = here.create("ping", Tick), here.create("pong", Tick)
    seen = Collector()
    pong.subscribe(seen)
    back = there.open(pong.id, Tick).source()
    there.open(ping.id, Tick).subscribe(lambda tick: back.submit_sync(tick, timeout=60), thread=True)
    source = ping.source()
    for number in range(20):
        source.submit_sync(Tick(1, number), timeout=30)
    assert seen.numbers == list(range(20))


def test_a_handler_in_the_sources_own_hub_that_submits_synchronously_is_not_stuck(start_hub: StartHub) -> None:
    channel = start_hub().create("ticks", Tick)
    source, seen = channel.source(), Collector()
    problems: list[Exception] = []

    def again(tick: Tick) -> None:
        seen(tick)
        if tick.number < 2:
            try:
                source.submit_sync(Tick(1, tick.number + 1), timeout=2)
            except DeliveryError as problem:
                problems.append(problem)

    channel.subscribe(again)
    started = time.monotonic()
    source.submit_sync(Tick(1, 0), timeout=60)
    assert time.monotonic() - started < 40
    assert seen.numbers == [0, 1, 2] or problems


@pytest.mark.parametrize("where", ["here", "there"])
@pytest.mark.parametrize("options", [{}, {"thread": True}], ids=["in place", "thread"])
def test_a_sink_may_be_closed_by_its_own_handler(start_hub: StartHub, where: str, options: dict[str, bool]) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    opened = (here if where == "here" else there).open(created.id, Tick)
    seen, others = Collector(), Collector()

    def once(tick: Tick) -> None:
        seen(tick)
        sink.close()

    sink = opened.subscribe(once, **options)
    opened.subscribe(others)
    source = created.source()
    for number in range(20):
        source.submit_sync(Tick(1, number), timeout=60)
    assert seen.numbers == [0]
    assert others.numbers == list(range(20))


def test_a_sink_that_another_sinks_handler_closes_keeps_nobody_waiting(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    opened = there.open(created.id, Tick)
    seen = Collector()
    victims: list[Any] = []
    opened.subscribe(lambda tick: [victim.close() for victim in victims])
    victims.append(opened.subscribe(seen, thread=True))
    created.source().submit_sync(Tick(1, 1), timeout=60)
    local = here.create("local", Tick)
    local.subscribe(lambda tick: [victim.close() for victim in victims])
    victims.append(local.subscribe(seen, thread=True))
    local.source().submit_sync(Tick(1, 1), timeout=60)
    assert seen.events == []


def test_after_close_a_handler_is_never_called_again(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    opened = there.open(created.id, Tick)
    stop = threading.Event()

    def publish() -> None:
        with created.source() as source:
            number = 0
            while not stop.is_set():
                number += 1
                source.submit(Tick(1, number))
                if number % 1000 == 0:
                    time.sleep(0.001)

    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        for turn in range(30):
            seen = Collector()
            sink = opened.subscribe(seen, thread=turn % 2 == 1)
            seen.has(1)
            sink.close()
            count = len(seen.events)
            time.sleep(0.002)
            assert len(seen.events) == count
            assert seen.numbers == list(range(seen.numbers[0], seen.numbers[0] + count))
    finally:
        stop.set()
        publisher.join()


def test_events_gathered_for_a_sink_that_has_left_are_not_sent_to_the_next_one(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    opened, source = there.open(created.id, Tick), created.source()
    member = created.endpoints.member
    first = opened.subscribe(Collector())
    source.submit(Tick(1, 1))
    source.submit(Tick(1, 2))  # at once after the other, so from here on events gather
    assert source.hold(spare=False)
    source.submit(Tick(1, 3))
    first.close()
    while member.fanout.targets:
        time.sleep(0.001)
    source.submit(Tick(1, 4))
    seen = Collector()
    opened.subscribe(seen)
    source.submit(Tick(1, 5))
    source.release(0)
    source.drain()
    assert seen.numbers == list(range(seen.numbers[0], 6))


def test_a_handler_may_subscribe_and_open(start_hub: StartHub) -> None:
    """In a thread of its own; the reading thread could not read the answer."""
    here, there = start_hub(), start_hub()
    invitations, party = here.create("invitations", Tick), here.create("party", Tick)
    seen = Collector()
    there.open(invitations.id, Tick).subscribe(lambda _: there.open(party.id, Tick).subscribe(seen), thread=True)
    invitations.source().submit_sync(Tick(1, 1), timeout=60)
    party.source().submit_sync(Tick(1, 2), timeout=60)
    assert seen.numbers == [2]


@pytest.mark.parametrize("where", ["here", "there"])
def test_a_handler_may_close_its_hub(start_hub: StartHub, where: str) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    hub = here if where == "here" else there
    closed = threading.Event()

    def leave(tick: Tick) -> None:
        hub.close()
        closed.set()

    hub.open(created.id, Tick).subscribe(leave)
    created.source().submit(Tick(1, 1))
    assert closed.wait(60)


def test_a_handler_that_hangs_does_not_keep_its_hub_from_closing(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    released, entered = threading.Event(), threading.Event()

    def hang(tick: Tick) -> None:
        entered.set()
        released.wait(60)

    for options in ({}, {"thread": True}):
        there.open(created.id, Tick).subscribe(hang, **options)
    created.source().submit(Tick(1, 1))
    assert entered.wait(60)
    started = time.monotonic()
    there.close()
    assert time.monotonic() - started < 30
    released.set()


def test_a_process_ends_though_it_does_not_close_its_hub() -> None:
    import subprocess

    program = (
        "import echoic, numpy\n"
        "hub = echoic.Hub()\n"
        "channel = hub.create('x', numpy.dtype([('a', 'i8')]))\n"
        "other = echoic.Hub()\n"
        "other.open(channel.id).subscribe(print)\n"
        "channel.source().submit_sync({'a': 7})\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"7" in done.stdout


def test_a_closed_hub_refuses_everything(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    opened = there.open(created.id, Tick)
    source, sink = opened.source(), opened.subscribe(print)
    events = opened.events()
    there.close()
    there.close()
    sink.close()
    source.close()
    assert list(events) == []
    used: list[Any] = [
        lambda: source.submit(Tick(1, 1)),
        lambda: source.submit_batch([Tick(1, 1)]),
        lambda: source.submit_sync(Tick(1, 1)),
        source.freeze,
        opened.source,
        lambda: opened.subscribe(print),
        opened.events,
        lambda: there.create("more", Tick),
        lambda: there.open(created.id),
        lambda: there.describe(created.id),
        lambda: there.channels(here.address),
        lambda: there.report(here.address),
    ]
    for use in used:
        started = time.monotonic()
        with pytest.raises(ClosedError):
            use()
        assert time.monotonic() - started < 8
    with Hub() as hub:
        with hub.create("more", Tick).source() as more:
            pass
        with pytest.raises(ClosedError, match="the source was closed"):
            more.submit(Tick(1, 1))
