"""Shared objects in the core: the master's order, a secondary's view, and what peers must not be able to do."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import echoic
from echoic.channels import Concentrator, Greeting, Master, Message, Neighbour, Refused, Secondary, Session
from echoic.channels.messages import Done, Unwatch, Update, Watch, Write, encode_message
from echoic.channels.shared_state import VALUE_BYTES_MAX, WATCHERS_MAX, WINDOW, WRITERS_MAX
from echoic.channels.sharing import LAZY_NS, OBJECTS_MAX
from echoic.errors import EchoicError, LimitExceededError, MalformedBatchError, RefusedError, UnreachableError
from echoic.formats import ARCHITECTURES, NATIVE, Format, Record
from echoic.wire import Batch, Frame, FrameKind, FrameReader, Hello, encoder_of

SECOND = 1_000_000_000
RANDOM = "00112233445566778899aabbccddeeff"
ID = f"m:1/shared/1-{RANDOM}"


@echoic.event
class Box:
    layer: int = 0
    scale: float = 1.0
    name: str = ""


@echoic.event
class Series:
    count: int = 0
    values: echoic.Array[echoic.float64, "count"] = ()
    name: str = ""


FORMAT = Format.of(Box)


def record(event: object) -> bytes:
    return bytes(Batch.of([event], type(event)).records)


def shown(values: bytes, format: Format = FORMAT) -> dict[str, object]:
    found = Batch.of_record(values, format).events()[0]
    assert isinstance(found, Record)
    return dict(found.items())


def master(*, policy: str = "prompt") -> Master:
    return Master(ID, FORMAT, record(Box(1, 2.0, "a")), policy)


def write(number: int, *fields: str, box: Box, token: int = FORMAT.token) -> Write:
    return Write(ID, number, token, fields, record(box))


def test_changes_of_different_fields_are_merged_and_each_makes_a_version() -> None:
    home = master()
    assert home.receive("a", write(1, "layer", box=Box(5, 9.0, "ignored")))
    assert home.receive("b", write(1, "name", box=Box(6, 9.0, "b")))
    assert shown(home.view.values) == {"layer": 5, "scale": 2.0, "name": "b"}
    assert home.view.version == 2


def test_of_two_changes_of_a_field_the_one_that_comes_last_holds() -> None:
    home = master()
    home.receive("a", write(7, "layer", box=Box(5)))
    home.receive("b", write(1, "layer", box=Box(6)))
    assert shown(home.view.values)["layer"] == 6


def test_a_change_that_comes_twice_is_applied_once() -> None:
    home = master()
    assert home.receive("a", write(3, "layer", box=Box(5)))
    home.receive("b", write(1, "layer", box=Box(6)))
    assert not home.receive("a", write(3, "layer", box=Box(5)))
    assert (shown(home.view.values)["layer"], home.view.version) == (6, 2)
    assert home.update("a").confirmed == 3


def test_with_an_array_goes_the_field_that_tells_its_length() -> None:
    format = Format.of(Series)
    home = Master(ID, format, record(Series(1, [1.0], "a")))
    home.apply(("values",), record(Series(3, [1.0, 2.0, 3.0], "b")))
    found = shown(home.view.values, format)
    assert (found["count"], list(found["values"]), found["name"]) == (3, [1.0, 2.0, 3.0], "a")


def test_records_stay_in_the_layout_of_the_master_whatever_machine_that_is() -> None:
    format = FORMAT.on(next(each for each in ARCHITECTURES.values() if each.byte_order != NATIVE.byte_order))
    values = b"".join(encoder_of(format).encode((Box(1, 2.0, "a"),))[0])
    home = Master(ID, format, values)
    home.apply(("layer",), b"".join(encoder_of(format).encode((Box(5),))[0]))
    assert shown(home.view.values, format) == {"layer": 5, "scale": 2.0, "name": "a"}


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (write(1, "layer", box=Box(), token=1), RefusedError),
        (write(1, "depth", box=Box()), RefusedError),
        (write(1, box=Box()), RefusedError),
        (Write(ID, 1, FORMAT.token, ("layer",), b""), MalformedBatchError),
        (Write(ID, 1, FORMAT.token, ("layer",), b"\xff" * FORMAT.size), MalformedBatchError),
        (Write(ID, 1, FORMAT.token, ("name",), bytes(VALUE_BYTES_MAX + 1)), LimitExceededError),
    ],
)
def test_what_is_no_change_of_the_object_is_refused_and_changes_nothing(wrong: Write, error: type[EchoicError]) -> None:
    home = master()
    before = home.view
    with pytest.raises(error):
        home.receive("a", wrong)
    assert home.view == before
    assert home.update("a").confirmed == 0


def test_values_that_become_too_large_together_are_refused() -> None:
    @echoic.event
    class Two:
        one: str = ""
        other: str = ""

    half = "x" * (VALUE_BYTES_MAX // 2)
    home = Master(ID, Format.of(Two), record(Two(half, "")))
    with pytest.raises(LimitExceededError, match="limit is 65536"):
        home.apply(("other",), record(Two("", half)))


def test_the_number_of_watchers_and_of_remembered_writers_is_limited() -> None:
    home = master()
    for number in range(WATCHERS_MAX):
        home.watch(f"hub{number}", FORMAT.descriptor)
    home.watch("hub0", FORMAT.descriptor)
    with pytest.raises(LimitExceededError, match="which is the limit"):
        home.watch("another", FORMAT.descriptor)
    home.receive("hub0", write(1, "layer", box=Box(1)))
    for number in range(WRITERS_MAX):
        home.receive(f"stranger{number}", write(9, "layer", box=Box(number)))
    assert home.update("hub0").confirmed == 1
    assert home.update("stranger0").confirmed == 0
    assert home.update(f"stranger{WRITERS_MAX - 1}").confirmed == 9


def secondary() -> Secondary:
    made = Secondary(ID, FORMAT, record(Box(1, 2.0, "a")), 4)
    made.take(Update(ID, 4, record(Box(1, 2.0, "a"))))
    return made


def test_a_secondary_shows_what_was_shipped_until_the_master_answers() -> None:
    made = Secondary(ID, FORMAT, record(Box(1, 2.0, "a")), 4)
    assert (shown(made.view.values)["layer"], made.view.version, made.view.stale) == (1, 4, True)
    assert made.address == "m:1"


def test_a_secondary_shows_its_own_writes_on_top_until_they_are_confirmed() -> None:
    made = secondary()
    (sent,) = made.write(1, ("layer",), record(Box(5)))
    assert sent.fields == ("layer",)
    made.take(Update(ID, 5, record(Box(9, 3.0, "b")), confirmed=0))
    assert shown(made.view.values) == {"layer": 5, "scale": 3.0, "name": "b"}
    made.take(Update(ID, 7, record(Box(8, 3.0, "b")), confirmed=1))
    assert shown(made.view.values) == {"layer": 8, "scale": 3.0, "name": "b"}
    assert made.unconfirmed == 0


def test_an_earlier_version_does_not_replace_a_later_one() -> None:
    made = secondary()
    made.take(Update(ID, 6, record(Box(6))))
    made.take(Update(ID, 5, record(Box(5))))
    assert (shown(made.view.values)["layer"], made.view.version) == (6, 6)


def test_a_version_that_only_a_parcel_claims_does_not_shut_the_master_out() -> None:
    made = Secondary(ID, FORMAT, record(Box(1)), 2**60)
    made.take(Update(ID, 3, record(Box(3))))
    assert (shown(made.view.values)["layer"], made.view.version) == (3, 3)


def test_what_is_written_beyond_the_window_becomes_one_change() -> None:
    made = secondary()
    sent = [each for number in range(1, 3 * WINDOW) for each in made.write(number, ("layer",), record(Box(number)))]
    assert len(sent) == WINDOW
    made.write(3 * WINDOW, ("name",), record(Box(name="z")))
    assert made.unconfirmed == WINDOW + 1
    (held,) = made.take(Update(ID, 5, record(Box(1, 2.0, "a")), confirmed=1))
    assert held.number == WINDOW + 1
    assert set(held.fields) == {"layer", "name"}
    assert shown(held.values) == {"layer": 3 * WINDOW - 1, "scale": 2.0, "name": "z"}


def test_after_a_loss_what_is_not_confirmed_is_sent_again_in_order() -> None:
    made = secondary()
    for number in (1, 2, 3):
        made.write(number, ("layer",), record(Box(number)))
    made.lose("gone", 0)
    assert made.view.stale
    assert made.write(4, ("name",), record(Box(name="z"))) == []
    again = made.take(Update(ID, 5, record(Box(1)), confirmed=1))
    assert [each.number for each in again] == [2, 3, 4]


def test_a_write_that_the_master_refuses_is_taken_back() -> None:
    made = secondary()
    made.write(1, ("layer",), record(Box(5)))
    made.refuse(1)
    assert shown(made.view.values)["layer"] == 1
    assert made.unconfirmed == 0


@pytest.mark.parametrize("id", ["", "m:1", "m:1/shared/", "m:1/shared/x-00112233", "a b:1/shared/1-00112233"])
def test_what_is_no_id_is_refused(id: str) -> None:
    with pytest.raises(RefusedError, match="expected the id of a shared object"):
        Secondary(id, FORMAT, record(Box()), 0)


changes = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["layer", "scale", "name"]), st.integers(0, 99)))


@given(changes, st.randoms(use_true_random=False))
def test_copies_agree_in_the_end_whatever_order_messages_take(
    script: list[tuple[str, str, int]], random: Random
) -> None:
    """Messages of one link keep their order; those of different links are delivered in any."""
    home = master()
    copies = {hub: Secondary(ID, FORMAT, record(Box(1, 2.0, "a")), 0) for hub in "ab"}
    links: dict[tuple[str, str], list[Write | Update]] = {(hub, way): [] for hub in "ab" for way in ("out", "in")}
    for hub, copy in copies.items():
        copy.take(home.watch(hub, FORMAT.descriptor))

    def deliver() -> bool:
        waiting = [key for key, messages in links.items() if messages]
        if not waiting:
            return False
        hub, way = random.choice(waiting)
        message = links[hub, way].pop(0)
        if isinstance(message, Write):
            home.receive(hub, message)
            for other in "ab":
                links[other, "in"].append(home.update(other))
        else:
            before = copies[hub].view.version
            links[hub, "out"] += copies[hub].take(message)
            assert copies[hub].view.version >= before
        return True

    for number, (hub, field, value) in enumerate(script, 1):
        box = Box(value, float(value), str(value))
        links[hub, "out"] += copies[hub].write(number, (field,), record(box))
        assert shown(copies[hub].view.values)[field] == getattr(box, field)
        if random.random() < 0.6:
            deliver()
    while deliver():
        pass
    assert home.view.version == len(script)
    for copy in copies.values():
        assert (copy.view, copy.unconfirmed) == (home.view, 0)


class Pair:
    """The hub of a master and one with a secondary; frames are carried when a test says so."""

    def __init__(self, policy: str = "prompt") -> None:
        self.home, self.away = Concentrator("m", "m:1", "home"), Concentrator("o", "o:1", "away")
        self.meet()
        self.master = self.home.sharing.share(FORMAT, record(Box(1, 2.0, "a")), policy, RANDOM)
        made = self.away.sharing.copy(self.master.id, FORMAT, record(Box(1, 2.0, "a")), 0)
        assert isinstance(made, Secondary)
        self.secondary = made
        self.carry()

    def meet(self) -> None:
        sides = [
            Greeting(
                Hello(hub=hub.id, address=hub.address), hub.known, dialled=hub is self.away, fresh=7, address=place
            )
            for hub, place in ((self.away, "m:1"), (self.home, ""))
        ]
        streams, readers = [side.opening for side in sides], [FrameReader(), FrameReader()]
        while any(streams):
            streams = [
                b"".join(side.receive(frame) for frame in readers[number].receive(streams[1 - number]))
                for number, side in enumerate(sides)
            ]
        for hub, side in zip((self.away, self.home), sides, strict=True):
            hub.meet(side)

    def carry(self) -> int:
        """Carry frames until there are none; return how many there were."""
        carried = 0
        while True:
            moved = 0
            for hub, other in ((self.away, self.home), (self.home, self.away)):
                outbox = hub.neighbours[other.id].session.outbox
                data = b"".join(outbox)
                outbox.clear()
                for frame in FrameReader().receive(data):
                    other.receive(hub.id, frame)
                    moved += 1
            carried += moved
            if not moved:
                return carried

    def tell_home(self, message: Message) -> list[Message]:
        """Let the hub that has the secondary ask something; return the answers."""
        answers: list[Message] = []
        self.away.ask("m:1", message, answers.append)
        self.carry()
        return answers


def control(message: Message) -> Frame:
    return Frame(FrameKind.CONTROL, 0, memoryview(encode_message(0, message)))


def layer(shared: Master | Secondary) -> object:
    return shown(shared.view.values)["layer"]


def test_a_change_at_the_master_reaches_the_secondary_with_one_frame() -> None:
    pair = Pair()
    assert not pair.secondary.view.stale
    pair.home.sharing.changed.clear()
    pair.away.sharing.changed.clear()
    pair.home.sharing.write(pair.master, ("layer",), record(Box(5)))
    assert len(pair.home.neighbours["o"].session.outbox) == 1
    pair.carry()
    assert pair.secondary.view == pair.master.view
    assert pair.home.sharing.changed == {pair.master.id: pair.master}
    assert pair.away.sharing.changed == {pair.master.id: pair.secondary}


def test_a_change_at_the_secondary_reaches_the_master_and_is_confirmed() -> None:
    pair = Pair("lazy")
    pair.away.sharing.write(pair.secondary, ("layer",), record(Box(5)))
    assert layer(pair.master) == 1
    pair.carry()
    assert layer(pair.master) == 5
    assert pair.secondary.view == pair.master.view
    assert pair.secondary.unconfirmed == 0


def test_a_lazy_master_tells_many_changes_by_one_update() -> None:
    pair = Pair("lazy")
    pair.home.tick(10 * SECOND)
    pair.carry()
    for number in range(100):
        pair.home.sharing.write(pair.master, ("layer",), record(Box(number)))
    assert pair.carry() == 0
    pair.home.tick(10 * SECOND + LAZY_NS)
    pair.carry()
    assert (layer(pair.secondary), pair.secondary.view.version) == (99, 100)
    pair.home.sharing.write(pair.master, ("layer",), record(Box(7)))
    pair.home.tick(10 * SECOND + LAZY_NS + 1)
    pair.carry()
    assert layer(pair.secondary) == 99
    pair.home.tick(10 * SECOND + 2 * LAZY_NS)
    pair.carry()
    assert layer(pair.secondary) == 7


def test_a_pull_fetches_what_a_lazy_master_has_not_told() -> None:
    pair = Pair("lazy")
    pair.home.sharing.write(pair.master, ("layer",), record(Box(5)))
    answers: list[Message] = []
    pair.away.sharing.pull(pair.secondary, answers.append)
    pair.carry()
    assert answers == [Done()]
    assert pair.secondary.view == pair.master.view
    pair.home.sharing.pull(pair.master, answers.append)
    assert answers == [Done(), Done()]


def test_a_pull_comes_behind_what_was_written_before() -> None:
    pair = Pair()
    for number in range(1, 3 * WINDOW):
        pair.away.sharing.write(pair.secondary, ("layer",), record(Box(number)))
    states: list[tuple[object, int]] = []
    pair.away.sharing.pull(pair.secondary, lambda _: states.append((layer(pair.master), pair.secondary.unconfirmed)))
    pair.carry()
    assert states == [(3 * WINDOW - 1, 0)]


def test_what_was_written_before_a_release_is_sent() -> None:
    pair = Pair()
    for number in range(1, 3 * WINDOW):
        pair.away.sharing.write(pair.secondary, ("layer",), record(Box(number)))
    pair.away.sharing.release(pair.secondary)
    pair.carry()
    assert layer(pair.master) == 3 * WINDOW - 1


def test_a_watcher_whose_link_is_down_is_told_the_last_version_when_it_is_up() -> None:
    pair = Pair()
    pair.home.broken("o", SECOND)
    for number in range(1000):
        pair.home.sharing.write(pair.master, ("layer",), record(Box(number)))
    assert len(pair.home.neighbours["o"].session.outbox) == 0
    pair.away.broken("m", SECOND)
    assert pair.secondary.view.stale
    pair.meet()
    pair.home.tick(2 * SECOND)
    pair.away.tick(2 * SECOND)
    assert pair.carry() < 10
    assert (layer(pair.secondary), pair.secondary.view.version) == (999, 1000)
    pair.away.tick(3 * SECOND)
    assert not pair.secondary.view.stale


def test_a_copy_in_the_masters_own_hub_is_the_master() -> None:
    pair = Pair()
    assert pair.home.sharing.copy(pair.master.id, FORMAT, record(Box(8)), 99) is pair.master
    assert pair.away.sharing.copy(pair.master.id, FORMAT, record(Box(8)), 0) is pair.secondary


def test_who_takes_an_object_for_another_type_is_refused() -> None:
    pair = Pair()
    other = Format.of(Series)
    with pytest.raises(RefusedError, match="another layout"):
        pair.away.sharing.copy(pair.master.id, other, record(Series()), 0)
    (answer,) = pair.tell_home(Watch(pair.master.id, other.descriptor))
    assert isinstance(answer, Refused)
    assert answer.kind == "RefusedError"


def test_a_peer_that_writes_what_is_no_change_is_refused_and_the_rest_goes_on() -> None:
    pair = Pair()
    for wrong in (
        Write(pair.master.id, 1, 99, ("layer",), record(Box())),
        Write(pair.master.id, 1, FORMAT.token, ("layer",), b"short"),
        Write("m:1/shared/9-00", 1, FORMAT.token, ("layer",), record(Box())),
        Unwatch("nothing"),
    ):
        (answer,) = pair.tell_home(wrong)
        assert isinstance(answer, Refused)
    pair.home.sharing.write(pair.master, ("layer",), record(Box(5)))
    pair.carry()
    assert layer(pair.secondary) == 5


def test_updates_that_nobody_asked_for_are_passed_over() -> None:
    pair = Pair()
    valid = Update(pair.master.id, 50, record(Box(66)))
    pair.away.neighbours["x"] = Neighbour("x", "x:1", "stranger", Session(1))
    pair.home.receive("o", control(valid))
    pair.away.receive("x", control(valid))
    pair.away.receive("m", control(Update(f"m:1/shared/9-{RANDOM}", 50, record(Box(66)))))
    pair.away.receive("m", control(Update(pair.master.id, 51, b"nonsense")))
    assert (layer(pair.master), pair.master.view.version) == (1, 0)
    assert (layer(pair.secondary), pair.secondary.view.version) == (1, 0)


def test_an_object_that_is_not_shared_any_more_ends_its_copies() -> None:
    pair = Pair()
    pair.home.sharing.release(pair.master)
    pair.carry()
    assert pair.secondary.view.stale
    assert layer(pair.secondary) == 1
    for shared, core in ((pair.secondary, pair.away), (pair.master, pair.home)):
        with pytest.raises(UnreachableError, match="not shared any more"):
            core.sharing.write(shared, ("layer",), record(Box(5)))
        answers: list[Message] = []
        core.sharing.pull(shared, answers.append)
        assert isinstance(answers[0], Refused)


def test_a_secondary_that_is_released_is_told_no_more() -> None:
    pair = Pair()
    pair.away.sharing.release(pair.secondary)
    pair.carry()
    assert pair.master.watchers == ()
    assert len(pair.away.sharing) == 0


def test_a_hub_has_a_limited_number_of_objects() -> None:
    core = Concentrator("m", "m:1", "home")
    for _ in range(OBJECTS_MAX):
        core.sharing.share(FORMAT, record(Box()), "prompt", RANDOM)
    with pytest.raises(LimitExceededError, match="limit is 4096"):
        core.sharing.share(FORMAT, record(Box()), "prompt", RANDOM)
    with pytest.raises(LimitExceededError, match="limit is 4096"):
        core.sharing.copy(f"o:1/shared/1-{RANDOM}", FORMAT, record(Box()), 0)


def test_a_secondary_of_an_object_that_its_own_hub_does_not_know_is_at_its_end() -> None:
    core = Concentrator("m", "m:1", "home")
    made = core.sharing.copy(f"m:1/shared/7-{RANDOM}", FORMAT, record(Box(3)), 2)
    assert isinstance(made, Secondary)
    assert made.phase == "ended"
    assert (layer(made), made.view.stale) == (3, True)
