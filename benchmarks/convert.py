"""What receiving costs: views, conversions, objects.

    python benchmarks/convert.py [--quick] [--rounds N] [--json] [--plot DIR]

1. The receiver's side of tables 1 and 2 of "Event Services for High Performance Computing": one record, from the bytes
   that arrived to numbers a program can use. A record in the receiver's own layout is used where it lies; one from a
   big-endian machine is converted.
2. Figures 4 and 5: batches of 64 with and without a field that the receiver does not expect, sent ahead of all others
   so that no field stands where it is expected (the paper's worst case), from the same and from a big-endian machine.
   The limit is physical: memcpy of as many bytes as come out.
3. Records with strings and dynamic arrays, converted by NumPy and by the native routine.
4. Objects: events of five fields in batches, per event.

The conversions of 2 and 3 are timed alone, compiled beforehand; 1 and 4 are the whole way from the payload of a frame.
"""

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy

from echoic.formats import ARCHITECTURES, NATIVE, Array, Field, Format, Kind, Registry, event, float32, int32, match
from echoic.wire import Batch, Conversion, FrameKind, FrameReader, conversion_of, decoder_of, encode_frame, encoder_of
from echoic.wire import parse_batch as parse
from echoic.wire.convert_numpy import NumpyConversion

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
from benchmarks.encode import BATCHES, OBJECTS, SIZES, Objects, mechanics, object_rivals, record_of, rivals
from benchmarks.harness import (
    EMPTY,
    Options,
    Report,
    Results,
    Table,
    Target,
    conduct,
    empty_call,
    figure,
    label_ends,
)

Cases: TypeAlias = dict[str, Callable[[], object]]

COUNT = 64
FOREIGN = ARCHITECTURES["sparc32"]  # the paper's other machine
MEMCPY = "memcpy"
VIEW_US_MAX = 0.5
EXTRA_FIELD_MAX = 1.3
BIG_ENDIAN_MAX = 1.5
EVENT_NS_MAX = 250
BYTES_MAX = 1 << 28
MATCHING = "matching"
LAYOUTS = ("extra field", "big-endian", "big-endian, extra field")


@event
class Observation:
    """A record with a variable part."""

    station: str
    at: float
    n: int32
    samples: Array[float32, "n"]
    remark: str


@dataclass(frozen=True, slots=True)
class Layouts:
    """One type as four senders lay it out."""

    native: Format

    @property
    def extended(self) -> Format:
        """The type with an unexpected field ahead of all others."""
        return Format.place(self.native.name, (Field("revision", Kind.INT, 4), *self.native.fields), NATIVE)

    def foreign(self) -> dict[str, Format]:
        """Return the layouts that need conversion."""
        formats = (self.extended, self.native.on(FOREIGN), self.extended.on(FOREIGN))
        return dict(zip(LAYOUTS, formats, strict=True))


def arrived(batch: Batch) -> memoryview:
    """Return the payload of a batch as a link delivers it: the inside of a received frame."""
    (frame,) = FrameReader().receive(b"".join(encode_frame(FrameKind.EVENTS, batch.buffers())))
    return frame.payload


def fixed_batch(format: Format, count: int) -> Batch:
    """Return mechanical records in the layout of `format`."""
    return Batch(format, count, [memoryview(record_of(format, count).view(numpy.uint8))])


def one_record(options: Options) -> Table:
    """Measure one record of each size, all the way from its payload."""
    table = Table("decode one record", "us", MEMCPY)
    for label, values in SIZES.items():
        declared = mechanics(values)
        table.add(label, options.measure(_record_cases(declared)))
    return table


def _record_cases(declared: type) -> Cases:
    native = Format.of(declared)
    foreign = native.on(FOREIGN)
    registry = Registry()
    for format in (native, foreign):
        registry.add(format)
    payload, swapped = arrived(fixed_batch(native, 1)), arrived(fixed_batch(foreign, 1))
    _compiled(foreign, native)
    record = record_of(native)
    for made in (parse(payload, registry).array, parse(swapped, registry).to(declared).array):
        _require(made.tobytes() == record.tobytes(), "a decoded record differs from the one sent")
    return {
        EMPTY: empty_call,
        MEMCPY: partial(bytes, memoryview(record.view(numpy.uint8))),
        "echoic, same layout": partial(parse, payload, registry),
        "echoic, same layout, view": lambda: parse(payload, registry).array,
        "echoic, big-endian": lambda: parse(swapped, registry).to(declared),
        "echoic, big-endian, view": lambda: parse(swapped, registry).to(declared).array,
        **{name: rival.decode for name, rival in rivals(record).items()},
    }


