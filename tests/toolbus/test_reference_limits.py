"""Values by reference and what has limits: time, room and numbers. Faults that were found once, and stay mended."""

import dataclasses
import sys
from collections import deque
from collections.abc import Callable, ItemsView, Iterator
from concurrent.futures import Future

import pytest

from echoic.scripts.running.messages import Delivered, Fetched, Input, ToTool
from echoic.terms import Reference, ReferenceKind, Term, TermList, Value
from echoic.toolbus import BusLimits
from echoic.toolbus.correspondence import Correspondence
from echoic.toolbus.custody import Custody
from echoic.toolbus.delivery import Delivery
from echoic.toolbus.holds import Holds
from echoic.toolbus.options import ValueOptions
from echoic.toolbus.promotion import Promotion
from echoic.toolbus.protocol import REFERRING, Message, MessageKind
from echoic.toolbus.references.exchange import Exchange
from echoic.toolbus.references.registry import BUS
from echoic.toolbus.references.routes import Route
from echoic.toolbus.references.words import PUTS_MAX, Chunk, Put, decode_put, encode_chunk, encode_get, encode_put
from tests.papers.reference_puppets import Puppet, eventually, get_of, place
from tests.papers.reference_scripts import GET_X, started, with_tools
from tests.papers.reference_workshop import text_of
from tests.scripts.running.test_holding import OWNER, event, machine_of, run_out
from tests.toolbus.conftest import MakeBus


class Desk:
    """The custody of a bus without tools, and what the machine was fed."""

    def __init__(self) -> None:
        self.fed: list[tuple[Input, bool]] = []
        self.custody = Custody(self._feed, lambda: None, ValueOptions(threshold_bytes=0))

    def _feed(self, heard: Input) -> None:
        self.fed.append((heard, self.custody.busy))

    def put(self, variable: int, *path: int, size: int = 5) -> Put:
        return Put(0, variable, BUS, (), path, ReferenceKind.STR, "", 0, size, epoch=self.custody.epoch)

    def keep(self, *texts: str) -> list[Reference]:
        """Let the bus have texts, and return the references to them."""
        every = self.custody.member.part((TermList(*texts),)).references
        return [self.custody.arrive(self.put(each.variable, *each.path, size=each.size)) for each in every]


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.custody.member.close()


# Time


@pytest.mark.system
def test_a_script_that_guards_itself_by_a_timeout_is_not_stopped_by_a_tool_that_fetches_nothing(
    make_bus: MakeBus,
) -> None:
    late = '(rec-value(T, Z?) + snd-cancel(T) delay(msec(1))) . printf("late") . rec-msg(never)'
    bus = make_bus(
        with_tools(f"{GET_X} . snd-eval(T, use(X)) . {late}"),
        threshold_bytes=0,
        output=(printed := []).append,
        limits=BusLimits(grace_seconds=0.1),
    )
    with Puppet(started(bus), "source") as source, Puppet(bus.address, "sink"):
        source.answer("val(<reference(0)>)", source.put(1, 1000))
        assert eventually(lambda: printed), bus.warnings()
        assert not source.finished, "the tool may still come for it"


def test_who_waits_too_long_for_a_tool_goes_on_once_and_the_value_is_held_on() -> None:
    fed: list[Input] = []
    holds = Holds(fed.append, seconds=0)
    holds.begin(2, 5, 7)
    assert eventually(lambda: fed == [Delivered(7)])
    assert len(holds) == 1
    holds.end(2, [5])
    assert fed == [Delivered(7)]
    assert len(holds) == 0


def test_something_is_under_way_until_the_machine_has_heard_of_it(desk: Desk) -> None:
    """A virtual clock skips ahead when nothing is."""
    kept = desk.custody.member.part(("abc",)).references[0].variable
    reference = desk.custody.arrive(desk.put(kept, 0))
    desk.custody.fetch_for_machine(reference)
    assert eventually(lambda: desk.fed == [(Fetched(reference, "abc"), True)])
    assert eventually(lambda: not desk.custody.busy)
    lengths: list[int] = []
    holds = Holds(lambda _: lengths.append(len(holds)))
    holds.begin(2, 5, 7)
    holds.end(2, [5])
    assert lengths == [1]


# Room


def test_a_value_for_which_the_bus_has_no_room_is_lost_and_not_its_tool(desk: Desk) -> None:
    correspondence = Correspondence(desk.custody, 2)
    put = dataclasses.replace(desk.put(1, size=2**50), source=2, transaction=1, with_value=True)
    assert correspondence.hear(encode_put(put)) is None
    assert correspondence.hear(encode_chunk(Chunk(1, b"abc", last=True))) is None
    heard = correspondence.hear(Message(MessageKind.EVENT, 1, (Term("e", place(0)),), REFERRING))
    assert heard is not None
    assert heard.values[0].args[0].name == "lost-value"  # type: ignore[union-attr]


