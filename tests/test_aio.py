"""Channels for asyncio: the same hubs, with `await` where the others wait."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from echoic import Context, Controls, ECodeError, Hub, Policy, Trouble, aio, event
from echoic.errors import ChannelNotFoundError, ClosedError, DeliveryError, LocalError, RefusedError
from echoic.hub import Stamp
from tests.hub.parties import PATIENCE_SECONDS, Note, Tick


@event
class Pace:
    rate: float


Scene = Callable[[aio.Hub, aio.Hub], Coroutine[Any, Any, None]]


def play(scene: Scene) -> None:
    """Run a scene with two hubs, in a loop of its own."""

    async def run() -> None:
        async with aio.Hub() as there, aio.Hub() as here:
            await asyncio.wait_for(scene(there, here), PATIENCE_SECONDS * 2)

    asyncio.run(run())


async def until(condition: Callable[[], object], what: str = "") -> None:
    """Wait until a condition holds, without keeping the loop from anything."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():
            await asyncio.sleep(0.002)
    assert condition(), what


def test_events_are_iterated_in_order() -> None:
    async def scene(there: aio.Hub, here: aio.Hub) -> None:
        channel = await there.create("ticks", Tick)
        async with (await here.open(channel.id, Tick)).events() as events, await channel.source() as source:
            for number in range(100):
                await source.submit(Tick(0, number))
            await source.submit_batch([Tick(0, number) for number in range(100, 200)])
            await source.flush()
            got = [(await anext(events)).number for _ in range(200)]
        assert got == list(range(200))
        assert channel.statistics().events_out == 200
        assert [entry.name for entry in await here.channels(there.address)] == ["ticks"]

    play(scene)


def test_a_handler_is_awaited_for_one_event_after_the_other_until_its_task_is_cancelled() -> None:
    async def scene(there: aio.Hub, here: aio.Hub) -> None:
        channel = await there.create("ticks", Tick)
        got: list[int] = []
        inside = 0

        async def handler(tick: Tick) -> None:
            nonlocal inside
            assert not inside
            inside += 1
            await asyncio.sleep(0)
            got.append(tick.number)
            inside -= 1

        opened = await here.open(channel.id, Tick)
        task = await opened.subscribe(handler)
        source = await channel.source()
        for number in range(50):
            await source.submit(Tick(0, number))
        await until(lambda: len(got) == 50)
        assert got == list(range(50))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not opened.blocking.endpoints.sinks
        await source.submit_sync(Tick(0, 50))
        assert got == list(range(50))

    play(scene)


def test_a_synchronous_event_waits_for_the_coroutine() -> None:
    async def scene(there: aio.Hub, here: aio.Hub) -> None:
        channel = await there.create("ticks", Tick)
        got: list[int] = []

        async def handler(tick: Tick) -> None:
            await asyncio.sleep(0.01)
            got.append(tick.number)

        await (await here.open(channel.id, Tick)).subscribe(handler)
        source = await channel.source()
        for number in range(3):
            await source.submit_sync(Tick(0, number))
            assert got == list(range(number + 1))

    play(scene)


def test_a_handler_that_raises_ends_its_task_and_a_synchronous_submitter_is_told() -> None:
    async def scene(there: aio.Hub, here: aio.Hub) -> None:
        channel = await there.create("ticks", Tick)

        async def handler(tick: Tick) -> None:
            if tick.number == 1:
                raise ValueError("not this one")

        task = await (await here.open(channel.id, Tick)).subscribe(handler)
        source = await channel.source()
        await source.submit_sync(Tick(0, 0))
        with pytest.raises(DeliveryError, match="not this one"):
            await source.submit_sync(Tick(0, 1))
        with pytest.raises(ValueError, match="not this one"):
            await task
        await source.submit_sync(Tick(0, 2))

    play(scene)


