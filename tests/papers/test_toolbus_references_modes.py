"""Inter-tool communication: "semantically it should not matter if something is a value or a reference". T1 and T25.

The same script with the same tools gives the same trace, whether nothing, what is large or everything is a reference.
"""

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from echoic.scripts.running.messages import Halted, Print, Step
from echoic.terms import Term, TermList, Value
from echoic.terms.saf import encode_saf
from echoic.toolbus import Bus, BusLimits, replay_run
from echoic.toolbus.protocol import Message, MessageKind
from tests.papers.reference_puppets import Puppet
from tests.papers.reference_scripts import PASSIVE, started, with_tools
from tests.papers.reference_workshop import MEGABYTE, Room, blob_of, digest, rooms, text_of, until
from tests.terms.values import values

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("runtime_folder")]
ROOT = Path(__file__).parents[2]
MODES = {"everything": 0, "what is large": 64 * 1024, "nothing": math.inf}
ROUNDS = iter(range(10**6))
SCRIPT = """
tool source is {{ command = "none" }}
tool sink is {{ command = "none" }}
process P is let S: source, T: sink, A: term, B: term, L: list, N: int in
    rec-connect(S?) . rec-connect(T?) . A := "" . B := "" . L := [] . subscribe(n(<term>)) .
    {body} .
    snd-eval(T, ping) . rec-value(T, pong) . shutdown([A, B])
endlet
process Q is let U: term in ( rec-msg(put(U?)) . snd-msg(got(U)) ) * delta endlet
process R(U: term) is snd-msg(fin(U))
process C is let U: term, V: term in
    ( rec-msg(cmp(U?, V?)) . snd-msg(fin(V)) +> rec-msg(cmp(U?, U?)) . printf("2") . snd-msg(fin([U])) ) * delta
endlet
toolbus(P, Q, C)
"""
SIZES = st.sampled_from([0, 1, 10, 1000, 65_535, 65_536, 200_000])
NAMES = st.permutations(["A", "B"])


@st.composite
def statements(draw: st.DrawFn) -> str:
    """Return a few atoms that do something with A and B, whatever they are."""
    one, other = draw(NAMES)
    size, seed = draw(SIZES), draw(st.integers(0, 2))
    forms = [
        f"snd-eval(S, make-of({size}, {seed})) . rec-value(S, val({one}?))",
        f"snd-eval(S, make-of({size}, {seed})) . rec-value(S, val({one}?))",
        f'snd-eval(S, make-blob({size})) . rec-value(S, val({one}?)) . {one} := "x"',
        f"snd-eval(S, make-pair({size}, {seed})) . rec-value(S, pair({one}?, {other}?))",
        f"snd-eval(S, make-list({seed + 1}, {size})) . rec-value(S, val(L?)) . {one} := first(L) . L := next(L)",
        f"snd-eval(S, make-of({size}, 1)) . ( rec-value(S, pair(<str>, {one}?)) + rec-value(S, val({one}?)) )",
        f"snd-do(T, use({one}))",
        f"snd-do(T, use-both({one}, [{other}, f({one})]))",
        f"snd-eval(T, echo({one})) . rec-value(T, val({other}?))",
        f"snd-eval(S, echo(t({one}, {other}))) . rec-value(S, val(t({one}, {other}?)))",
        f"{one} := {other}",
        f'if equal({one}, {other}) then printf("=") else printf("#") fi',
        f'if and(is-str({one}), member({one}, L)) then printf("in") else printf("out") fi',
        f'printf("%s;", {one})',
        f"snd-note(n({one})) . rec-note(n({other}?))",
        f"snd-msg(put({one})) . rec-msg(got({other}?))",
        f"snd-msg(cmp({one}, {other})) . rec-msg(fin({other}?))",
        f'snd-note(n({other})) . ( printf("l") +> rec-note(n({one})) . printf("r") )',
        f'( rec-note(n({one})) . printf("y") <+ no-note(n({one})) . printf("n") )',
        f"( if equal({one}, {other}) then snd-do(T, use(same)) fi <+ snd-do(T, use({other})) )",
        f"create(R({one}), N?) . rec-msg(fin({other}?))",
        f"L := join(L, [{one}, {other}]) . if less(3, size(L)) then L := [] else tau fi",
        f"let C: term in C := {one} . {one} := [C, {seed}] . {one} := index({one}, 1) endlet",
    ]
    return draw(st.sampled_from(forms))


@dataclass(frozen=True)
class Trace:
    """All that can be seen of a run."""

    printed: str
    value: str
    steps: dict[int, list[tuple[str, str]]]
    given: list[str]
    taken: list[str]


@pytest.fixture(scope="module")
def homes() -> Iterator[list[Room]]:
    with rooms(2) as made:
        yield made