@pytest.mark.system
def test_nothing_is_left_of_what_was_sent_to_a_tool_that_is_gone(make_bus: MakeBus) -> None:
    sendings = Exchange.of_process()._sendings  # noqa: SLF001 - what nobody sees
    bus = make_bus(with_tools(f'snd-do(T, use("{text_of(400_000)}")) . rec-msg(never)'), threshold_bytes=0)
    with Puppet(started(bus), "source"), Puppet(bus.address, "sink") as sink:
        _, (put,) = sink.told(MessageKind.DO)
        before = len(sendings)
        sink.say(encode_get(dataclasses.replace(get_of(put, sink.number), route=Route.STREAMED)))
        assert eventually(lambda: len(sendings) == before + 1), "it has more than a window"
        sink.close()
        assert eventually(lambda: len(sendings) == before)


# Numbers


class Told:
    """The bus's end of a conversation that goes nowhere."""

    name = "sink"

    def __init__(self) -> None:
        self.said: list[Message] = []

    def say(self, message: Message) -> None:
        self.said.append(message)


def test_a_message_with_more_values_than_one_may_refer_to_is_said_when_the_bus_has_them(desk: Desk) -> None:
    custody, line, count = desk.custody, Told(), PUTS_MAX + 1
    custody.join(2, line)
    kept = custody.member.part((TermList(*map(str, range(count))),)).references[0].variable
    references = [custody.arrive(desk.put(kept, 0, number)) for number in range(count)]
    delivery = Delivery(custody, lambda _: None, lambda: None)
    delivery.tell(2, line, ToTool.DO, 1, (Term("use", references, "a text"),), None)
    assert eventually(lambda: delivery.turn() or not delivery.busy)
    *puts, told = line.said
    assert {decode_put(put).kind: decode_put(put).count for put in puts} == {
        ReferenceKind.LIST: len(references),
        ReferenceKind.STR: 0,
    }
    assert told.values == (Term("use", place(0), place(1)),)
    assert custody.member.statistics().kept == kept + 1, "nothing is left of the first try"


def test_the_values_of_a_tool_that_leaves_are_fetched_a_few_at_a_time_and_told_together() -> None:
    references = tuple(Reference(1, number, (), ReferenceKind.STR, 3) for number in range(20_000))
    coming: deque[Future[Value]] = deque()
    told: list[list[Fetched]] = []

    def fetch(_: Reference) -> "Future[Value]":
        coming.append(Future())
        return coming[-1]

    Promotion(references, fetch, told.append).start()
    while coming:
        assert len(coming) < 100
        assert not told
        coming.popleft().set_result("abc")
    assert [sorted(each.reference.variable for each in every) for every in told] == [list(range(20_000))]


def calls_in(act: Callable[[], object]) -> int:
    """Return how many functions are called: as much as there is to do, whatever else the machine does."""
    calls: list[str] = []
    sys.setprofile(lambda _, what, __: calls.append(what))
    try:
        act()
    finally:
        sys.setprofile(None)
    return len(calls)


def test_values_that_arrive_together_are_put_into_their_places_together() -> None:
    def work(count: int) -> int:
        fetched = [Fetched(OWNER.reference(f"text {number}"), f"text {number}") for number in range(count)]
        machine = machine_of("rec-event(T, e(V?)) . rec-msg(never)")
        event(machine, Term("e", [each.reference for each in fetched]))
        run_out(machine)

        def arrive() -> None:
            for each in fetched:
                machine.receive(each, 0)
            run_out(machine)

        calls = calls_in(arrive)
        assert machine.holders() == {}
        return calls

    assert work(400) < 3 * work(200)


class Walked(dict[Reference, tuple[str, ...]]):
    """Counts how often somebody looks at everything."""

    times = 0

    def items(self) -> ItemsView[Reference, tuple[str, ...]]:
        self.times += 1
        return super().items()


def test_who_holds_what_is_found_by_looking_at_everything_once(desk: Desk) -> None:
    puts = [desk.put(number, 0) for number in range(1, 100)]
    holders = Walked({desk.custody.arrive(put): (f"`X{put.variable}`",) for put in puts})
    states = desk.custody.states(holders, {})
    assert [each.holders for each in states] == [(f"`X{number}`",) for number in range(1, 100)]
    assert holders.times == 1
