"""What sending costs: encoding against the size of a record, and against the number of events.

    python benchmarks/encode.py [--quick] [--rounds N] [--json] [--plot DIR]

1. The sender's side of tables 1 and 2 of "Event Services for High Performance Computing": one record of mechanical
   engineering data (four integers, three doubles, an array of doubles), 100 B to 100 KB, from the application's memory
   to what is handed to `send`. echoic's sender puts its memory on the wire as it lies, so its cost must not depend on
   the size; every rival's does that touches the data, and memcpy is the least that touching can cost.
2. Objects: events of five fields in batches, per event.

Every rival starts from the form it likes best: lists of floats for msgpack, JSON and XML, an Arrow table for Arrow, the
array for pickle. Two rivals avoid the work much as echoic does, and are here for that reason: pickle 5 that leaves the
array out of band, and msgpack that carries the array as a blob, which tells neither what is in it nor its byte order.
"""

import json
import pickle  # noqa: TID251 - a rival
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import numpy
import pyarrow
from pyarrow import ipc

from echoic.formats import Array, Format, event, float64, int32, uint16
from echoic.wire import Batch, FrameKind, encode_frame

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
from benchmarks.harness import (
    EMPTY,
    Options,
    Report,
    Table,
    Target,
    conduct,
    empty_call,
    figure,
    label_ends,
)

__all__ = ["BATCHES", "OBJECTS", "SIZES", "Objects", "Rival", "mechanics", "object_rivals", "record_of", "rivals"]

# How many doubles bring a record to 96, 1000, 10 000 and 100 000 bytes.
SIZES: Mapping[str, int] = {"100 B": 7, "1 KB": 120, "10 KB": 1245, "100 KB": 12495}
BATCHES = (64, 1024)
EVENT_NS_MAX = 250
MEMCPY = "memcpy"
COLOURS = {
    MEMCPY: "#444444",
    "echoic, array": "#c2410c",
    "echoic, array to a frame": "#ea7317",
    "echoic, object": "#d99a2b",
    "msgpack": "#1d4ed8",
    "msgpack, array as blob": "#5b8def",
    "pickle 5": "#15803d",
    "pickle 5, out of band": "#5aa469",
    "Arrow IPC": "#7e22ce",
    "JSON": "#0f766e",
    "XML": "#64748b",
}
NUMBERS = ("step", "element", "material", "phase", "time", "temperature", "density")


def mechanics(values: int) -> type:
    """Return the event type with an array of so many doubles."""

    @event
    class Mechanics:
        step: int32
        element: int32
        material: int32
        phase: int32
        time: float64
        temperature: float64
        density: float64
        stress: Array[float64, values]

    return Mechanics


def record_of(format: Format, count: int = 1) -> numpy.ndarray:
    """Return `count` records in the layout of `format`, the same numbers in every layout."""
    chance = numpy.random.default_rng(7)
    made = numpy.zeros(count, format.dtype)
    for name in NUMBERS[:4]:
        made[name] = chance.integers(0, 100_000, count)
    for name in NUMBERS[4:]:
        made[name] = chance.normal(300, 40, count)
    made["stress"] = chance.normal(0, 1e6, made["stress"].shape)
    return made


class MechanicsStruct(msgspec.Struct):
    """The record as msgpack users declare it."""

    step: int
    element: int
    material: int
    phase: int
    time: float
    temperature: float
    density: float
    stress: list[float]


class MechanicsBlob(msgspec.Struct):
    """The record with its array as bytes, of which only the program knows what they are."""

    step: int
    element: int
    material: int
    phase: int
    time: float
    temperature: float
    density: float
    stress: memoryview


@dataclass(frozen=True, slots=True)
class Rival:
    """One way to move a record; `values` finds the array in what was decoded, to see that nothing was lost."""

    encode: Callable[[], object]
    decode: Callable[[], object]
    values: Callable[[object], Sequence[float]]


def rivals(record: numpy.ndarray) -> dict[str, Rival]:
    """Return every rival, made ready for one record."""
    numbers = {name: record[name][0].item() for name in NUMBERS}
    stress = record["stress"][0]
    listed = {**numbers, "stress": stress.tolist()}
    made = {
        "msgpack": _msgpack(MechanicsStruct(**listed), lambda got: got.stress),
        "msgpack, array as blob": _msgpack_blob(MechanicsBlob(**numbers, stress=memoryview(stress.view(numpy.uint8)))),
        "pickle 5": _pickle(record),
        "pickle 5, out of band": _pickle_out_of_band(record),
        "Arrow IPC": _arrow(record),
        "JSON": _json(listed),
        "XML": _xml(listed),
    }
    for name, rival in made.items():
        rival.encode()
        if list(rival.values(rival.decode())) != listed["stress"]:
            raise AssertionError(f"{name} does not give back what it was given")
    return made


