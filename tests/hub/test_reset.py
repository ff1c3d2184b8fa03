"""A handler's pair is swapped while its sources publish: nothing is lost, repeated or reordered.

Every modulator here lets all events pass, so whatever a handler has seen of a source must be 0, 1, 2, ... in the end.
Tests that draw what happens print their seed when they fail.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from random import Random

import pytest

from echoic import Channel, Hub, Source
from echoic.channels import Policy
from echoic.channels.turns import Turns
from echoic.eager import Demodulator, EcodeModulator
from echoic.errors import EchoicError, LocalError, RefusedError
from echoic.hub.eager_sink import EagerSink
from tests.hub.parties import Collector, StartHub, Tick, eventually

BURST = 40


@pytest.fixture
def start_hub(start_hub: StartHub) -> StartHub:
    """Start hubs that let modulators take all the time there is: on a busy machine they seem to take much."""

    def start(listen: str = "127.0.0.1:0", **options: object) -> Hub:
        return start_hub(listen, **{"policy": Policy(load_max=1000.0), **options})

    return start


def passing(number: int) -> EcodeModulator:
    """Return a modulator through which everything passes; those of two numbers are not equal."""
    return EcodeModulator(f"{{ return input.number > -{number + 1}; }}")


class Publisher:
    """A source in a thread that submits in every way there is."""

    def __init__(self, channel: Channel, producer: int, seed: int) -> None:
        self.producer = producer
        self.count = 0
        self.source: Source = channel.source()
        self._random = Random(seed * 1000 + producer)
        self._stop = threading.Event()
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> "Publisher":
        self._thread.start()
        return self

    def stop(self) -> int:
        """Submit no more, and return how many there were."""
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive(), f"producer {self.producer} hangs"
        if self._problem is not None:
            raise self._problem
        self.source.flush()
        return self.count

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._submit(self._random.random())
                if self._random.random() < 0.02:
                    time.sleep(0.001)
        except BaseException as error:  # noqa: BLE001 - it is raised where the thread is awaited
            self._problem = error

    def _submit(self, chance: float) -> None:
        if chance < 0.02:
            self.source.submit_sync(Tick(self.producer, self.count), timeout=30)
            self.count += 1
        elif chance < 0.1:
            several = self._random.randint(1, BURST)
            self.source.submit_batch([Tick(self.producer, self.count + n) for n in range(several)])
            self.count += several
        else:
            self.source.submit(Tick(self.producer, self.count))
            self.count += 1


@pytest.fixture
def publish() -> Iterator[Callable[..., Publisher]]:
    publishers: list[Publisher] = []

    def start(channel: Channel, producer: int, seed: int = 0) -> Publisher:
        publishers.append(Publisher(channel, producer, seed).start())
        return publishers[-1]

    yield start
    for publisher in publishers:
        with suppress(EchoicError):
            publisher.stop()


def complete(seen: Collector, publishers: list[Publisher], seed: int = 0) -> None:
    """Check that a handler has seen every event of every publisher, once and in order."""
    counts = {one.producer: one.stop() for one in publishers}
    for producer, count in counts.items():
        with suppress(AssertionError):
            eventually(lambda producer=producer, count=count: len(seen.of(producer)) >= count, seconds=10)
    for producer, count in counts.items():
        in_order(seen.of(producer), count, f"seed {seed}: producer {producer}")
    assert not seen.gaps, f"seed {seed}: {seen.gaps}"


def in_order(numbers: list[int], count: int, where: str) -> None:
    wrong = [(n, number) for n, number in enumerate(numbers) if number != n][:3]
    assert not wrong, f"{where} has sent {count}, {len(numbers)} were handled, the first wrong ones are {wrong}"
    assert len(numbers) == count, f"{where} has sent {count}, {len(numbers)} were handled"


def reset_at_random(handle: EagerSink, seed: int, resets: int) -> None:
    """Reset to others, to equal ones, to the same and to none, waiting for it or not."""
    random, pending = Random(seed), list[Future[None]]()
    for _ in range(resets):
        choice = random.randrange(6)
        modulator = None if choice == 0 else handle.modulator if choice == 1 else passing(choice % 3)
        demodulator = Demodulator() if random.random() < 0.3 else None
        pending.append(handle.reset(modulator, demodulator, sync=random.random() < 0.6))
        time.sleep(random.random() * 0.02)
    for one in pending:
        one.result(30)


@pytest.mark.parametrize("seed", range(3))
def test_sources_of_several_hubs_lose_nothing(
    seed: int, start_hub: StartHub, publish: Callable[..., Publisher], any_link: str
) -> None:
    manager, near, far, listening = (start_hub() for _ in range(4))
    id = manager.create("ticks", Tick).id
    seen = Collector()
    handle = listening.open(id, Tick).subscribe(seen, modulator=passing(0), on_gap=seen.gaps.append)
    publishers = [publish(hub.open(id, Tick), producer, seed) for producer, hub in enumerate((manager, near, far, far))]
    reset_at_random(handle, seed, 25)
    complete(seen, publishers, seed)


@pytest.fixture
def hurried() -> Iterator[None]:
    """Let threads take turns so often that whatever can come between two of them does."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.00001)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("seed", range(3))
