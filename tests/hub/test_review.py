"""Faults that a review of the hub has found or feared: nearly all of these tests failed before they were mended."""

# ruff: noqa: SLF001 - what would happen by chance, once in a million, is made to happen

import atexit
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from echoic import Hub
from echoic.errors import ClosedError, DeliveryError, UnreachableError
from echoic.hub.outbound import Source
from tests.hub.parties import Collector, Note, Quote, StartHub, Tick, Trade, WideTrade, eventually, trade


class Panic(BaseException):
    """What a library may raise that is no Exception: a panic of Rust code, a failed assertion of a test."""


def run_script(text: str) -> str:
    """Return what a program of its own prints; it must end well."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def core_of(hub: Hub) -> Any:
    return hub._switchboard.core


def test_lone_events_of_two_types_do_not_mix_in_one_sink(start_hub: StartHub) -> None:
    there, first, second = start_hub(), start_hub(), start_hub()
    channel = there.create("mixed")
    got = Collector()
    channel.subscribe(got)
    ticks, quotes = first.open(channel.id).source(Tick), second.open(channel.id).source(Quote)
    for number in range(6):
        ticks.submit_sync(Tick(1, number))
        quotes.submit_sync(Quote(0.5, number))
    assert [type(item).__name__ for item in got.events] == ["Tick", "Quote"] * 6
    assert got.numbers == [number for number in range(6) for _ in range(2)]


def test_a_lone_event_of_another_layout_does_not_spoil_the_short_way_of_others(start_hub: StartHub) -> None:
    there, first, second = start_hub(), start_hub(), start_hub()
    channel = there.create("trades", Trade)
    got = Collector()
    channel.subscribe(got)
    narrow = first.open(channel.id, Trade).source()
    wide = second.open(channel.id, Trade).source(WideTrade)
    for number in range(5):
        narrow.submit_sync(trade(number))
        wide.submit_sync(WideTrade("X", number, number / 2, "S", 1))
    assert got.numbers == [number for number in range(5) for _ in range(2)]


def test_answers_that_come_among_other_frames_leave_nothing_behind(start_hub: StartHub) -> None:
    there, here = start_hub(), start_hub()
    requests, answers = there.create("requests", Tick), there.create("answers", Tick)
    back = answers.source()
    requests.subscribe(back.submit)
    here.open(answers.id, Tick).subscribe(Collector())
    source = here.open(requests.id, Tick).source()
    for number in range(300):
        source.submit_sync(Tick(0, number))
    assert len(core_of(here).calls) < 5


@pytest.mark.parametrize("how", ["reading thread", "own thread", "lone"])
def test_no_exception_of_a_handler_ends_the_thread_that_called_it(start_hub: StartHub, how: str) -> None:
    there, here = start_hub(), start_hub()
    channel = there.create("ticks", Tick)
    got: list[int] = []

    def handler(tick: Tick) -> None:
        if tick.number == 3:
            raise Panic("at the disco")
        got.append(tick.number)

    channel.subscribe(handler, thread=how == "own thread")
    source = here.open(channel.id, Tick).source()
    for number in range(8):
        if how == "lone":
            with pytest.raises(DeliveryError, match="Panic") if number == 3 else nullcontext():
                source.submit_sync(Tick(0, number))
        else:
            source.submit(Tick(0, number))
    eventually(lambda: len(got) == 7, f"7 events, got {got}")
    assert got == [0, 1, 2, 4, 5, 6, 7]


def test_an_interrupt_in_a_handler_loses_none_of_the_frames_behind_it(start_hub: StartHub) -> None:
    """A caller that waits for an answer reads what others have sent too, and is interrupted by Control-C."""
    there, here = start_hub(), start_hub()
    channel, answers = there.create("ticks", Tick), here.create("answers", Tick)
    got: list[int] = []

    def handler(tick: Tick) -> None:
        got.append(tick.number)
        if tick.number == 2:
            raise KeyboardInterrupt

    answers.subscribe(handler)
    back = there.open(answers.id, Tick).source()

    def flood(tick: Tick) -> None:
        for number in range(50):
            back.submit(Tick(0, number))
            back.flush()  # each in a frame of its own: what is lost of the very batch it interrupts is another matter

    channel.subscribe(flood)
    source = here.open(channel.id, Tick).source()
    hook, threading.excepthook = threading.excepthook, lambda _: None
    try:
        try:
            source.submit_sync(Tick(0, 0))
        except (KeyboardInterrupt, DeliveryError):
            pass
        eventually(lambda: len(got) >= 50, f"50 events, got {got}")
    finally:
        threading.excepthook = hook
    assert got == list(range(50))


def test_a_source_that_is_closed_while_another_thread_submits_ends_nothing_else(start_hub: StartHub) -> None:
    there, here = start_hub(), start_hub()
    channel = there.create("ticks", Tick)
    got = Collector()
    channel.subscribe(got)
    opened = here.open(channel.id, Tick)
    source, other = opened.source(), opened.source()
    source.submit(Tick(0, 0))
    source.submit(Tick(0, 1))
    inside, leave = threading.Event(), threading.Event()
    encode = source._encode

    def slowly(item: object) -> bytes:
        record = encode(item)
        inside.set()
        leave.wait(30)
        return record

    source._encode = slowly
    problems: list[BaseException] = []

    def submit() -> None:
        try:
            source.submit(Tick(0, 2))
        except ClosedError as error:
            problems.append(error)

    thread = threading.Thread(target=submit)
    thread.start()
    assert inside.wait(30)
    source._armed = True
    here._flusher.arm(source)
    source.close()
    leave.set()
    thread.join(30)
    for number in range(3, 100):
        other.submit(Tick(0, number))
    got.has(99 if not problems else 98)
    assert sorted(got.numbers) == [number for number in range(100) if number != 2 or not problems]
    assert problems, "the event was neither sent nor refused"


def test_runs_that_are_too_much_for_one_frame_go_one_by_one(start_hub: StartHub) -> None:
    there, here = start_hub(), start_hub()
    channel = there.create("notes", Note)
    got = Collector()
    channel.subscribe(got)
    opened = here.open(channel.id, Note)
    sources = [opened.source() for _ in range(8)]
    text = "x" * 4000
    for source in sources:
        source._armed = True
        source._run.extend(source._encode(Note(number, text)) for number in range(600))
    for source in sources:
        here._flusher.arm(source)
    got.has(4800)
    flushed = threading.Thread(target=sources[0].flush, daemon=True)
    flushed.start()
    flushed.join(30)
    assert not flushed.is_alive(), "the flusher holds a source for ever"


def test_a_source_that_is_armed_while_it_is_disarmed_is_looked_after(
    start_hub: StartHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, here = start_hub(), start_hub()
    channel = there.create("ticks", Tick)
    got = Collector()
    channel.subscribe(got)
    source = here.open(channel.id, Tick).source()
    disarm, once = Source.disarm, []

    def disarm_and_submit(self: Source) -> bool:
        """Submit twice right after the flusher has let go, as another thread may."""
        done = disarm(self)
        if done and not once:
            once.append(1)
            for number in range(2, 5):
                self.submit(Tick(0, number))
        return done

    monkeypatch.setattr(Source, "disarm", disarm_and_submit)
    source.submit(Tick(0, 0))
    source.submit(Tick(0, 1))
    source._armed = True  # as it is unless this machine was too slow
    here._flusher.arm(source)
    got.has(5)
    assert got.numbers == [0, 1, 2, 3, 4]


def test_a_handler_that_answers_with_more_than_it_got_is_not_stuck(start_hub: StartHub, any_link: str) -> None:
    """Its thread is the one that reads the credit for which it would wait."""
    there, here = start_hub(), start_hub()
    requests, answers = there.create("requests", Note), there.create("answers", Note)
    back, text = answers.source(), "y" * 40_000
    requests.subscribe(lambda note: back.submit(Note(note.number, text)))
    got = Collector()
    here.open(answers.id, Note).subscribe(lambda note: got(note.number))
    source = here.open(requests.id, Note).source()
    count = 2000
    done = threading.Event()

    def ask() -> None:
        for number in range(count):
            source.submit(Note(number, "z" * 3000))
        source.flush()
        done.set()

    threading.Thread(target=ask, daemon=True).start()
    eventually(lambda: len(got.events) == count, "all answers", 60)
    assert got.events == list(range(count))
    assert done.wait(30)


def test_a_synchronous_event_does_not_overtake_what_waits_since_the_sinks_ask_for_less(start_hub: StartHub) -> None:
    there, here = start_hub(), start_hub()
    channel = there.create("notes", Note)
    slow, strict = Collector(), Collector()
    demanding = channel.subscribe(strict)
    channel.subscribe(slow, slow="drop_oldest", on_gap=slow.gaps.append)
    source = here.open(channel.id, Note).source()
    for number in range(3):
        source.submit_sync(Note(number, ""))
    demanding.close()
    target = next(iter(source._member.fanout.targets.values()))
    eventually(lambda: target.sink.slow == "drop_oldest")
    target.credit = 0  # as if 16 MB were under way
    source.submit(Note(3, ""))
    source.flush()
    source.submit_sync(Note(4, ""))
    slow.has(5)
    assert slow.numbers == [0, 1, 2, 3, 4]
    assert not slow.gaps


def test_a_sink_that_comes_while_the_last_one_goes_is_sent_events(start_hub: StartHub) -> None:
    there, here = start_hub(), start_hub()
    channel = there.create("ticks", Tick)
    opened = here.open(channel.id, Tick)
    source = channel.source()
    first, second = Collector(), Collector()
    leaving = opened.subscribe(first)
    board = opened.endpoints.switchboard
    do, once = board.do, []

    def do_late(action: Callable[[Any], Any]) -> Any:
        """Let another sink come when the one that goes has made up its mind."""
        if getattr(action, "__name__", "") == "leave" and not once:
            once.append(1)
            thread = threading.Thread(target=opened.subscribe, args=(second,))
            thread.start()
            thread.join(30)
        return do(action)

    board.do = do_late
    leaving.close()
    board.do = do
    deadline = time.monotonic() + 30
    while not second.events and time.monotonic() < deadline:
        source.submit(Tick(0, 1))
        time.sleep(0.01)
    assert second.events


def test_a_forked_child_leaves_the_links_of_its_parent_alone(start_hub: StartHub) -> None:
    there = start_hub()
    channel = there.create("ticks", Tick)
    got = Collector()
    channel.subscribe(got)
    printed = run_script(f"""
        import os, sys, time
        from echoic import Hub, errors
        from tests.hub.parties import Tick
        hub = Hub()
        source = hub.open({channel.id!r}, Tick).source()
        source.submit_sync(Tick(0, 0))
        child = os.fork()
        if not child:
            try:
                source.submit(Tick(0, 99))
            except errors.ClosedError:
                print("refused", flush=True)
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        for number in range(1, 4):
            source.submit_sync(Tick(0, number))
        assert hub.statistics().links[0].session.resent == 0
        print("resumed", hub.statistics().links[0].session.sent)
        hub.close()
        print("closed")
        """)
    assert "refused" in printed
    assert "closed" in printed
    assert got.numbers == [0, 1, 2, 3]


def test_a_source_without_room_does_not_keep_others_from_draining(start_hub: StartHub) -> None:
    there, here = start_hub(), start_hub()
    stuck_channel, free_channel = there.create("stuck", Note), there.create("free", Tick)
    got = Collector()
    free_channel.subscribe(got)
    stuck_channel.subscribe(Collector())
    opened = here.open(stuck_channel.id, Note)
    stuck = [opened.source() for _ in range(8)]
    free = here.open(free_channel.id, Tick).source()
    next(iter(stuck[0]._member.fanout.targets.values())).credit = 0
    for source in [*stuck, free]:
        source._armed = True  # so that events gather
    for source in stuck:
        source.submit(Note(0, ""))
    for number in range(5):
        free.submit(Tick(0, number))
    problems: list[object] = []
    hook, threading.excepthook = threading.excepthook, problems.append
    try:
        here.close()
        got.has(5)
        for source in stuck:
            with pytest.raises(ClosedError):
                source.submit(Note(1, ""))
        eventually(lambda: not any("drain" in thread.name for thread in threading.enumerate()))
    finally:
        threading.excepthook = hook
    assert not problems


def test_an_interrupt_while_a_link_is_written_repeats_nothing(start_hub: StartHub) -> None:
    there, here = start_hub(), start_hub()
    channel = there.create("ticks", Tick)
    got = Collector()
    channel.subscribe(got)
    source = here.open(channel.id, Tick).source()
    source.submit_sync(Tick(0, 0))
    (link,) = here._switchboard.links()
    pump = link.pump

    def interrupted(*, unclog: bool = False) -> None:
        link.pump = pump
        pump(unclog=unclog)
        raise KeyboardInterrupt

    source._armed = True
    source.submit(Tick(0, 1))
    link.pump = interrupted
    with pytest.raises(KeyboardInterrupt):
        source.flush()
    source.submit_sync(Tick(0, 2))
    assert got.numbers == [0, 1, 2]


def test_a_caller_that_waits_for_an_answer_does_not_keep_the_link_from_coming_back(start_hub: StartHub) -> None:
    there, here = start_hub(), start_hub()
    channel = there.create("ticks", Tick)
    entered, leave = threading.Event(), threading.Event()

    def handler(tick: Tick) -> None:
        if tick.number:
            entered.set()
            leave.wait(30)

    channel.subscribe(handler, thread=True)
    source = here.open(channel.id, Tick).source()
    source.submit_sync(Tick(0, 0))
    for _ in range(3):
        entered.clear()
        leave.clear()
        caller = threading.Thread(target=source.submit_sync, args=(Tick(0, 1), 30.0))
        caller.start()
        assert entered.wait(30)
        (link,) = here._switchboard.links()
        began = time.monotonic()
        link.connection.close()
        eventually(lambda link=link, began=began: link.connection is None or time.monotonic() > began + 1)
        eventually(lambda link=link: link.connection is not None, "connected again")
        assert caller.is_alive()
        leave.set()
        caller.join(30)
        assert not caller.is_alive()


def test_a_call_that_is_forgotten_while_its_answer_comes_hurts_nobody(start_hub: StartHub) -> None:
    there, here = start_hub(), start_hub()
    channel = there.create("ticks", Tick)
    channel.subscribe(Collector())
    source = here.open(channel.id, Tick).source()
    source.submit_sync(Tick(0, 0))
    source.submit_sync(Tick(0, 1))
    core = core_of(here)

    class Calls(dict):
        """Loses a call right after it was looked up, as the caller's thread may do."""

        def get(self, key: int, default: object = None) -> object:
            found = super().get(key, default)
            self.pop(key, None)
            return found

    core.calls = Calls(core.calls)
    source.submit_sync(Tick(0, 2))
    source.submit_sync(Tick(0, 3))


