"""What do references to large values save: how long does a value take, and whose memory does it take?

    python benchmarks/by_reference.py [--quick] [--rounds N] [--processes N] [--json] [--plot DIR]

time      one value of 128 KB to 50 MB from one tool to one, and to two, through a bus: by value, by reference, streamed
          through the bus, and as it goes when nobody says how; over TCP and through shared memory; beside plain sockets
          from the sender to the receivers
memory    how far the peak of each process grows beyond what it has when idle, for one value, and for four that follow
          each other: the script refers to each until the next one is there, so that there are two at times

The processes are real (`by_reference_fleet.py`). Those of all manners are there at once, and take turns in an order
that is shuffled for every round. Each number stands beside a target and that of the thesis (A. Lankamp, *The ToolBus:
Inter Tool Communication*, 2006: an Athlon 64 at 2.2 GHz, Java 1.5).
"""

import random
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
from benchmarks.by_reference_fleet import (
    AUTOMATIC,
    BY_REFERENCE,
    BY_VALUE,
    SHARED,
    STREAMED,
    TCP,
    Fleet,
    Manner,
    fleets,
)
from benchmarks.by_reference_plots import draw_memory, draw_times
from benchmarks.harness import Options, Report, Results, Table, Target, conduct

KILOBYTE, MEGABYTE = 1024, 1024 * 1024
SIZES = {
    "128 KB": 128 * KILOBYTE,
    "512 KB": 512 * KILOBYTE,
    "1 MB": MEGABYTE,
    "5 MB": 5 * MEGABYTE,
    "10 MB": 10 * MEGABYTE,
    "20 MB": 20 * MEGABYTE,
    "50 MB": 50 * MEGABYTE,
}
MEMORY_SIZES = ("5 MB", "10 MB", "20 MB", "50 MB")
QUICK_SIZES, QUICK_MEMORY_SIZES = ("128 KB", "1 MB"), ("5 MB",)
CASES = (BY_VALUE, BY_REFERENCE, STREAMED, AUTOMATIC)
MEMORY_CASES = (BY_VALUE, BY_REFERENCE, STREAMED)
RECEIVERS = (1, 2)
SAMPLE_BYTES, SAMPLE_VALUES_MAX = 5 * MEGABYTE, 20
"""How much is moved for one sample, in at most so many values."""
MEMORY_VALUES = 4
ALONE, TOTAL = "bus, one value", "all"
PARTS = (ALONE, "bus", "sender", "receiver", TOTAL)

# Time by value / time by reference: the thesis with one and with two receivers, and what is promised for each.
GAINS = {
    "128 KB": ((0.97, 0.87), (0.95, 0.95)),
    "512 KB": ((1.63, 1.25), (1.3, 1.25)),
    "1 MB": ((1.81, 1.10), (1.5, 1.5)),
    "5 MB": ((1.32, 1.37), (1.6, 1.6)),
    "10 MB": ((1.59, 1.47), (1.6, 1.6)),
    "20 MB": ((1.57, 1.43), (1.8, 1.8)),
    "50 MB": ((1.25, 1.41), (1.8, 1.8)),
}
SHARED_GAIN_50_MB = 3.0
# Megabytes of the thesis, the middle of what it gives: by reference and by value.
THESIS_MEMORY = {
    "5 MB": {"bus": (3, 12.5), "sender": (22.5, 12.5), "receiver": (7.5, 12.5), TOTAL: (33, 37.5)},
    "10 MB": {"bus": (3, 22.5), "sender": (62.5, 35), "receiver": (12.5, 22.5), TOTAL: (78, 80)},
    "20 MB": {"bus": (3, 52.5), "sender": (80, 60), "receiver": (22.5, 52.5), TOTAL: (105.5, 165)},
    "50 MB": {"bus": (3, 100), "sender": (175, 125), "receiver": (55, 100), TOTAL: (231, 325)},
}
BUS_REFERENCE_MB, BUS_VALUE_OBJECTS, BUS_STREAMED_MB, TOTAL_SHARE, SENDER_OBJECTS = 5.0, 1.2, 0.5, 0.75, 2.0
TOTAL_SHARE_SIZES = ("20 MB", "50 MB")


def run(options: Options) -> list[Table]:
    quick = options.sample_seconds < 0.005
    sizes = QUICK_SIZES if quick else tuple(SIZES)
    tables = [
        measure_times(options, links, receivers, sizes)
        for links in (TCP, SHARED)
        for receivers in (RECEIVERS[:1] if quick else RECEIVERS)
    ]
    for links in (TCP, SHARED):
        tables += measure_memory(options, links, QUICK_MEMORY_SIZES if quick else MEMORY_SIZES)
    return tables


