"""What does it cost to coordinate tools: handshakes, terms as bytes, and looking at all that a script can do?

    python benchmarks/toolbus.py [--quick] [--rounds N] [--processes N] [--json] [--plot DIR]

handshakes   rings of 3, 20 and 2,000 processes that hand tokens on, a third as many as there are processes; beside what
             two threads of Python need to hand an object over through a queue, and to wait for the answer
codecs       the terms of the thesis' serialization benchmark, one of 5 MB and a list of three of 1 MB, with quotes and
             line ends in their text; the first without these, and ten times as large: as text and binary (SAF), written
             and read; beside one copy of as many bytes
states       dining philosophers, 4 and 5, looked at state by state
"""

import queue
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
from benchmarks.harness import Options, Report, Results, Spread, Table, Target, conduct, figure, label_ends
from echoic.scripts.exploring import explore
from echoic.scripts.graph import compile as compile_script
from echoic.scripts.running import Machine
from echoic.scripts.syntax import load
from echoic.terms import Term, TermList, Value, parse_text, write_text
from echoic.terms.saf import decode_saf, encode_saf

HANDSHAKES, CODECS, STATES = "one handshake", "a term, written and read", "one state"
QUEUE, MACHINE = "two threads and queues", "echoic"
COPY, TEXT, BINARY = "memcpy", "text", "SAF"
FULL, REDUCED = "every order", "orders that matter"
PROSE, MUCH_PROSE = "5 MB", "50 MB"
RINGS = (3, 20, 2_000)
TURNS = 2_000
MEGABYTE = 1_000_000
PHILOSOPHERS = (4, 5)
HANDSHAKE_US_MAX, GROWTH_MAX, BINARY_SHARE_MAX, STATE_US_MAX = 10.0, 1.5, 1 / 25, 1e6 / 30_000
LINEAR_MAX = 1.5