def test_sources_that_come_and_go_leave_nothing_behind(start_hub: StartHub) -> None:
    there, here = start_hub(), start_hub()
    channel = there.create("ticks", Tick)
    channel.subscribe(Collector())
    opened = here.open(channel.id, Tick)
    for number in range(300):
        with opened.source() as source:
            source.submit_sync(Tick(0, number))
    member = opened.endpoints.member
    sizes = {name: len(getattr(member, name)) for name in member.__slots__ if hasattr(getattr(member, name), "__len__")}
    assert max(size for name, size in sizes.items() if name not in ("id", "name", "manager")) < 10, sizes
    assert not here._sources


@pytest.mark.parametrize("where", ["here", "there"])
def test_a_synchronous_event_that_is_dropped_does_not_count_as_handled(start_hub: StartHub, where: str) -> None:
    there, here = start_hub(), start_hub()
    channel = there.create("ticks", Tick)
    got = Collector()
    got.gate.clear()
    channel.subscribe(got, slow="latest")
    source = (here.open(channel.id, Tick) if where == "there" else channel).source()
    outcomes: dict[int, str] = {}

    def call(number: int) -> None:
        try:
            source.submit_sync(Tick(0, number), 30)
            outcomes[number] = "handled"
        except DeliveryError as error:
            outcomes[number] = str(error)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(3)]
    member = channel.endpoints.sinks[0]
    callers[0].start()
    eventually(lambda: member._in_hand)
    callers[1].start()
    eventually(lambda: member._waiting)
    callers[2].start()
    eventually(lambda: 1 in outcomes)
    got.gate.set()
    for caller in callers:
        caller.join(30)
    assert got.numbers == [0, 2]
    assert outcomes[0] == outcomes[2] == "handled"
    assert "latest" in outcomes[1]


