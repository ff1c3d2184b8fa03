"""Inter-tool communication, "Reachability", "Finalization" and "Termination": T7 to T10 of the check-list.

A tool made by hand stands for whichever side a claim of the thesis is about, and a real one for the other.
"""

import threading

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from echoic.terms import Term
from echoic.toolbus.protocol import Message, MessageKind
from echoic.toolbus.references.words import (
    Registration,
    encode_end,
    encode_finished,
)
from tests.papers.reference_puppets import Puppet, PuppetBus, eventually, fetch, listen
from tests.papers.reference_scripts import GET_X, NEXT, go_on, started, with_tools
from tests.papers.reference_workshop import MEGABYTE, Sink, blob_of, digest, rooms, text_of, until
from tests.toolbus.conftest import MakeBus

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("runtime_folder")]


# Reachability


def test_t07_who_sends_waits_for_the_ack_and_fin_never_comes_before_it(make_bus: MakeBus, printed: list[str]) -> None:
    bus = make_bus(
        with_tools(
            f'{GET_X} . snd-do(T, use(X)) . X := "" . printf("after") . rec-msg(never)',
            more='process Q is rec-msg(go) . printf("free") process R is snd-msg(go)',
            also=", Q, R",
        )
    )
    with Puppet(started(bus), "source") as source, Puppet(bus.address, "sink") as sink, source.offer(b"abc"):
        source.answer("val(<reference(0)>)", source.put(1, 3))
        told, (put,) = sink.told(MessageKind.DO)
        assert eventually(lambda: "free" in printed), "others go on"
        assert source.silent(MessageKind.FIN)
        assert "after" not in printed
        sink.say(Message(MessageKind.VOID, told.transaction))  # done with it, which is not what an ACK says
        assert source.silent(MessageKind.FIN)
        assert fetch(put, sink.number) == b"abc", "it can be had as long as there is no ACK"
        sink.acknowledge(put)
        assert eventually(lambda: "after" in printed)
        assert eventually(lambda: source.finished == [1])


def test_t07_a_tool_acknowledges_what_it_has_completely_received_and_not_before(
    make_bus: MakeBus, printed: list[str]
) -> None:
    bus = make_bus(with_tools(f'{GET_X} . snd-do(T, use(X)) . X := "" . printf("after") . rec-msg(never)'))
    content = blob_of(300_000)
    with rooms(1) as (room,), Puppet(started(bus), "source") as source, source.offer(content) as port:
        room.connect("Sink", bus.address)
        port.serving.clear()
        source.answer("val(<reference(0)>)", source.put(1, len(content)))
        assert eventually(lambda: port.gets)
        assert source.silent(MessageKind.FIN)
        assert printed == []
        assert room.call("Sink", "seen") == []
        port.serving.set()
        assert eventually(lambda: source.finished == [1])
        assert printed == ["after"]
        assert until(lambda: room.call("Sink", "seen") == [digest(content.decode())])


def test_t07_a_value_stays_retrievable_when_the_bus_drops_it_before_a_delayed_ack(make_bus: MakeBus) -> None:
    """The last variable that held it is overwritten; only the delivery of another process refers to it then."""
    bus = make_bus(
        with_tools(
            f'snd-msg(sink(T)) . {GET_X} . snd-msg(give(X)) . X := "" . {NEXT} . shutdown(1)',
            more="process Q is let V: str, T: sink in rec-msg(sink(T?)) . rec-msg(give(V?)) . snd-do(T, use(V)) endlet",
            also=", Q",
        )
    )
    with Puppet(started(bus), "source") as source, Puppet(bus.address, "sink") as sink, source.offer(b"abc"):
        source.answer("val(<reference(0)>)", source.put(1, 3))
        _, (put,) = sink.told(MessageKind.DO)
        assert source.silent(MessageKind.FIN)
        assert fetch(put, sink.number) == b"abc"
        sink.acknowledge(put)
        assert eventually(lambda: source.finished == [1])
        go_on(source)
        assert bus.wait(20)