def measure_times(options: Options, links: str, receivers: int, sizes: tuple[str, ...]) -> Table:
    table = Table(time_title(links, receivers), "ms", BY_VALUE)
    chance = random.Random(options.seed)
    with fleets([Manner(case, links, receivers) for case in CASES]) as there:
        for name in sizes:
            size = SIZES[name]
            count = max(1, min(SAMPLE_VALUES_MAX, SAMPLE_BYTES // size))
            samples: dict[str, list[float]] = {case: [] for case in there}
            for each in there.values():
                each.transfer(size, count)  # grows warm: memory, links, the threshold that is measured
            for _ in range(options.rounds):
                order = list(there)
                chance.shuffle(order)
                for case in order:
                    samples[case].append(there[case].transfer(size, count))
            table.add(name, Results(samples))
    return table


def measure_memory(options: Options, links: str, sizes: tuple[str, ...]) -> list[Table]:
    """Measure with processes that nothing has gone through before."""
    tables = {part: Table(memory_title(links, part), "MB", BY_VALUE) for part in PARTS}
    chance = random.Random(options.seed)
    for name in sizes:
        samples: dict[str, dict[str, list[float]]] = {part: {case: [] for case in MEMORY_CASES} for part in PARTS}
        for _ in range(options.rounds):
            order = chance.sample(MEMORY_CASES, len(MEMORY_CASES))
            with fleets([Manner(case, links) for case in order], plain=False) as there:
                for case, fleet in there.items():
                    assert isinstance(fleet, Fleet)
                    alone = fleet.growth(SIZES[name], 1)
                    samples[ALONE][case].append(sum(alone["bus"]))
                    grown = fleet.growth(SIZES[name], MEMORY_VALUES)
                    for part, figures in grown.items():
                        samples[part][case].append(sum(figures))
                    samples[TOTAL][case].append(sum(map(sum, grown.values())))
        for part, table in tables.items():
            table.add(name, Results(samples[part]))
    return list(tables.values())


def time_title(links: str, receivers: int) -> str:
    return f"one value to {receivers} receiver{'s' * (receivers > 1)}, {links}"


def memory_title(links: str, part: str) -> str:
    return f"growth of {'all processes' if part == TOTAL else f'the {part}'}, {links}"


def judge(report: Report) -> None:
    tables = {table.title: table for table in report.tables}
    for links in (TCP, SHARED):
        for at, receivers in enumerate(RECEIVERS):
            table = tables.get(time_title(links, receivers))
            if table is not None:
                report.targets += time_targets(table, links, at)
                report.remarks += time_remarks(table, at)
    for links in (TCP, SHARED):
        parts = {part: tables[memory_title(links, part)] for part in PARTS}
        report.targets += memory_targets(parts, links)
        report.remarks += memory_remarks(parts)


def time_targets(table: Table, links: str, at: int) -> Iterator[Target]:
    for column, (results, _) in table.columns.items():
        promised = GAINS[column][1][at]
        if links == SHARED and column == "50 MB":
            promised = SHARED_GAIN_50_MB
        case = AUTOMATIC if column == "128 KB" else BY_REFERENCE
        gain = results.ratio(BY_VALUE, case)
        yield Target(f"{table.title}, {column}, {case}", gain, promised, "times as fast as by value", at_least=True)


def time_remarks(table: Table, at: int) -> Iterator[str]:
    for column, (results, _) in table.columns.items():
        gains = ", ".join(f"{case} {results.ratio(BY_VALUE, case)}" for case in (BY_REFERENCE, STREAMED, AUTOMATIC))
        yield f"{table.title}, {column}: times as fast as by value: {gains}; the thesis {GAINS[column][0][at]:g}"


def memory_targets(parts: dict[str, Table], links: str) -> Iterator[Target]:
    alone, bus, sender, total = (parts[part] for part in (ALONE, "bus", "sender", TOTAL))
    for column in bus.columns:
        yield Target(f"{bus.title}, {column}, by reference", bus.cost(BY_REFERENCE, column), BUS_REFERENCE_MB, "MB")
        objects = alone.columns[column][0].cost(BY_VALUE).times(1 / SIZES[column])
        yield Target(f"{alone.title}, {column}, by value", objects, BUS_VALUE_OBJECTS, "values")
        yield Target(f"{bus.title}, {column}, streamed", bus.cost(STREAMED, column), BUS_STREAMED_MB, "MB")
        if links == SHARED:
            continue  # pages of shared memory count for both sides, and would do so twice
        held = sender.columns[column][0].cost(BY_REFERENCE).times(1 / SIZES[column])
        yield Target(f"{sender.title}, {column}, by reference", held, SENDER_OBJECTS, "values")
        if column in TOTAL_SHARE_SIZES:
            share = total.columns[column][0].ratio(BY_REFERENCE, BY_VALUE)
            yield Target(f"{total.title}, {column}, by reference", share, TOTAL_SHARE, "x by value")


def memory_remarks(parts: dict[str, Table]) -> Iterator[str]:
    for column in parts["bus"].columns:
        for part in PARTS[1:]:
            reference, value = THESIS_MEMORY[column][part]
            found = ", ".join(f"{case} {parts[part].cost(case, column)}" for case in MEMORY_CASES)
            thesis = f"the thesis by reference {reference:g}, by value {value:g}"
            yield f"{parts[part].title}, {column}, MB: {found}; {thesis}"


def plot(tables: list[Table], path: Path) -> None:
    titled = {table.title: table for table in tables}
    times = {
        (links, receivers): titled[time_title(links, receivers)]
        for links in (TCP, SHARED)
        for receivers in RECEIVERS
        if time_title(links, receivers) in titled
    }
    thesis = {column: gains for column, (gains, _) in GAINS.items()}
    draw_times(times, SIZES, thesis, path.with_name("by_reference_time.svg"))
    memory = {part: titled[memory_title(TCP, part)] for part in PARTS[1:]}
    draw_memory(memory, SIZES, THESIS_MEMORY, path.with_name("by_reference_memory.svg"))


if __name__ == "__main__":
    conduct("by_reference", "What references to large values save.", run, judge, plot)