def ring(count: int) -> Machine:
    """Return a machine in which tokens go round among so many processes."""
    nodes = [f"NODE({number},{(number + 1) % count})" for number in range(count)]
    starts = [f"START({3 * number})" for number in range(max(1, count // 3))]
    script = load(
        "process NODE(I : int, N : int) is\n"
        "  let X : int in (rec-msg(token(I, X?)) . snd-msg(token(N, X))) * delta endlet\n"
        f"process START(I : int) is snd-msg(token(I, 7))\ntoolbus({', '.join(nodes + starts)})\n",
        "ring.tb",
    )
    machine = Machine(compile_script(script), chance=random.Random(1), now_ns=0)
    machine.start()
    machine.run(20 * count, 0)
    return machine


def philosophers(count: int) -> str:
    """Return the script in which each takes the fork to the left first."""
    parts = [f"PHIL({number},{(number + 1) % count}), FORK({number})" for number in range(count)]
    return (
        "process PHIL(L : int, R : int) is\n"
        "  (snd-msg(get(L)) . snd-msg(get(R)) . snd-msg(put(L)) . snd-msg(put(R))) * delta\n"
        "process FORK(I : int) is (rec-msg(get(I)) . rec-msg(put(I))) * delta\n"
        f"toolbus({', '.join(parts)})\n"
    )


@contextmanager
def queues() -> Iterator[Callable[[], None]]:
    """Give a round of objects from one thread to another and back, each of which is a handshake."""
    there: queue.SimpleQueue[object] = queue.SimpleQueue()
    back: queue.SimpleQueue[object] = queue.SimpleQueue()

    def answer() -> None:
        while (item := there.get()) is not None:
            back.put(item)

    thread = threading.Thread(target=answer)
    thread.start()

    def hand_over() -> None:
        for _ in range(50):
            there.put(there)
            back.get()

    try:
        yield hand_over
    finally:
        there.put(None)
        thread.join()


def run(options: Options) -> list[Table]:
    return [measure_handshakes(options), measure_codecs(options), measure_states(options)]


def measure_handshakes(options: Options) -> Table:
    table = Table(HANDSHAKES, "us", QUEUE)
    machines = {count: ring(count) for count in RINGS}
    calls = {column_of(count): partial(machine.run, TURNS, 0) for count, machine in machines.items()}
    with queues() as hand_over:
        found = options.measure({QUEUE: hand_over, **calls})
    for count, machine in machines.items():
        before = machine.statistics()
        calls[column_of(count)]()
        done = machine.statistics().handshakes - before.handshakes
        # Both as seconds for one handshake: a round through the queues is a hundred of them.
        samples = {
            QUEUE: [seconds / 100 for seconds in found.samples[QUEUE]],
            MACHINE: [seconds / done for seconds in found.samples[column_of(count)]],
        }
        table.add(column_of(count), Results(samples))
    return table


def measure_codecs(options: Options) -> Table:
    table = Table(CODECS, "us", COPY)
    prose = ('He said: "It is not\\never raining."\n' * (MEGABYTE // 30))[:MEGABYTE]
    bare = "0123456789abcdef" * (MEGABYTE // 16)
    terms: dict[str, Value] = {
        PROSE: Term("data", prose * 5),
        "list, 3 of 1 MB": TermList(*(Term("data", each + prose) for each in "abc")),
        "5 MB, no escapes": Term("data", bare * 5),
        MUCH_PROSE: Term("data", prose * 50),
    }
    for column, term in terms.items():
        size = len(encode_saf(term))
        cases: dict[str, Callable[[], object]] = {
            COPY: partial(bytearray, bytes(size)),
            TEXT: partial(in_text, term),
            BINARY: partial(in_binary, term),
        }
        table.add(column, options.measure(cases))
    return table


def measure_states(options: Options) -> Table:
    table = Table(STATES, "us", FULL)
    for count in PHILOSOPHERS:
        program = compile_script(load(philosophers(count), "philosophers.tb"))
        ways = {FULL: partial(explore, program, reduce=False), REDUCED: partial(explore, program, reduce=True)}
        found = options.measure(ways)
        states = explore(program, reduce=False).states
        table.add(f"{count} philosophers", found, per=states)
    return table


def in_text(term: Value) -> Value:
    return parse_text(write_text(term))


def in_binary(term: Value) -> Value:
    return decode_saf(encode_saf(term))


def column_of(count: int) -> str:
    return f"{count:,} processes"


def judge(report: Report) -> None:
    handshakes, codecs, states = report.tables
    few, some, many = (column_of(count) for count in RINGS)
    report.targets.append(Target(HANDSHAKES + f", {few}", handshakes.cost(MACHINE, few), HANDSHAKE_US_MAX, "us"))
    pairs = zip(*(handshakes.columns[column][0].samples[MACHINE] for column in (many, some)), strict=True)
    growth = Spread.of([large / small for large, small in pairs])
    report.targets.append(Target(f"{HANDSHAKES}, {many}", growth, GROWTH_MAX, f"x {some}"))
    for column, (results, _) in codecs.columns.items():
        report.targets.append(Target(f"SAF, {column}", results.ratio(BINARY, TEXT), BINARY_SHARE_MAX, "x text"))
    large, small = (codecs.columns[column][0].samples for column in (MUCH_PROSE, PROSE))
    # Fresh memory costs more for large terms, whoever writes to it: what counts is how often it is written.
    linear = Spread.of(
        [
            much / fresh / (little / copied)
            for much, fresh, little, copied in zip(large[BINARY], large[COPY], small[BINARY], small[COPY], strict=True)
        ]
    )
    report.targets.append(Target("SAF / memcpy, ten times as large", linear, LINEAR_MAX, "x"))
    for column in states.columns:
        report.targets.append(Target(f"{STATES}, {column}", states.cost(FULL, column), STATE_US_MAX, "us"))


def plot(tables: list[Table], path: Path) -> None:
    handshakes, codecs, _ = tables
    sizes = (5 * MEGABYTE, 50 * MEGABYTE)
    with figure(path, panels=2, title="Coordinating tools") as panels:
        shown = (
            (handshakes, RINGS, [column_of(count) for count in RINGS], (QUEUE, MACHINE), "processes"),
            (codecs, sizes, [PROSE, MUCH_PROSE], (COPY, TEXT, BINARY), "bytes of the term"),
        )
        for axes, (table, places, columns, cases, label) in zip(panels, shown, strict=True):
            ends = []
            for case, colour in zip(cases, ("#777777", "#15803d", "#c2410c"), strict=False):
                costs = [table.cost(case, column).median for column in columns]
                axes.plot(places, costs, marker="o", color=colour)
                ends.append((case, costs[-1], colour))
            axes.set_title(table.title, loc="left", fontsize=9)
            axes.set_xlabel(label)
            if table is handshakes:
                axes.set_xticks(places, [str(place) for place in places])
            axes.margins(x=0.3)
            label_ends(axes, places[-1], ends)


if __name__ == "__main__":
    conduct("toolbus", "What it costs to coordinate tools.", run, judge, plot)
