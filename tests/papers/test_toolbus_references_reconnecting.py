"""Inter-tool communication, "Reconnecting Tools": T23 of the check-list.

A wire that breaks is one matter: both sides are there, and know what the other has not heard. A program that was killed
is another: it has forgotten everything, so it is asked again what it has not answered, and its values are gone.
"""

import os
import random
import signal
from pathlib import Path

import pytest

from echoic.terms import Term
from echoic.toolbus.protocol import MessageKind
from tests.papers.reference_puppets import Meter, Puppet, eventually
from tests.papers.reference_scripts import GET_X, PASSIVE, started, with_tools
from tests.papers.reference_workshop import RUN, blob_of, digest, rooms, text_of, until
from tests.toolbus.conftest import MakeBus

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("runtime_folder")]


@pytest.mark.parametrize(("threshold", "options"), [(0, {}), (0, PASSIVE), (float("inf"), {})])
def test_t23_tools_that_are_cut_off_again_and_again_go_on_where_they_were(
    threshold: float, options: dict[str, str], make_bus: MakeBus
) -> None:
    """Whatever was on its way, directly, through the bus or in a message: it is said once, by the same tools."""
    rounds = 60
    bus = make_bus(
        with_tools(
            f"""I := 0 .
            ( if less(I, {rounds}) then
                snd-eval(S, make-of(150000, I)) . rec-value(S, val(X?)) . snd-do(T, use(X)) . snd-eval(T, echo(X)) .
                rec-value(T, val(Y?)) . if equal(X, Y) then printf("%t.", S) else printf("wrong") fi . I := add(I, 1)
              fi
            * if equal(I, {rounds}) then snd-eval(T, ping) . rec-value(T, pong) . shutdown(1) fi )""",
            "X: str, Y: str, I: int",
        ),
        threshold_bytes=threshold,
        lease_seconds=10,  # one that is cut off when the bus ends keeps its values until its lease is over
        output=(printed := []).append,
    )
    chance = random.Random(5)
    with rooms(2) as (one, other), Meter(started(bus)) as left, Meter(bus.address) as right:
        one.connect("Source", left.address, **options)
        other.connect("Sink", right.address, **options)
        for _ in range(1000):
            if bus.wait(chance.random() / 10):
                break
            chance.choice([left, right]).cut()
        assert bus.halted, bus.warnings()
        assert "".join(printed) == "source(1)." * rounds
        seen = other.call("Sink", "seen")
        assert seen == [digest(text_of(150_000, seed)) for seed in range(rounds) for _ in "tt"]
        assert left.connected + right.connected > 2, "it was cut"
        assert until(lambda: one.exchange()["values"] == other.exchange()["values"] == 0)


def test_t23_a_program_that_was_killed_is_started_again_and_nothing_is_lost_or_done_twice(
    make_bus: MakeBus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed in the middle of its second eval, which is asked again, and neither of the others is."""
    diary = tmp_path / "diary"
    monkeypatch.setenv("MORTAL", str(diary))
    ask = 'snd-eval(S, make-of(100, {0})) . rec-value(S, val(X?)) . printf("%t %s.", S, X) . '
    bus = make_bus(
        f"""
        tool source is {{ command = "{RUN} Mortal" }}
        process P is let S: source, X: str in
            execute(source, S?) . {"".join(map(ask.format, range(3)))} shutdown(1)
        endlet
        toolbus(P)
        """,
        lease_seconds=20,
        output=(printed := []).append,
    )
    bus.start()
    assert eventually(lambda: diary.exists() and diary.read_text().endswith(" 1\n"))
    os.kill(int(diary.read_text().split()[0]), signal.SIGKILL)
    assert bus.wait(30), bus.warnings()
    assert "".join(printed) == "".join(f"source(1) {text_of(100, seed)}." for seed in range(3))
    lives, asked = diary.read_text().split()[::2], diary.read_text().split()[1::2]
    assert asked == ["0", "1", "1", "2"]
    assert lives[0] == lives[1] != lives[2] == lives[3]


def test_t23_the_values_of_a_program_that_was_killed_are_not_taken_for_those_of_its_next_life(
    make_bus: MakeBus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number is the same again, and so may be those of its variables."""
    diary = tmp_path / "diary"
    monkeypatch.setenv("MORTAL", str(diary))
    bus = make_bus(
        f"""
        tool source is {{ command = "{RUN} Mortal" }}
        tool sink is {{ command = "none" }}
        process P is let S: source, T: sink, X: term, Y: term in rec-connect(T?) . execute(source, S?) .
            snd-eval(S, make-of(100000, 0)) . rec-value(S, val(X?)) .
            snd-eval(S, make-of(100000, 1)) . rec-value(S, val(Y?)) .
            snd-do(T, use(X)) . snd-do(T, use(Y)) . snd-eval(T, ping) . rec-value(T, pong) . shutdown(1) endlet
        toolbus(P)
        """,
        threshold_bytes=0,
        lease_seconds=30,
    )
    with rooms(1) as (room,):
        room.connect("Sink", started(bus))
        assert eventually(lambda: diary.exists() and diary.read_text().endswith(" 1\n"))
        os.kill(int(diary.read_text().split()[0]), signal.SIGKILL)
        assert bus.wait(30), bus.warnings()
        first, second = room.call("Sink", "seen")
        assert first.startswith("lost-value(")
        assert second == digest(text_of(100_000, 1))


def test_t23_after_the_lease_the_tool_is_gone_with_its_references_and_waiters_get_an_error(make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools(
            """snd-eval(S, get) . rec-value(S, val(Z?)) . printf("held") . rec-disconnect(S) . snd-do(T, use(Z)) .
            shutdown(1)"""
        ),
        lease_seconds=0.5,
        output=(printed := []).append,
    )
    with rooms(1) as (room,), Puppet(started(bus), "source") as source, source.offer(blob_of(3000)):
        room.connect("Sink", bus.address)
        source.answer("val(<reference(0)>)", source.put(1, 3000))
        assert eventually(lambda: printed)
        source.close()
        assert bus.wait(20), bus.warnings()
        assert until(lambda: room.call("Sink", "seen"))
        assert room.call("Sink", "seen")[0].startswith("lost-value(")


def test_t23_after_the_lease_of_a_receiver_its_acks_are_cancelled(make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools(f'{GET_X} . (snd-do(T, use(X)) || rec-disconnect(T)) . X := "" . rec-msg(never)'), lease_seconds=0.5
    )
    with Puppet(started(bus), "source") as source, source.offer(blob_of(3000)):
        with Puppet(bus.address, "sink") as sink:
            source.answer("val(<reference(0)>)", source.put(1, 3000))
            sink.told(MessageKind.DO)
        assert eventually(lambda: source.finished == [1])


def test_t23_a_killed_program_is_gone_when_its_lease_is_over(make_bus: MakeBus) -> None:
    bus = make_bus(
        with_tools('snd-eval(S, ping) . rec-value(S, pong) . printf("there") . rec-disconnect(S) . shutdown(gone)'),
        lease_seconds=0.5,
        output=(printed := []).append,
    )
    with rooms(2) as (one, other):
        one.connect("Source", started(bus))
        other.connect("Sink", bus.address)
        assert eventually(lambda: printed)
        one.kill()
        assert bus.wait(20), bus.warnings()
        assert bus.value is Term("gone")