DROPS = {
    "overwrite": (f'{GET_X} . {NEXT} . X := "" . rec-msg(never)', ""),
    "scope exit": (
        f"let V: str in snd-eval(S, get) . rec-value(S, val(V?)) . {NEXT} endlet . tau . rec-msg(never)",
        "",
    ),
    "process end": (
        "create(Q(S), N?) . rec-msg(never)",
        f"process Q(S: source) is let V: str in snd-eval(S, get) . rec-value(S, val(V?)) . {NEXT} endlet",
    ),
    "unsubscribe": (
        f'subscribe(n(<str>)) . {GET_X} . snd-note(n(X)) . X := "" . {NEXT} . unsubscribe(n(<str>)) . rec-msg(never)',
        "",
    ),
    "note taken": (
        f'subscribe(n(<str>)) . {GET_X} . snd-note(n(X)) . X := "" . {NEXT} . rec-note(n(Y?)) . Y := 0 . rec-msg(x)',
        "",
    ),
    "list": (f'{GET_X} . Z := [X, X] . X := "" . {NEXT} . Z := [] . rec-msg(never)', ""),
    "queue": (f'snd-eval(S, get) . {NEXT} . rec-value(S, val(X?)) . X := "" . rec-msg(never)', ""),
}


@pytest.mark.parametrize("way", DROPS)
def test_t08_fin_comes_when_the_last_reference_goes_and_not_before(way: str, make_bus: MakeBus) -> None:
    body, more = DROPS[way]
    bus = make_bus(with_tools(body, "X: str, Y: term, Z: term, N: int", more))
    with Puppet(started(bus), "source") as source, Puppet(bus.address, "sink"):
        source.answer("val(<reference(0)>)", source.put(5, 300))
        assert eventually(lambda: len(bus.references()) == 1)
        assert source.silent(MessageKind.FIN)
        go_on(source)
        assert eventually(lambda: source.finished == [5]), "nothing else has to happen for it"
        assert bus.references() == ()
        assert bus.statistics().references == 0


def test_t08_the_loss_of_a_tool_that_was_told_gives_its_references_back(make_bus: MakeBus) -> None:
    bus = make_bus(with_tools(f'{GET_X} . snd-do(T, use(X)) . X := "" . printf("after") . rec-msg(never)'))
    with Puppet(started(bus), "source") as source:
        with Puppet(bus.address, "sink") as sink:
            source.answer("val(<reference(0)>)", source.put(5, 300))
            sink.told(MessageKind.DO)
            assert source.silent(MessageKind.FIN)
        assert eventually(lambda: source.finished == [5])


def test_t08_people_can_see_who_has_and_who_holds_what(make_bus: MakeBus) -> None:
    """What `echoic bus refs` shows."""
    bus = make_bus(with_tools(f"{GET_X} . Y := X . snd-do(T, use(X)) . rec-msg(never)"))
    with Puppet(started(bus), "source") as source, Puppet(bus.address, "sink") as sink:
        source.answer("val(<reference(0)>)", source.put(5, 300))
        _, (put,) = sink.told(MessageKind.DO)
        assert eventually(lambda: bus.references()[0].in_flight)
        (state,) = bus.references()
        assert (state.owner, state.variable, state.bytes) == ("source(1)", 5, 300)
        assert state.in_flight == ("sink(2)",)
        assert sum("P" in holder for holder in state.holders) >= 2, "X and Y"
        assert "str" in state.signature
        assert 0 <= state.age_seconds < 60
        sink.acknowledge(put)
        assert eventually(lambda: bus.references()[0].in_flight == ())


def test_t08_two_buses_in_one_process_count_for_themselves(make_bus: MakeBus) -> None:
    """The tools have the same numbers at both, and so have their variables."""
    held, dropped = (make_bus(with_tools(f"{GET_X} . {act} . rec-msg(never)")) for act in ("tau", 'X := ""'))
    with Puppet(started(held), "source") as one, Puppet(held.address, "sink"):
        one.answer("val(<reference(0)>)", one.put(5, 300))
        assert eventually(lambda: len(held.references()) == 1)
        with Puppet(started(dropped), "source") as other, Puppet(dropped.address, "sink"):
            other.answer("val(<reference(0)>)", other.put(5, 300))
            assert eventually(lambda: other.finished == [5])
        assert len(held.references()) == 1
        assert one.finished == []