def test_open_hubs_of_a_program_that_ends_do_not_complain() -> None:
    printed = run_script("""
        from echoic import Hub
        from tests.hub.parties import Tick
        a, b = Hub(), Hub()
        channel = a.create("ticks", Tick)
        channel.subscribe(lambda tick: None)
        source = b.open(channel.id, Tick).source()
        for number in range(1000):
            source.submit(Tick(0, number))
        """)
    assert printed == ""


def test_a_hub_that_cannot_greet_for_want_of_threads_greets_the_next(
    start_hub: StartHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, here = start_hub(), start_hub()
    channel = there.create("ticks", Tick)
    start, refused = threading.Thread.start, []

    def start_later(self: threading.Thread) -> None:
        if self.name.startswith("echoic-greet") and not refused:
            refused.append(1)
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", start_later)
    got = Collector()
    channel.subscribe(got)
    here.open(channel.id, Tick).source().submit_sync(Tick(0, 0))
    assert refused
    assert got.numbers == [0]


def test_hubs_that_come_and_go_leave_nothing_for_the_end_of_the_program() -> None:
    for _ in range(3):
        Hub().close()
    before = atexit._ncallbacks()
    for _ in range(5):
        Hub().close()
    assert atexit._ncallbacks() == before


def test_a_source_of_a_channel_that_could_not_be_frozen_takes_what_came_meanwhile(start_hub: StartHub) -> None:
    there, here = start_hub(), start_hub()
    channel = there.create("ticks", Tick)
    got = Collector()
    channel.subscribe(got, thread=True)
    source = here.open(channel.id, Tick).source()
    source.submit_sync(Tick(0, 0))
    got.gate.clear()
    source.submit(Tick(0, 1))
    refused: list[int] = []
    stop = threading.Event()
    begun = threading.Event()

    def submit() -> None:
        number = 2
        while not stop.is_set():
            begun.set()
            try:
                source.submit(Tick(0, number))
            except ClosedError:
                refused.append(number)
            number += 1
            time.sleep(0.0005)
        submitted.append(number)

    submitted: list[int] = []
    thread = threading.Thread(target=submit)
    thread.start()
    assert begun.wait(30)
    with pytest.raises(DeliveryError):
        source.freeze(timeout=0.2)
    stop.set()
    thread.join(30)
    source.flush()
    got.gate.set()
    expected = [number for number in range(submitted[0]) if number not in refused]
    got.has(len(expected))
    assert got.numbers == expected


def test_a_handler_that_asks_the_hub_whose_events_it_handles_is_refused_at_once(start_hub: StartHub) -> None:
    there, here = start_hub(), start_hub()
    channel, other = there.create("ticks", Tick), there.create("other", Tick)
    opened, spare = here.open(channel.id, Tick), here.open(other.id, Tick)
    problems: list[str] = []

    def handler(tick: Tick) -> None:
        for ask in (lambda: here.open(other.id, Tick), spare.source, lambda: spare.subscribe(Collector())):
            try:
                ask()
            except UnreachableError as error:
                problems.append(str(error))

    opened.subscribe(handler)
    channel.source().submit_sync(Tick(0, 0), 30)
    assert len(problems) == 3
    assert all("thread=True" in problem for problem in problems), problems
    spare.subscribe(Collector())
    spare.source().submit_sync(Tick(0, 1))


def test_handlers_of_two_channels_that_submit_to_each_other_do_not_wait_for_ever(start_hub: StartHub) -> None:
    hub = start_hub()
    channels = [hub.create(name, Tick) for name in ("ticks", "other")]
    sources = [channel.source() for channel in channels]
    seen = [Collector(), Collector()]

    def answer(mine: int) -> Callable[[Tick], None]:
        def handler(tick: Tick) -> None:
            seen[mine](tick)
            if tick.producer == mine:
                sources[1 - mine].submit(tick)

        return handler

    for mine, channel in enumerate(channels):
        channel.subscribe(answer(mine))

    def publish(mine: int) -> None:
        for number in range(1000):
            sources[mine].submit(Tick(mine, number))

    threads = [threading.Thread(target=publish, args=(mine,), daemon=True) for mine in (0, 1)]
    for thread in threads:
        thread.start()
    for each in seen:
        each.has(2000)
    for each in seen:
        assert each.of(0) == each.of(1) == list(range(1000))