def test_a_body_that_raises_is_told_to_a_synchronous_submitter_by_blocking_iterators_too() -> None:
    with Hub() as there, Hub() as here:
        channel = there.create("ticks", Tick)
        subscribed = threading.Event()

        def follow() -> None:
            with suppress(ValueError), here.open(channel.id, Tick).events() as events:
                subscribed.set()
                for _ in events:
                    raise ValueError("in the body")

        thread = threading.Thread(target=follow)
        thread.start()
        assert subscribed.wait(PATIENCE_SECONDS)
        with pytest.raises(DeliveryError, match="in the body"):
            channel.source().submit_sync(Tick(0, 0))
        thread.join(PATIENCE_SECONDS)


def test_who_is_cancelled_while_it_subscribes_leaves_no_subscription_behind() -> None:
    async def scene(there: aio.Hub, here: aio.Hub) -> None:
        channel = await there.create("ticks", Tick)
        opened = await here.open(channel.id, Tick)
        subscribe = opened.blocking.events
        entered, leave = threading.Event(), threading.Event()

        class Slowly:
            """A channel that takes its time."""

            name = opened.name

            def events(self, *arguments: Any, **options: Any) -> Any:
                entered.set()
                leave.wait(PATIENCE_SECONDS)
                return subscribe(*arguments, **options)

        slow = aio.Channel(opened.blocking)
        slow.blocking = Slowly()

        async def enter() -> None:
            async with slow.events():
                pytest.fail("it was cancelled before")

        async def handler(tick: Tick) -> None:
            pytest.fail(f"nobody subscribed to {tick}")

        for attempt in (enter(), slow.subscribe(handler)):
            entered.clear()
            leave.clear()
            task = asyncio.create_task(attempt)
            await until(entered.is_set)
            task.cancel()
            await asyncio.sleep(0.01)
            leave.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not opened.blocking.endpoints.sinks

    play(scene)


def test_an_iterator_whose_first_step_is_cancelled_goes_on_with_the_same_subscription() -> None:
    async def scene(there: aio.Hub, here: aio.Hub) -> None:
        channel = await there.create("ticks", Tick)
        opened = await here.open(channel.id, Tick)
        events = opened.events()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(events), 0)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(events), 0.01)
        await events.begin()
        assert len(opened.blocking.endpoints.sinks) == 1
        source = await channel.source()
        await source.submit(Tick(0, 7))
        assert (await anext(events)).number == 7
        await events.close()
        await events.close()
        assert not opened.blocking.endpoints.sinks
        with pytest.raises(StopAsyncIteration):
            await anext(events)

    play(scene)


def test_an_iterator_ends_when_its_hub_is_closed() -> None:
    async def scene(there: aio.Hub, here: aio.Hub) -> None:
        channel = await there.create("ticks", Tick)
        opened = await here.open(channel.id, Tick)
        got: list[int] = []
        begun = asyncio.Event()

        async def follow() -> None:
            async with opened.events() as events:
                begun.set()
                got.extend([tick.number async for tick in events])

        task = asyncio.create_task(follow())
        await begun.wait()
        await here.close()
        await task
        assert got == []
        with pytest.raises(ClosedError):
            await here.create("late", Tick)

    play(scene)


def test_gaps_are_told() -> None:
    async def scene(there: aio.Hub, here: aio.Hub) -> None:
        channel = await there.create("notes", Note)
        gaps: list[Any] = []
        opened = await here.open(channel.id, Note)
        async with opened.events(slow="latest", on_gap=gaps.append) as events:
            source = await channel.source()
            sent = 20
            for number in range(sent):
                await source.submit(Note(number, ""))
                await source.flush()
            sink = (await events.begin()).sink
            await until(lambda: opened.statistics().events_in == sent)
            await until(lambda: sink.statistics().missed + 1 >= sent or sink.statistics().missed > 0)
            last = await anext(events)
            assert last.number == sent - 1
            assert sum(gap.last - gap.first + 1 for gap in gaps) == sink.statistics().missed == sent - 1

    play(scene)