def _msgpack(value: msgspec.Struct, values: Callable) -> Rival:
    encode = msgspec.msgpack.Encoder().encode
    decode = msgspec.msgpack.Decoder(type(value)).decode
    return Rival(partial(encode, value), partial(decode, encode(value)), values)


def _msgpack_blob(value: MechanicsBlob) -> Rival:
    encode = msgspec.msgpack.Encoder().encode
    decode = msgspec.msgpack.Decoder(MechanicsBlob).decode
    data, frombuffer, doubles = encode(value), numpy.frombuffer, numpy.dtype("f8")
    return Rival(partial(encode, value), lambda: frombuffer(decode(data).stress, doubles), lambda got: got.tolist())


def _pickle(record: numpy.ndarray) -> Rival:
    data = pickle.dumps(record, 5)
    return Rival(partial(pickle.dumps, record, 5), partial(pickle.loads, data), _stress_of)


def _pickle_out_of_band(record: numpy.ndarray) -> Rival:
    dumps, loads = pickle.dumps, pickle.loads

    def encode() -> tuple[bytes, list[pickle.PickleBuffer]]:
        buffers: list[pickle.PickleBuffer] = []
        return dumps(record, 5, buffer_callback=buffers.append), buffers

    data, buffers = encode()
    received = [bytes(buffer) for buffer in buffers]
    return Rival(encode, lambda: loads(data, buffers=received), _stress_of)


def _arrow(record: numpy.ndarray) -> Rival:
    stress = record["stress"][0]
    columns = [pyarrow.array(record[name]) for name in NUMBERS]
    columns.append(pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(stress), len(stress)))
    table = pyarrow.RecordBatch.from_arrays(columns, [*NUMBERS, "stress"])
    data, schema, read = table.serialize().to_pybytes(), table.schema, ipc.read_record_batch
    return Rival(
        table.serialize,
        lambda: read(data, schema),
        lambda got: got.column("stress").flatten().to_numpy().tolist(),
    )


def _json(listed: dict[str, object]) -> Rival:
    data = json.dumps(listed)
    return Rival(partial(json.dumps, listed), partial(json.loads, data), lambda got: got["stress"])


def _xml(listed: dict[str, object]) -> Rival:
    """One element per number, as the paper's XML has it."""
    numbers, values = {name: listed[name] for name in NUMBERS}, listed["stress"]

    def encode() -> bytes:
        root = ElementTree.Element("mechanics")
        make = ElementTree.SubElement
        for name, value in numbers.items():
            make(root, name).text = repr(value)
        for value in values:
            make(root, "stress").text = repr(value)
        return ElementTree.tostring(root)

    data = encode()

    def decode() -> tuple[list[int], list[float], list[float]]:
        found = list(ElementTree.fromstring(data))
        integers, doubles = found[:4], found[4:7]
        return (
            [int(item.text) for item in integers],
            [float(item.text) for item in doubles],
            [float(item.text) for item in found[7:]],
        )

    return Rival(encode, decode, lambda got: got[2])


def _stress_of(got: numpy.ndarray) -> list[float]:
    return got["stress"][0].tolist()


@event
class Sample:
    """Five numbers."""

    sequence: int
    at: float
    x: float
    y: float
    z: float


@event
class Trade:
    """Four numbers and a string."""

    symbol: str
    price: float
    volume: int
    venue: uint16
    at: float


class SampleStruct(msgspec.Struct):
    """Five numbers, for the rivals."""

    sequence: int
    at: float
    x: float
    y: float
    z: float


class TradeStruct(msgspec.Struct):
    """Four numbers and a string, for the rivals."""

    symbol: str
    price: float
    volume: int
    venue: int
    at: float


class SampleRow(SampleStruct, array_like=True):
    """Five numbers without their names."""


class TradeRow(TradeStruct, array_like=True):
    """Four numbers and a string without their names."""


def _sample(index: int) -> tuple[object, ...]:
    return index, 1.7e9 + index, index * 0.5, -index * 0.25, 1 / (index + 1)


def _trade(index: int) -> tuple[object, ...]:
    return ("ECHO", "IBM", "MSFT", "BRK.A")[index % 4], 100.25 + index, index * 10, index % 7, 1.7e9 + index


@dataclass(frozen=True, slots=True)
class Objects:
    """One kind of small event: echoic's class, the rivals' classes, and a row of values for each index."""

    declared: type
    struct: type
    row: type
    values: Callable[[int], tuple[object, ...]]

    def events(self, cls: type, count: int) -> list[object]:
        return [cls(*self.values(index)) for index in range(count)]


OBJECTS = {
    "5 numbers": Objects(Sample, SampleStruct, SampleRow, _sample),
    "4 numbers, a string": Objects(Trade, TradeStruct, TradeRow, _trade),
}