OPERATIONS = st.sampled_from(
    ["get A", "get B", "A:=B", "B:=A", "A:=0", "B:=0", "L:=[A,B]", "L:=0", "note", "take", "A:=L"]
)


@settings(
    max_examples=12,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(operations=st.lists(OPERATIONS, min_size=1, max_size=14))
def test_t08_counts_are_what_tracing_finds_after_every_step(operations: list[str], make_bus: MakeBus) -> None:
    """The oracle holds the values in dictionaries; what it cannot reach must be finished, and nothing else."""
    atoms, alive, held = [], [], {"A": frozenset(), "B": frozenset(), "L": frozenset()}
    notes: list[frozenset[int]] = []
    variable = 0
    for operation in operations:
        match operation.split():
            case ["get", name]:
                variable += 1
                held[name] = frozenset({variable})
                atoms.append(f"snd-eval(S, get) . rec-value(S, val({name}?))")
            case ["note"]:
                notes.append(held["A"])
                atoms.append("snd-note(n(A))")
            case ["take"]:
                if not notes:
                    continue
                held["B"] = notes.pop(0)
                atoms.append("rec-note(n(B?))")
            case ["L:=[A,B]"]:
                held["L"] = held["A"] | held["B"]
                atoms.append("L := [A, B]")
            case ["A:=L"]:
                held["A"] = held["L"]
                atoms.append("A := L")
            case [assignment]:
                target, value = assignment.split(":=")
                held[target] = held.get(value, frozenset())
                atoms.append(f"{target} := {value}")
        atoms.append("snd-eval(S, mark) . rec-value(S, ok)")
        alive.append(frozenset().union(*held.values(), *notes))
    body = "subscribe(n(<term>)) . A := 0 . B := 0 . L := 0 . " + " . ".join(atoms or ["tau"])
    bus = make_bus(with_tools(f"{body} . rec-msg(never)", "A: term, B: term, L: term"))
    said = 0
    with Puppet(started(bus), "source") as source, Puppet(bus.address, "sink"):
        for reachable in alive:
            while (asked := source.hear(MessageKind.EVAL)).values == (Term("get"),):
                said += 1
                put = source.put(said, 100 + said)
                source.refer(MessageKind.VALUE, "val(<reference(0)>)", put, transaction=asked.transaction)
            dead = set(range(1, said + 1)) - reachable
            assert eventually(lambda dead=dead: set(source.finished) >= dead), (dead, source.finished)
            assert sorted(source.finished) == sorted(dead), "each once, and none that is alive"
            assert {each.variable for each in bus.references()} == reachable
            source.say(Message(MessageKind.VALUE, asked.transaction, (Term("ok"),)))
    bus.close()


def test_t08_after_quiescence_every_store_is_empty(make_bus: MakeBus, printed: list[str]) -> None:
    bus = make_bus(
        with_tools(
            """I := 0 . subscribe(n(<str>)) .
            ( if less(I, 30) then
                snd-eval(S, make-of(100000, I)) . rec-value(S, val(X?)) . snd-do(T, use(X)) . snd-note(n(X)) .
                snd-eval(T, echo(X)) . rec-value(T, val(Y?)) . snd-do(T, use(Y)) . rec-note(n(Y?)) . I := add(I, 1)
              fi
            * if equal(I, 30) then X := "" . Y := "" . printf("done") fi ) . rec-msg(never)""",
            "X: str, Y: str, I: int",
        ),
        threshold_bytes=0,
    )
    with rooms(2) as (one, other):
        one.connect("Source", started(bus))
        other.connect("Sink", bus.address)
        assert eventually(lambda: "done" in printed), bus.warnings()
        assert eventually(lambda: bus.references() == ())
        for room in (one, other):
            assert until(lambda room=room: room.exchange()["values"] == 0)


# Finalization and termination


def test_t09_after_fin_the_owner_has_its_memory_back(make_bus: MakeBus, printed: list[str]) -> None:
    size = 64 * MEGABYTE
    bus = make_bus(
        with_tools(
            f"""snd-eval(S, make-blob({size})) . rec-value(S, val(Z?)) . printf("held") . rec-event(S, go) .
            Z := 0 . printf("dropped") . rec-msg(never)"""
        )
    )
    with rooms(1) as (room,):
        room.connect("Source", started(bus))
        room.call("Source", "letgo")
        with Puppet(bus.address, "sink"):
            before = room.memory()["rss"]
            assert eventually(lambda: "held" in printed)
            assert room.memory()["rss"] > before + size * 3 // 4
            assert room.exchange()["values"] == 1
            room.call("Source", "say", "go")
            assert eventually(lambda: "dropped" in printed)
            assert until(lambda: room.exchange()["values"] == 0)
            assert until(lambda: room.memory()["rss"] < before + size // 4)


def greeted(room: object, listening: object, address: str, kind: str = "Source") -> PuppetBus:
    """Let a tool in a room connect to a puppet of a bus."""
    thread = threading.Thread(target=room.connect, args=(kind, address))  # type: ignore[attr-defined]
    thread.start()
    bus = PuppetBus(listening, Registration(3, 5, 0, 0, b"k" * 32))  # type: ignore[arg-type]
    thread.join()
    return bus


def test_t09_a_second_fin_and_one_for_nothing_do_no_harm() -> None:
    listening, address = listen()
    with rooms(1) as (room,), listening, greeted(room, listening, address) as bus:
        _, (first,) = bus.ask("make(1000)")
        _, (second,) = bus.ask("make(2000)")
        assert room.exchange()["values"] == 2
        bus.say(*encode_finished([first.variable]), *encode_finished([first.variable, first.variable, 10**9]))
        bus.ask("ping")
        assert until(lambda: room.exchange()["values"] == 1)
        _, (third,) = bus.ask("make(3000)")
        assert third.variable not in (first.variable, second.variable)
        bus.say(*encode_finished([second.variable, third.variable]))
        bus.ask("ping")
        assert until(lambda: room.exchange()["values"] == 0)


def test_t10_what_was_queued_comes_before_end() -> None:
    listening, address = listen()
    with rooms(1) as (room,), listening, greeted(room, listening, address) as bus:
        bus.stop_reading()
        saying = threading.Thread(target=room.call, args=("Source", "burst", "e", 50, 300_000))
        saying.start()
        bus.go_on_reading()
        saying.join(20)
        closing = threading.Thread(target=room.call, args=("Source", "close"))
        closing.start()
        bus.hear(MessageKind.END)
        said = [message.values[0] for message in bus.all if message.kind is MessageKind.EVENT]
        assert [each.name for each in said] == [f"e{number}" for number in range(50)]
        assert bus.all[-2].kind is MessageKind.DISCONNECT
        bus.close()  # upon reception of END, the remote side of the connection is closed
        closing.join(20)
        assert room.exchange()["values"] == 0


def test_t10_a_bus_that_ends_says_all_it_has_to_say_and_then_end(make_bus: MakeBus) -> None:
    bus = make_bus(with_tools('rec-event(S, go) . shutdown("bye")'))
    with Puppet(started(bus), "source") as source, Puppet(bus.address, "sink"):
        go = Message(MessageKind.EVENT, 1, (Term("go"),))
        source.say(go)
        (value,) = source.hear(MessageKind.TERMINATE).values
        assert value == "bye"
        source.say(encode_end())
        assert bus.wait(20)
        assert source.closed.wait(20)


def test_t10_an_attached_sink_gets_everything_before_the_bus_ends(make_bus: MakeBus) -> None:
    bus = make_bus(with_tools("rec-event(S, e(X?)) . snd-do(T, use(X)) . shutdown(1)"), threshold_bytes=0)
    bus.attach(sink := Sink(), executed=False)
    with rooms(1) as (room,):
        room.connect("Source", started(bus))
        room.call("Source", "say", "e", "str 500000")
        assert bus.wait(20)
    assert sink.seen() == [digest(text_of(500_000))]