def test_a_source_that_must_wait_does_not_keep_the_loop_from_running() -> None:
    async def scene(there: aio.Hub, here: aio.Hub) -> None:
        channel = await there.create("notes", Note)
        async with (await here.open(channel.id, Note)).events() as events:
            source = await channel.source()
            text, count = "x" * 100_000, 400

            async def produce() -> None:
                for number in range(count):
                    await source.submit(Note(number, text))
                await source.flush()

            producing = asyncio.create_task(produce())
            await until(lambda: source.blocking.would_wait() or producing.done())
            assert not producing.done(), "40 MB do not fit into the credit"
            got = [(await anext(events)).number for _ in range(count)]
            await producing
        assert got == list(range(count))

    play(scene)


def test_errors_are_those_of_the_blocking_hub() -> None:
    async def scene(there: aio.Hub, here: aio.Hub) -> None:
        channel = await there.create("ticks", Tick)
        with pytest.raises(ChannelNotFoundError):
            await here.open(channel.id + "x", Tick)
        source = await channel.source()
        await source.close()
        with pytest.raises(ClosedError):
            await source.submit(Tick(0, 0))

    play(scene)


def test_a_loop_that_ends_before_its_hub_breaks_no_link() -> None:
    with Hub() as there:
        channel = there.create("ticks", Tick)
        source = channel.source()
        hubs: list[aio.Hub] = []

        async def leave_open() -> None:
            here = aio.Hub()
            hubs.append(here)
            events = (await here.open(channel.id, Tick)).events()
            await events.begin()

        asyncio.run(leave_open())
        with hubs[0].blocking:
            for number in range(5):
                source.submit(Tick(0, number))
            source.flush()
            got = hubs[0].blocking.open(channel.id, Tick).events(timeout=PATIENCE_SECONDS)
            source.submit(Tick(0, 5))
            assert next(got).number == 5


def test_a_derived_channel_is_iterated_and_its_parameters_are_changed() -> None:
    async def scene(there: aio.Hub, here: aio.Hub) -> None:
        channel = await there.create("ticks", Tick)
        opened = await here.open(channel.id, Tick)
        few = await opened.derive("input.number % param.step == 0", params={"step": 10}, name="few")
        assert few.params.values == {"step": 10}
        source = await channel.source()
        async with few.events() as events:
            await source.submit_batch([Tick(0, number) for number in range(25)])
            assert [(await anext(events)).number for _ in range(3)] == [0, 10, 20]
            await few.params.update(step=7)
            assert few.params.values == {"step": 7}
            await source.submit_batch([Tick(0, number) for number in range(15)])
            assert [(await anext(events)).number for _ in range(3)] == [0, 7, 14]
            derivation = few.derivation
            assert derivation is not None
            counts = (await derivation.counts())[there.address]
        assert (derivation.parent, derivation.placement) == ("ticks", "source")
        assert (counts.events_in, counts.events_out) == (40, 6)
        assert channel.derivation is None
        with pytest.raises(LocalError, match="has no parameters"):
            _ = channel.params

    play(scene)


def test_a_router_gives_a_channel_for_each_port() -> None:
    async def scene(there: aio.Hub, here: aio.Hub) -> None:
        channel = await there.create("ticks", Tick)
        even, odd = await (await here.open(channel.id, Tick)).route("input.number % 2", 2)
        source = await channel.source()
        async with even.events() as evens, odd.events() as odds:
            await source.submit_batch([Tick(0, number) for number in range(6)])
            assert [(await anext(evens)).number for _ in range(3)] == [0, 2, 4]
            assert [(await anext(odds)).number for _ in range(3)] == [1, 3, 5]

    play(scene)


def test_static_variables_are_saved_and_restored() -> None:
    async def scene(there: aio.Hub, here: aio.Hub) -> None:
        channel = await there.create("ticks", Tick)
        code = "static long seen = 0; seen++; return seen > 3;"
        late = await (await here.open(channel.id, Tick)).derive(code)
        source = await channel.source()
        async with late.events() as events:
            await source.submit_batch([Tick(0, number) for number in range(5)])
            assert [(await anext(events)).number for _ in range(2)] == [3, 4]
            derivation = late.derivation
            assert derivation is not None
            assert list((await derivation.save()).values()) == [{"seen": 5}]
            await derivation.restore({0: {"seen": 0}})
            await source.submit_batch([Tick(0, number) for number in range(5)])
            assert (await anext(events)).number == 3

    play(scene)