def object_rivals(objects: Objects, count: int) -> dict[str, Rival]:
    """Return the rivals for a batch of objects; JSON goes by way of dicts because it knows nothing else."""
    structs, rows = objects.events(objects.struct, count), objects.events(objects.row, count)
    asdict, struct = msgspec.structs.asdict, objects.struct

    def json_encode() -> str:
        return json.dumps([asdict(item) for item in structs])

    pickled, texts = pickle.dumps(structs, 5), json_encode()
    made = {
        "msgpack, array_like": _objects_msgpack(rows, list[objects.row]),
        "msgpack": _objects_msgpack(structs, list[objects.struct]),
        "pickle 5": Rival(partial(pickle.dumps, structs, 5), partial(pickle.loads, pickled), list),
        "JSON": Rival(json_encode, lambda: [struct(**item) for item in json.loads(texts)], list),
    }
    for name, rival in made.items():
        rival.encode()
        if rival.decode() != (rows if "array_like" in name else structs):
            raise AssertionError(f"{name} does not give back what it was given")
    return made


def _objects_msgpack(events: list[object], kind: object) -> Rival:
    encode, decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(kind).decode
    return Rival(partial(encode, events), partial(decode, encode(events)), list)


def records(options: Options) -> Table:
    """Measure one record of each size."""
    table = Table("encode one record", "us", MEMCPY)
    for label, values in SIZES.items():
        declared = mechanics(values)
        record = record_of(Format.of(declared))
        table.add(label, options.measure(_record_cases(declared, record)))
    return table


def _record_cases(declared: type, record: numpy.ndarray) -> dict[str, Callable[[], object]]:
    of, frame, kind = Batch.of, encode_frame, FrameKind.EVENTS
    memory = memoryview(record.view(numpy.uint8))
    objects = [declared(*(record[name][0].item() for name in NUMBERS), record["stress"][0])]
    for made in (of(record), of(record, declared), of(objects)):
        if b"".join(made.buffers())[16:] != bytes(memory):
            raise AssertionError("echoic does not send what lies in memory")
    return {
        EMPTY: empty_call,
        MEMCPY: partial(bytes, memory),
        "echoic, array": lambda: of(record).buffers(),
        "echoic, array to a frame": lambda: frame(kind, of(record, declared).buffers()),
        "echoic, object": lambda: of(objects).buffers(),
        **{name: rival.encode for name, rival in rivals(record).items()},
    }


def batches(options: Options) -> Table:
    """Measure batches of small objects, per event."""
    table = Table("encode objects, per event", "ns", "msgpack")
    of = Batch.of
    for label, objects in OBJECTS.items():
        for count in BATCHES:
            events = objects.events(objects.declared, count)
            cases = {
                "echoic": lambda events=events: of(events).buffers(),
                **{name: rival.encode for name, rival in object_rivals(objects, count).items()},
            }
            table.add(f"{label}, {count}", options.measure(cases), count)
    return table


def independence(table: Table) -> str:
    """Say how the cost grows from the smallest record to the largest."""
    small, large = next(iter(SIZES)), list(SIZES)[-1]
    grown = {case: table.cost(case, large).median / table.cost(case, small).median for case in table.cases()}
    told = "; ".join(f"{case} {times:.3g}x" for case, times in grown.items() if case != EMPTY)
    return f"{large} costs, against {small}: {told}"


def plot(tables: list[Table], path: Path) -> None:
    """Draw the cost of encoding over the size of the record."""
    table = tables[0]
    sizes = [Format.of(mechanics(values)).size for values in SIZES.values()]
    with figure(path, panels=1, title="What it costs to encode one record") as (axes,):
        ends = []
        for case in table.cases():
            if case == EMPTY:
                continue
            costs = [table.cost(case, column).median for column in SIZES]
            ours = case.startswith("echoic")
            colour = COLOURS[case]
            style = "--" if case == MEMCPY else "-"
            axes.plot(sizes, costs, style, color=colour, marker="o", markersize=3, linewidth=2.4 if ours else 1.3)
            ends.append((case, costs[-1], colour))
        axes.set_xlabel("size of the record")
        axes.set_ylim(0.05, 50_000)
        label_ends(axes, sizes[-1], ends)


def run(options: Options) -> list[Table]:
    """Measure everything once."""
    return [records(options), batches(options)]


def judge(report: Report) -> None:
    """Hold what was measured against what was promised."""
    table, objects = report.tables
    report.remarks.append(independence(table))
    for count in BATCHES:
        measured = objects.cost("echoic", f"5 numbers, {count}")
        report.targets.append(Target(f"encode 5 numbers in batches of {count}", measured, EVENT_NS_MAX, "ns"))


def main() -> None:
    """Run the benchmark."""
    conduct("encode", "What encoding costs, beside its rivals.", run, judge, plot)


if __name__ == "__main__":
    main()