def trace_of(script: str, threshold: float, homes: list[Room]) -> Trace:
    """Run a script with two tools that live in processes of their own."""
    printed: list[str] = []
    steps: dict[int, list[tuple[str, str]]] = {}

    def note(step: Step) -> None:
        steps.setdefault(step.process, []).append((step.atom, str(step.span)))

    bus = Bus.from_script(script, seed=1, output=printed.append, traced=True, threshold_bytes=threshold)
    with bus:
        bus.on_step(note)
        bus.start()
        source, sink = (f"{kind} {next(ROUNDS)}" for kind in ("source", "sink"))
        homes[0].connect("Source", bus.address, source)
        homes[1].connect("Sink", bus.address, sink)
        assert bus.wait(20), (bus.warnings(), bus.state())
        assert bus.warnings() == ()

        made = homes[0].call(source, "made_digests")
        return Trace("".join(printed), digest(bus.value), steps, made, homes[1].call(sink, "seen"))


@settings(
    max_examples=15,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(body=st.lists(statements(), min_size=1, max_size=8))
def test_t01_a_script_gives_the_same_trace_with_every_threshold(body: list[str], homes: list[Room]) -> None:
    script = SCRIPT.format(body=" .\n    ".join(body))
    traces = {name: trace_of(script, threshold, homes) for name, threshold in MODES.items()}
    by_value = traces["nothing"]
    for name, trace in traces.items():
        assert trace == by_value, name
    for home in homes:
        assert home.exchange()["values"] == 0, "and nothing is left behind"


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(every=st.lists(values, min_size=1, max_size=6))
def test_t01_any_term_comes_back_as_it_was_when_all_its_strings_are_references(
    every: list[Value], homes: list[Room]
) -> None:
    """To a tool in another process and back; nothing is too small, too deep or too strange."""
    asked = iter(every)
    body = (
        "snd-eval(S, get) . rec-value(S, val(Z?)) . snd-eval(T, echo(Z)) . rec-value(T, val(Z?)) . L := join(L, [Z]) . "
    )
    script = with_tools("L := [] . " + body * len(every) + "shutdown(L)", "Z: term, L: list")
    with Bus.from_script(script, seed=1, threshold_bytes=0) as bus:
        bus.stub("source", {"get": lambda: Term("val", next(asked))})
        homes[1].connect("Sink", started(bus), f"sink {next(ROUNDS)}")
        assert bus.wait(20), bus.warnings()
        assert encode_saf(bus.value) == encode_saf(TermList(*every))  # type: ignore[arg-type]


EVERY_MESSAGE = """
tool source is { command = "none" }
tool sink is { command = "none" }
process P is let S: source, T: sink, X: term, Y: term in
    rec-connect(S?) . rec-connect(T?) .
    rec-event(S, e(X?)) . snd-ack-event(S, e(X), [X, more]) .
    rec-request(T, lookup(Y?)) . snd-response(T, found(X, Y)) .
    snd-eval(T, echo(X)) . rec-value(T, val(Y?)) . snd-do(T, use(Y)) . snd-eval(T, ping) . rec-value(T, pong) .
    snd-terminate(S, X) . rec-disconnect(S) . shutdown([X, Y])
endlet
toolbus(P)
"""


@pytest.mark.parametrize("threshold", MODES.values(), ids=MODES)
def test_t01_every_kind_of_message_takes_large_values(threshold: float) -> None:
    one, other = text_of(150_000, 1), text_of(150_000, 2)
    bus = Bus.from_script(EVERY_MESSAGE, seed=1, threshold_bytes=threshold)
    with bus, rooms(2) as (source, sink):
        bus.start()
        source.connect("Source", bus.address)
        sink.connect("Sink", bus.address)
        assert source.call("Source", "say_and_wait", "e", "str 150000 1") == digest(TermList(one, Term("more")))
        assert sink.call("Sink", "ask", "lookup", "str 150000 2") == digest(Term("found", one, other))
        assert bus.wait(30), bus.warnings()
        assert digest(bus.value) == digest(TermList(one, one))
        assert until(lambda: sink.call("Sink", "seen") == [digest(one)] * 2)
        assert until(lambda: source.get("Source", "terminated") == digest(one))
        assert bus.warnings() == ()


def test_t01_a_tool_that_knows_nothing_of_references_gets_and_gives_values() -> None:
    script = with_tools("snd-eval(S, get) . rec-value(S, val(X?)) . snd-do(T, use(X)) . snd-do(T, use(Y)) . rec-msg(n)")
    script = script.replace("rec-connect(T?) .", "rec-connect(T?) . snd-eval(S, get) . rec-value(S, val(Y?)) .")
    with (
        Bus.from_script(script, seed=1, threshold_bytes=0) as bus,
        Puppet(started(bus), "source") as source,
        Puppet(bus.address, "sink", features=()) as plain,
        source.offer(blob_of(100_000)),
    ):
        source.answer("val(<reference(0)>)", source.put(1, 100_000))
        source.answer(f'val("{text_of(1000, 7)}")')
        for value in (text_of(1000, 7), text_of(100_000)):
            told = plain.hear(MessageKind.DO)
            assert told.values == (Term("use", value),)
            assert told.flags == 0
            plain.say(Message(MessageKind.VOID, told.transaction))
        assert plain.count(MessageKind.REG) == plain.count(MessageKind.PUT) == 0


@pytest.mark.parametrize("options", [{}, PASSIVE], ids=["active", "passive"])
def test_t01_a_message_with_many_large_values_arrives_whole(options: dict[str, str]) -> None:
    body = "snd-eval(S, make-list(600, 100000)) . rec-value(S, val(Z?)) . snd-do(T, use(Z)) . rec-msg(never)"
    with Bus.from_script(with_tools(body), threshold_bytes=0) as bus, rooms(2) as (source, sink):
        source.connect("Source", started(bus), **options)
        sink.connect("Sink", bus.address, **options)
        whole = digest(TermList(*(text_of(100_000, seed) for seed in range(600))))
        assert until(lambda: sink.call("Sink", "seen"), 20), bus.warnings()
        assert sink.call("Sink", "seen") == [whole]


def test_t01_a_value_larger_than_the_queue_of_a_tool_arrives_by_value_too() -> None:
    size, limits = 60 * MEGABYTE, BusLimits(queue_bytes_max=16 * MEGABYTE)
    script = with_tools(f"snd-eval(S, make-blob({size})) . rec-value(S, val(Z?)) . snd-do(T, use(Z)) . rec-msg(never)")
    with Bus.from_script(script, threshold_bytes=math.inf, limits=limits) as bus, rooms(2) as (source, sink):
        source.connect("Source", started(bus))
        sink.connect("Sink", bus.address)
        assert until(lambda: sink.call("Sink", "seen") == [digest(blob_of(size))], 20), bus.warnings()


@pytest.mark.parametrize("threshold", [0, math.inf])
def test_t01_virtual_time_does_not_go_on_while_a_value_is_on_its_way(threshold: float) -> None:
    script = with_tools(
        """snd-eval(S, make-of(200000, 1)) . rec-value(S, val(X?)) .
        snd-eval(S, make-of(200000, 1)) . rec-value(S, val(Y?)) .
        ( if equal(X, Y) then printf("now") fi + printf("late") delay(sec(100)) ) .
        ( snd-do(T, use(X)) . printf(" told") + printf("late") delay(sec(50)) ) . shutdown(1)"""
    )
    printed: list[str] = []
    options = {"clock": "virtual", "output": printed.append}
    with Bus.from_script(script, seed=1, threshold_bytes=threshold, **options) as bus, rooms(1) as (room,):
        room.connect("Source", started(bus))
        room.connect("Sink", bus.address)
        assert bus.wait(20), bus.warnings()
    assert printed == ["now", " told"]


def test_t25_the_log_of_a_run_with_references_repeats_it(tmp_path: Path) -> None:
    body = """snd-eval(S, make-of(5000, 1)) . rec-value(S, val(A?)) . snd-eval(T, echo(A)) . rec-value(T, val(B?)) .
        if equal(A, B) then printf("same") else printf("other") fi . snd-note(n(A)) . rec-note(n(B?)) .
        printf("%s", B)"""
    script = SCRIPT.format(body=body)
    printed: list[str] = []
    run = tmp_path / "run"
    with Bus.from_script(script, seed=1, threshold_bytes=0, log=run, output=printed.append) as bus, rooms(2) as homes:
        bus.start()
        homes[0].connect("Source", bus.address)
        homes[1].connect("Sink", bus.address)
        assert bus.wait(30), bus.warnings()
    repeated = [effect for effects in replay_run(run, script) for effect in effects]
    assert "".join(printed) == f"same{text_of(5000, 1)}"
    assert [effect.text for effect in repeated if isinstance(effect, Print)] == printed
    assert [digest(effect.value) for effect in repeated if isinstance(effect, Halted)] == [digest(bus.value)]


SUITES = {
    "0": ["tests/toolbus/test_bus.py", "tests/toolbus/test_tool.py", "tests/toolbus/test_record.py"],
    "inf": ["tests/toolbus/test_bus.py", "tests/toolbus/test_tool.py"],
}


@pytest.mark.parametrize("threshold", SUITES)
def test_t25_the_tests_of_the_bus_pass_with_every_threshold(threshold: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.papers.reference_modes", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [*command, *SUITES[threshold]],
        cwd=ROOT,
        env={**os.environ, "TB_THRESHOLD": threshold},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-4000:]


PAPERS = ["tools", "scripts"]


def test_t25_the_script_suite_passes_when_all_that_tools_say_are_references() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [*command, *(f"tests/papers/test_toolbus_{name}.py" for name in PAPERS)],
        cwd=ROOT,
        env={**os.environ, "ECHOIC_TEST_BY_REFERENCE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-4000:]