def test_trouble_is_told_in_the_loop_and_wrong_code_is_refused() -> None:
    async def scene(there: aio.Hub, here: aio.Hub) -> None:
        channel = await there.create("ticks", Tick)
        opened = await here.open(channel.id, Tick)
        with pytest.raises(ECodeError, match="did you mean `number`"):
            await opened.derive("input.numbr > 3")
        loop, told = threading.get_ident(), list[tuple[int, Trouble]]()
        risky = await opened.derive(
            "10 / input.number > 0", on_trouble=lambda trouble: told.append((threading.get_ident(), trouble))
        )
        source = await channel.source()
        async with risky.events() as events:
            await source.submit_batch([Tick(0, 0), Tick(0, 1)])
            assert (await anext(events)).number == 1
            await until(lambda: told, "trouble")
        thread, trouble = told[0]
        assert thread == loop
        assert (trouble.channel, trouble.hub, trouble.suspended) == (risky.id, there.address, False)
        assert "an integer is divided by zero" in trouble.text

    play(scene)


def test_a_hub_may_refuse_to_run_the_code_of_others() -> None:
    async def run() -> None:
        async with aio.Hub(policy=Policy(derive=False)) as there, aio.Hub() as here:
            channel = await there.create("ticks", Tick)
            await channel.source()
            few = await (await here.open(channel.id, Tick)).derive("input.number > 3")
            with pytest.raises(RefusedError, match="runs no code of others"):
                await few.events().begin()

    asyncio.run(run())


def test_sources_are_steered_from_a_loop_and_have_a_context() -> None:
    async def scene(there: aio.Hub, here: aio.Hub) -> None:
        channel = await there.create("ticks", Tick, context=Pace)
        rates: list[float] = []
        controls = Controls(tune=lambda *, rate: rates.append(rate))
        source = await channel.source(context=Context(Pace(1.0), writable=("rate",)), controls=controls)
        opened = await here.open(channel.id, Tick)
        assert [answer.taken for answer in await opened.steer("tune", rate=2.5)] == [True]
        assert (rates, source.heard) == ([2.5], False)
        derived = await opened.derive("{ context.rate = input.number; return 1; }")
        async with derived.events() as events:
            await source.submit(Tick(0, 7))
            assert (await anext(events)).number == 7
        assert source.context.rate == 7.0

    play(scene)


def test_recorded_events_are_awaited_one_after_the_other_from_where_a_sink_has_stopped(tmp_path: Path) -> None:
    async def scene(there: aio.Hub, here: aio.Hub) -> None:
        channel = await there.create("ticks", Tick)
        got: list[tuple[int, int]] = []

        async def handle(tick: Tick, stamp: Stamp) -> None:
            await asyncio.sleep(0)
            got.append((tick.number, stamp.sequence))

        async with await here.record(channel.id, tmp_path) as recording, await channel.source(name="feed") as source:
            recorded = await there.open(channel.id, Tick)
            for start in range(0, 30, 10):
                await source.submit_batch([Tick(0, number) for number in range(start, start + 10)])
                async with await recorded.resume(handle, name="billing") as sink:
                    await until(lambda start=start: len(got) == start + 10)
                assert sink.statistics().kept == (start + 10,)
                assert await sink.wait()
            assert recording.statistics().events == 30
        assert got == [(number, number) for number in range(30)]

    play(scene)


def test_a_coroutine_that_raises_ends_its_durable_sink(tmp_path: Path) -> None:
    async def scene(there: aio.Hub, here: aio.Hub) -> None:
        channel = await there.create("ticks", Tick)

        async def fail(tick: Tick, stamp: Stamp) -> None:
            raise ValueError("not this one")

        async with await there.record(channel, tmp_path):
            source = await channel.source()
            await source.submit(Tick(0, 0))
            sink = await channel.resume(fail)
            assert await sink.wait(PATIENCE_SECONDS)
            assert "ValueError: not this one" in sink.trouble
            await sink.close()

    play(scene)