def extension(options: Options) -> tuple[Table, Table]:
    """Measure batches with and without the unexpected field: the conversion alone, and the whole way."""
    converted = Table(f"convert a batch of {COUNT}", "us", MEMCPY)
    received = Table(f"receive a batch of {COUNT}, from the payload to an array", "us", MEMCPY)
    for label, values in SIZES.items():
        declared = mechanics(values)
        converted.add(label, options.measure_anew(lambda chance, declared=declared: _conversions(declared, chance)))
        received.add(label, options.measure_anew(lambda chance, declared=declared: _receptions(declared, chance)))
    return converted, received


def _conversions(declared: type, chance: random.Random) -> Cases:
    """Return the conversions alone: bytes of one layout to bytes of another."""
    native = Format.of(declared)
    registry, payloads = _payloads(native, chance)
    expected = parse(payloads[MATCHING], registry).records
    cases: Cases = {MEMCPY: partial(bytes, expected)}
    for label, format in Layouts(native).foreign().items():
        records = parse(payloads[label], registry).records
        conversion = _compiled(format, native)
        cases[f"{label}, native"] = partial(conversion.convert_fixed, records, COUNT)
        cases[f"{label}, NumPy"] = partial(NumpyConversion(conversion.matching).convert_fixed, records, COUNT)
    _check(cases, expected)
    return cases


def _receptions(declared: type, chance: random.Random) -> Cases:
    """Return the whole way, from the payload to an array."""
    native = Format.of(declared)
    registry, payloads = _payloads(native, chance)
    expected = parse(payloads[MATCHING], registry).records
    cases: Cases = {
        MEMCPY: partial(bytes, expected),
        MATCHING: _native_way(payloads[MATCHING], registry, declared),
    }
    for label, format in Layouts(native).foreign().items():
        by_numpy = NumpyConversion(_compiled(format, native).matching).convert_fixed
        cases[f"{label}, native"] = _native_way(payloads[label], registry, declared)
        cases[f"{label}, NumPy"] = _numpy_way(payloads[label], registry, by_numpy, native.dtype)
    _check(cases, expected)
    return cases


def _payloads(native: Format, chance: random.Random) -> tuple[Registry, dict[str, memoryview]]:
    """Return fresh payloads of all layouts, allocated in an order that is left to chance."""
    layouts = {MATCHING: native, **Layouts(native).foreign()}
    registry = Registry()
    for format in layouts.values():
        registry.add(format)
    order = list(layouts)
    chance.shuffle(order)
    return registry, {label: arrived(fixed_batch(layouts[label], COUNT)) for label in order}


def _compiled(format: Format, native: Format) -> Conversion:
    conversion = conversion_of(format, native, narrow=False)  # by keyword, as `Batch.to` asks for it
    if not conversion.statistics().native:
        conversion.compile()
    return conversion


def _check(cases: Cases, expected: memoryview) -> None:
    for name, case in cases.items():
        _require(bytes(case()) == expected, f"{name} gives something else")


def _native_way(payload: memoryview, registry: Registry, declared: type) -> Callable[[], numpy.ndarray]:
    return lambda: parse(payload, registry).to(declared).array


def _numpy_way(
    payload: memoryview, registry: Registry, convert: Callable[[memoryview, int], memoryview], dtype: numpy.dtype
) -> Callable[[], numpy.ndarray]:
    """Return what `Batch.to` does while a conversion is not yet hot."""
    return lambda: numpy.ndarray(COUNT, dtype, convert(parse(payload, registry).records, COUNT))


def variable(options: Options) -> Results:
    """Measure records with strings and dynamic arrays."""
    native = Format.of(Observation)
    expected, _ = _observations(native)
    cases: Cases = {MEMCPY: partial(bytes, expected)}
    for label, format in Layouts(native).foreign().items():
        records, bounds = _observations(format)
        conversion = Conversion(format, native)
        conversion.compile()
        walker = NumpyConversion(match(format, native))
        cases[f"{label}, native"] = partial(conversion.convert, records, bounds, COUNT)
        cases[f"{label}, NumPy"] = partial(walker.convert_variable, records, bounds, COUNT, BYTES_MAX)
        for way in ("native", "NumPy"):
            made, _ = cases[f"{label}, {way}"]()
            _require(bytes(made) == bytes(expected), f"variable, {label}, {way} converts wrongly")
    return options.measure(cases)


def _observations(format: Format) -> tuple[memoryview, Sequence[int]]:
    """Return records of a variable format and where each begins, as a received batch has them."""
    events = [
        {
            "revision": 3,
            "station": f"station-{index % 10}",
            "at": 1.7e9 + index,
            "n": 16,
            "samples": numpy.arange(16, dtype=numpy.float32) + index,
            "remark": "calm" if index % 3 else "gusts from the west",
        }
        for index in range(COUNT)
    ]
    pieces, bounds = encoder_of(format).encode(events)
    registry = Registry()
    registry.add(format)
    batch = parse(arrived(Batch(format, COUNT, pieces, bounds)), registry)
    return batch.records, batch.bounds