def test_sources_in_the_hub_of_the_handler_lose_nothing(
    seed: int, start_hub: StartHub, publish: Callable[..., Publisher]
) -> None:
    hub, other = start_hub(), start_hub()
    channel = hub.create("ticks", Tick)
    seen = Collector()
    handle = channel.subscribe(seen, modulator=passing(0), on_gap=seen.gaps.append)
    publishers = [publish(channel, 0, seed), publish(channel, 1, seed), publish(other.open(channel.id, Tick), 2, seed)]
    reset_at_random(handle, seed, 40)
    complete(seen, publishers, seed)


@pytest.mark.parametrize("seed", range(3))
def test_handlers_that_share_a_channel_go_their_own_ways(
    seed: int, start_hub: StartHub, publish: Callable[..., Publisher]
) -> None:
    manager, far, one, other = (start_hub() for _ in range(4))
    id = manager.create("ticks", Tick).id
    all_seen = [Collector() for _ in range(4)]
    handles = [
        hub.open(id, Tick).subscribe(seen, modulator=passing(0), on_gap=seen.gaps.append)
        for hub, seen in zip((one, one, other, other), all_seen, strict=True)
    ]
    publishers = [publish(hub.open(id, Tick), producer, seed) for producer, hub in enumerate((manager, far))]
    threads = [
        threading.Thread(target=reset_at_random, args=(handle, 10 * seed + n, 12))
        for n, handle in enumerate(handles[:3])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for seen in all_seen:
        complete(seen, publishers, seed)


@pytest.mark.parametrize("seed", range(3))
def test_sources_come_and_go_meanwhile(seed: int, start_hub: StartHub, publish: Callable[..., Publisher]) -> None:
    manager, far, late, listening = (start_hub() for _ in range(4))
    id = manager.create("ticks", Tick).id
    seen, random = Collector(), Random(seed)
    handle = listening.open(id, Tick).subscribe(seen, modulator=passing(0), on_gap=seen.gaps.append)
    publishers = [publish(manager.open(id, Tick), 0, seed)]
    resetting = threading.Thread(target=reset_at_random, args=(handle, seed, 30))
    resetting.start()
    for producer in range(1, 9):
        hub = random.choice((manager, far, late))
        publishers.append(publish(hub.open(id, Tick), producer, seed))
        time.sleep(random.random() * 0.05)
        if producer % 3 == 0:
            publishers[-2].stop()
            publishers[-2].source.close()
    resetting.join(60)
    complete(seen, publishers, seed)


def test_a_source_that_refuses_leaves_the_former_pair_at_work(
    start_hub: StartHub, publish: Callable[..., Publisher]
) -> None:
    manager, open_hub, closed, listening = start_hub(), start_hub(), start_hub(policy=Policy(derive=False)), start_hub()
    id = manager.create("ticks", Tick).id
    channel = listening.open(id, Tick)
    seen = Collector()
    handle = channel.subscribe(seen, demodulator=Demodulator(), on_gap=seen.gaps.append)
    publishers = [publish(hub.open(id, Tick), producer) for producer, hub in enumerate((open_hub, closed, manager))]
    for n in range(12):
        with pytest.raises(RefusedError, match="runs no code of others"):
            handle.reset(passing(n % 2))
        assert handle.modulator is None
        time.sleep(0.01)
    complete(seen, publishers)


def test_a_slow_handler_sees_everything_in_order(start_hub: StartHub, publish: Callable[..., Publisher]) -> None:
    hub, listening = start_hub(), start_hub()
    id = hub.create("ticks", Tick).id
    seen = Collector(pause=0.0005)
    handle = listening.open(id, Tick).subscribe(seen, modulator=passing(0), on_gap=seen.gaps.append)
    publisher = publish(hub.open(id, Tick), 0)
    for n in range(1, 4):
        handle.reset(passing(n))
    complete(seen, [publisher])


def test_what_a_handler_had_no_time_for_is_not_lost_in_silence(start_hub: StartHub) -> None:
    hub, listening = start_hub(), start_hub()
    channel = hub.create("ticks", Tick)
    seen = Collector()
    seen.gate.clear()
    handle = listening.open(channel.id, Tick).subscribe(seen, modulator=passing(0), on_gap=seen.gaps.append)
    source = channel.source()
    for number in range(10):
        source.submit(Tick(0, number))
    source.flush()
    eventually(lambda: handle.statistics().waiting_bytes or seen.threads)
    handle.reset(passing(1))
    seen.gate.set()
    source.submit(Tick(0, 10))
    source.flush()
    eventually(lambda: 10 in seen.numbers)
    assert set(seen.numbers) | seen.missed == set(range(11))


def test_the_last_reset_wins_though_nobody_waited(start_hub: StartHub) -> None:
    hub = start_hub()
    channel = hub.create("ticks", Tick)
    seen = Collector()
    handle = channel.subscribe(seen, modulator=passing(0))
    for _ in range(10):
        wanted = [passing(n) for n in range(1, 8)]
        for one in [handle.reset(modulator, sync=False) for modulator in wanted]:
            one.result(30)
        assert handle.modulator == wanted[-1]


def test_a_handler_may_reset_itself(start_hub: StartHub) -> None:
    hub = start_hub()
    channel = hub.create("ticks", Tick)
    seen = Collector()

    def handler(tick: Tick) -> None:
        seen(tick)
        if tick.number == 0:
            handle.reset(passing(1))

    handle = channel.subscribe(handler, modulator=passing(0))
    source = channel.source()
    for number in range(3):
        source.submit(Tick(0, number))
    source.flush()
    eventually(lambda: seen.numbers == [0, 1, 2])
    assert handle.modulator == passing(1)


def test_a_handler_resets_itself_without_waiting(start_hub: StartHub) -> None:
    hub, listening = start_hub(), start_hub()
    channel = hub.create("ticks", Tick)
    seen, pending = Collector(), list[Future[None]]()

    def handler(tick: Tick) -> None:
        seen(tick)
        if tick.number % 100 == 50:
            pending.append(handle.reset(passing(tick.number // 100 % 3), sync=False))

    handle = listening.open(channel.id, Tick).subscribe(handler, modulator=passing(0))
    source = channel.source()
    for number in range(1000):
        source.submit(Tick(0, number))
    source.flush()
    eventually(lambda: len(seen.numbers) >= 1000, f"{len(seen.numbers)}")
    for one in pending:
        one.result(30)
    in_order(seen.numbers, 1000, "producer 0")


def test_a_handle_that_is_closed_meanwhile_stays_closed(start_hub: StartHub, publish: Callable[..., Publisher]) -> None:
    hub, listening = start_hub(), start_hub()
    id = hub.create("ticks", Tick).id
    publisher = publish(hub.open(id, Tick), 0)
    for pause in range(8):
        seen, problems = Collector(), list[LocalError]()
        handle = listening.open(id, Tick).subscribe(seen, modulator=passing(0), on_gap=seen.gaps.append)

        def resets(handle: EagerSink = handle, problems: list[LocalError] = problems) -> None:
            try:
                for n in range(200):
                    handle.reset(passing(n % 3))
            except LocalError as error:
                problems.append(error)

        thread = threading.Thread(target=resets)
        thread.start()
        time.sleep(0.005 * pause)
        handle.close()
        count = len(seen.numbers)
        thread.join(30)
        assert len(problems) == 1
        assert not thread.is_alive()
        numbers = seen.numbers
        assert len(numbers) == count
        assert numbers == list(range(numbers[0], numbers[0] + count)) if numbers else True
        assert not seen.gaps
    publisher.stop()
    core = hub._switchboard.core  # noqa: SLF001 - what is left behind
    eventually(lambda: not any(member.fanout.targets for member in core.members.values()))
    assert not any(member.turns for member in core.members.values())
    assert not any(member.turns for member in listening._switchboard.core.members.values())  # noqa: SLF001


def test_a_sink_that_leaves_while_an_event_is_handed_over_does_not_take_it(
    start_hub: StartHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may take the event where it has gone to; taken here too, it would come twice."""
    channel, seen = start_hub().create("ticks", Tick), Collector()
    sink, source = channel.subscribe(seen), channel.source()

    def leave(_: Turns) -> bool:
        sink.withdraw()
        return False

    source.submit_sync(Tick(0, 0))
    monkeypatch.setattr(Turns, "any", property(leave, lambda *_: None))
    source.submit(Tick(0, 1))
    monkeypatch.undo()
    assert seen.of(0) == [0]


def test_a_reset_that_ends_after_the_subscription_was_closed_leaves_nothing(
    start_hub: StartHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = start_hub().create("ticks", Tick)
    channel.source()
    handle = start_hub().open(channel.id, Tick).subscribe(Collector(), modulator=passing(1))
    follow, followed = handle._following, []  # noqa: SLF001 - in between somebody else closes it

    def closed_meanwhile(*arguments: object) -> object:
        followed.append(follow(*arguments))
        handle._trunk.close()  # noqa: SLF001 - as the hub does
        return followed[0]

    monkeypatch.setattr(handle, "_following", closed_meanwhile)
    with pytest.raises(LocalError, match="was closed"):
        handle.reset(passing(2))
    assert handle.closed
    assert followed[0].channel.endpoints.sinks == ()
    handle.close()