def objects(options: Options) -> Table:
    """Measure batches of small objects, per event, all the way from their payload."""
    table = Table("decode objects, per event", "ns", "msgpack")
    for label, kind in OBJECTS.items():
        for count in BATCHES:
            table.add(f"{label}, {count}", options.measure(_object_cases(kind, count)), count)
    return table


def _object_cases(kind: Objects, count: int) -> Cases:
    declared, registry = kind.declared, Registry()
    registry.add(Format.of(declared))
    decoder_of(declared).compile()
    events = kind.events(declared, count)
    payload = arrived(Batch.of(events))

    def decode() -> list[object]:
        return parse(payload, registry).to(declared).events()

    _require(decode() == events, "decoded objects differ from those sent")
    return {"echoic": decode, **{name: rival.decode for name, rival in object_rivals(kind, count).items()}}


def _require(fact: bool, otherwise: str) -> None:
    if not fact:
        raise AssertionError(otherwise)


def targets(record: Table, converted: Table, decoded: Table) -> list[Target]:
    """Hold what was measured against what was promised."""
    found = []
    for case, words in (("echoic, same layout", "parse_batch"), ("echoic, same layout, view", "parse_batch and view")):
        found += [Target(f"{words}, {size}", record.cost(case, size), VIEW_US_MAX, "us") for size in SIZES]
    for case, limit in (("extra field", EXTRA_FIELD_MAX), ("big-endian", BIG_ENDIAN_MAX)):
        found += [
            Target(f"{case}, batch of {COUNT} x {size}", converted.ratio(f"{case}, native", size), limit, "x memcpy")
            for size in SIZES
        ]
    found += [
        Target(f"decode {label} in batches of {count}", decoded.cost("echoic", f"{label}, {count}"), EVENT_NS_MAX, "ns")
        for label in OBJECTS
        for count in BATCHES
    ]
    return found


def extra_field_remark(converted: Table) -> str:
    """Say what the unexpected field adds where records are converted anyway."""
    both, plain = "big-endian, extra field, native", "big-endian, native"
    told = [f"{size} {converted.columns[size][0].ratio(both, plain).median:.2f}x" for size in SIZES]
    return f"big-endian with the unexpected field, against without it: {', '.join(told)}"


def plot(tables: list[Table], path: Path) -> None:
    """Draw figures 4 and 5 of the paper anew; broad lines without the field, narrow ones on top of them with it."""
    table = tables[2]
    sizes = [Format.of(mechanics(values)).size for values in SIZES.values()]
    without, with_it, limit = ("#93c5fd", "-", 5.0), ("#c2410c", "-", 1.4), ("#444444", "--", 1.2)
    without_numpy, with_numpy = ("#93c5fd", ":", 4.0), ("#c2410c", ":", 1.4)
    heterogeneous = {
        "without": ("big-endian, native", without),
        "with the field": ("big-endian, extra field, native", with_it),
        "without, by NumPy": ("big-endian, NumPy", without_numpy),
        "with the field, by NumPy": ("big-endian, extra field, NumPy", with_numpy),
        MEMCPY: (MEMCPY, limit),
    }
    homogeneous = {
        "without: a view": ("matching", without),
        "with the field": ("extra field, native", with_it),
        "with the field, by NumPy": ("extra field, NumPy", with_numpy),
        MEMCPY: (MEMCPY, limit),
    }
    title = f"What it costs to receive {COUNT} records, with and without an unexpected field"
    with figure(path, panels=2, title=title) as panels:
        for axes, heading, lines in (
            (panels[0], "from a big-endian machine (figure 4)", heterogeneous),
            (panels[1], "from the same kind of machine (figure 5)", homogeneous),
        ):
            axes.set_title(heading, loc="left", fontsize=9)
            axes.set_xlabel("size of one record")
            axes.set_ylim(0.08, 2000)
            ends = []
            for name, (case, (colour, style, width)) in lines.items():
                costs = [table.cost(case, column).median for column in SIZES]
                axes.plot(sizes, costs, style, color=colour, linewidth=width, solid_capstyle="round")
                ends.append((name, costs[-1], "#2563eb" if colour == without[0] else colour))
            label_ends(axes, sizes[-1], ends)


def run(options: Options) -> list[Table]:
    """Measure everything once."""
    slotted = Table(f"convert a batch of {COUNT} with strings, arrays", "us", MEMCPY)
    slotted.add(f"{len(_observations(Format.of(Observation))[0])} B", variable(options))
    return [one_record(options), *extension(options), slotted, objects(options)]


def judge(report: Report) -> None:
    """Hold what was measured against what was promised."""
    record, converted, _, _, decoded = report.tables
    report.remarks.append(extra_field_remark(converted))
    report.targets += targets(record, converted, decoded)


def main() -> None:
    """Run the benchmark."""
    conduct("convert", "What decoding and conversion cost, beside their rivals and memcpy.", run, judge, plot)


if __name__ == "__main__":
    main()
