"""Event Services for High Performance Computing: sections 2.2 and 3 as tests.

Quoted headings are the paper's. The records of other machines are written out by hand, byte by byte, so that neither
the layout computation nor the codec can be wrong in the same way as the test.
"""

import enum

import numpy
import pytest

from echoic.errors import IncompatibleTypesError
from echoic.formats import (
    ARCHITECTURES,
    Array,
    Field,
    Format,
    Kind,
    Registry,
    Slots,
    compatibility,
    event,
    float32,
    float64,
    int8,
    int16,
    int32,
    match,
)
from echoic.formats.moves import Copy
from echoic.wire import (
    Batch,
    Conversion,
    FrameKind,
    FrameReader,
    decode_formats,
    encode_formats,
    encode_frame,
    parse_batch,
)

SIZES = [100, 1_000, 10_000, 100_000]


class Phase(enum.IntEnum):
    ELASTIC = 0
    PLASTIC = 1


@event
class Sample:
    """A small record with something that each ABI puts in its own place."""

    flag: int8
    value: float64
    name: str
    small: int16
    n: int32
    samples: Array[float32, "n"]


SENT = Sample(-1, 1.5, "hi", -2, 2, numpy.array([1.0, -2.0], "f4"))

# flag | padding | value | name slot | small | padding | n | samples slot | "hi" NUL 0 | 1.0 -2.0 | padding
RECORDS = {
    "sparc32, pointers": (
        "ff 00000000000000 3ff8000000000000 00000020 fffe 0000 00000002 00000024 68690000 3f800000 c0000000 00000000"
    ),
    "sparc64, pointers": (
        "ff 00000000000000 3ff8000000000000 0000000000000028 fffe 0000 00000002 000000000000002c "
        "68690000 3f800000 c0000000 00000000"
    ),
    "ppc64, pointers": (
        "ff 00000000000000 3ff8000000000000 0000000000000028 fffe 0000 00000002 000000000000002c "
        "68690000 3f800000 c0000000 00000000"
    ),
    "arm, pointers": (
        "ff 00000000000000 000000000000f83f 20000000 feff 0000 02000000 24000000 68690000 0000803f 000000c0 00000000"
    ),
    "windows32, pointers": (
        "ff 00000000000000 000000000000f83f 20000000 feff 0000 02000000 24000000 68690000 0000803f 000000c0 00000000"
    ),
    # doubles are aligned to 4: value at 4, name at 12; 28 bytes, then padding to 32
    "i386, pointers": (
        "ff 000000 000000000000f83f 20000000 feff 0000 02000000 24000000 00000000 68690000 0000803f 000000c0 00000000"
    ),
    "sparc32": (
        "ff 00000000000000 3ff8000000000000 00000028 00000002 fffe 0000 00000002 0000002c 00000002 "
        "68690000 3f800000 c0000000 00000000"
    ),
    "x86_64": (
        "ff 00000000000000 000000000000f83f 28000000 02000000 feff 0000 02000000 2c000000 02000000 "
        "68690000 0000803f 000000c0 00000000"
    ),
    # everything is aligned to 2: value at 2, name at 10, small at 18, n at 20
    "m68k": (
        "ff 00 3ff8000000000000 00000020 00000002 fffe 00000002 00000024 00000002 68690000 3f800000 c0000000 00000000"
    ),
}
OFFSETS = {
    "sparc32, pointers": ([0, 8, 16, 20, 24, 28], 32, 8),
    "sparc64, pointers": ([0, 8, 16, 24, 28, 32], 40, 8),
    "ppc64, pointers": ([0, 8, 16, 24, 28, 32], 40, 8),
    "arm, pointers": ([0, 8, 16, 20, 24, 28], 32, 8),
    "windows32, pointers": ([0, 8, 16, 20, 24, 28], 32, 8),
    "i386, pointers": ([0, 4, 12, 16, 20, 24], 28, 4),
    "sparc32": ([0, 8, 16, 24, 28, 32], 40, 8),
    "x86_64": ([0, 8, 16, 24, 28, 32], 40, 8),
    "m68k": ([0, 2, 10, 18, 20, 24], 32, 2),
}


def format_on(machine: str) -> Format:
    name, _, pointers = machine.partition(", ")
    architecture = ARCHITECTURES[name]
    return Format.of(Sample).on(architecture.with_pointers() if pointers else architecture)


def described_by_hand(machine: str) -> Format:
    """Return the format built from the offsets above and from nothing else."""
    computed = format_on(machine)
    offsets, size, alignment = OFFSETS[machine]
    slot = {Slots.SPAN: 8, Slots.POINTER32: 4, Slots.POINTER64: 8}[computed.slots]
    kinds = [
        ("flag", Kind.INT, 1, ()),
        ("value", Kind.FLOAT, 8, ()),
        ("name", Kind.STRING, slot, ()),
        ("small", Kind.INT, 2, ()),
        ("n", Kind.INT, 4, ()),
        ("samples", Kind.FLOAT, 4, ("n",)),
    ]
    fields = tuple(
        Field(name, kind, bytes_each, offset, dimensions)
        for (name, kind, bytes_each, dimensions), offset in zip(kinds, offsets, strict=True)
    )
    return Format(
        "Sample", fields, byte_order=computed.byte_order, alignment=alignment, size=size, slots=computed.slots
    )


def received(format: Format, record: bytes) -> Batch:
    """Return a batch of one record as it comes out of a stream of frames, with nothing known beforehand."""
    batch = Batch(format, 1, [record], [0, len(record)] if format.variable else None)
    stream = encode_frame(FrameKind.FORMATS, [encode_formats([format])], checked=True)
    stream += encode_frame(FrameKind.EVENTS, batch.buffers(), checked=True)
    announced, events = FrameReader(checked=True).receive(b"".join(stream))
    registry = Registry()
    decode_formats(announced.payload, registry)
    return parse_batch(events.payload, registry)


class TestSection22EventTypesAndTypedChannels:
    """'ECho event types describe C-style structures made up of atomic data types.'"""

    @pytest.mark.parametrize("machine", RECORDS)
    def test_the_layout_of_each_machine_is_the_one_worked_out_by_hand(self, machine: str) -> None:
        assert format_on(machine) == described_by_hand(machine)

    @pytest.mark.parametrize("machine", RECORDS)
    def test_a_record_written_by_hand_for_another_machine_is_decoded(self, machine: str) -> None:
        batch = received(described_by_hand(machine), bytes.fromhex(RECORDS[machine]))
        (record,) = batch.events()
        assert (record.flag, record.value, record.name, record.small, record.n) == (-1, 1.5, "hi", -2, 2)
        assert record.samples.tolist() == [1.0, -2.0]

    @pytest.mark.parametrize("machine", RECORDS)
    def test_conversion_to_this_machine_is_done_upon_receipt(self, machine: str) -> None:
        batch = received(described_by_hand(machine), bytes.fromhex(RECORDS[machine]))
        assert batch.to(Sample).events() == [SENT]

    @pytest.mark.parametrize("machine", RECORDS)
    def test_what_this_machine_writes_for_another_is_the_record_written_by_hand(self, machine: str) -> None:
        assert Batch.of([SENT]).to(described_by_hand(machine)).records.hex() == RECORDS[machine].replace(" ", "")

    @pytest.mark.parametrize("machine", ["sparc32", "m68k"])
    def test_the_dynamically_generated_routine_converts_in_the_same_way(self, machine: str) -> None:
        foreign, record = described_by_hand(machine), bytes.fromhex(RECORDS[machine])
        conversion = Conversion(foreign, Format.of(Sample))
        conversion.compile()
        converted, bounds = conversion.convert(memoryview(record), [0, len(record)], 1)
        assert conversion.statistics().native
        assert Batch(Format.of(Sample), 1, [converted], bounds).to(Sample).events() == [SENT]

    def test_nested_structures_and_statically_sized_arrays_are_supported(self) -> None:
        @event
        class Point:
            x: float
            y: float

        @event
        class Element:
            phase: Phase
            corners: Array[Point, 4]
            stress: Array[float64, 3, 3]

        sent = Element(Phase.PLASTIC, [Point(i, -i) for i in range(4)], numpy.arange(9.0).reshape(3, 3))
        there = Batch.of([sent]).to(Format.of(Element).on(ARCHITECTURES["sparc64"]))
        assert there.to(Element).events() == [sent]

    def test_the_array_size_is_given_by_an_integer_typed_field_in_the_record(self) -> None:
        assert Format.of(Sample).field("samples").sizing == "n"


class TestSection22TypeExtension:
    """'New fields can be added to events without disruption.'"""

    def test_a_source_may_submit_a_superset_of_the_channel_type(self) -> None:
        @event
        class Wider:
            trader: str
            value: float64
            flag: int8
            n: int32
            small: int16
            samples: Array[float32, "n"]
            name: str

        sent = Wider("me", 1.5, -1, 2, -2, SENT.samples, "hi")
        assert Batch.of([sent]).to(Sample).events() == [SENT]
        assert match(Format.of(Wider), Format.of(Sample)).ignored == ("Wider.trader",)

    def test_a_sink_may_have_a_subset_of_the_channel_type(self) -> None:
        @event
        class Narrower:
            name: str
            value: float64

        assert Batch.of([SENT]).to(Narrower).events() == [Narrower("hi", 1.5)]

    def test_a_field_that_no_source_sends_is_refused_by_name_unless_it_has_a_default(self) -> None:
        @event
        class Wants:
            value: float64
            trader: str

        @event
        class Has:
            value: float64
            trader: str = "nobody"

        with pytest.raises(
            IncompatibleTypesError, match=r"`string` is not sent and has no default - at `Sample\.trader`"
        ):
            Batch.of([SENT]).to(Wants)
        assert Batch.of([SENT]).to(Has).events() == [Has(1.5, "nobody")]
        assert compatibility(Sample, Has).level.value == "BACKWARD"

    def test_identical_types_in_one_process_impose_no_conversion(self) -> None:
        batch = Batch.of([SENT])
        assert numpy.shares_memory(
            numpy.frombuffer(batch.to(Sample).records, "u1"), numpy.frombuffer(batch.records, "u1")
        )


class TestSection31SendingSideCosts:
    """'ECho performs very little processing prior to the network send operation.'"""

    @pytest.mark.parametrize("size", SIZES)
    def test_encoding_does_not_touch_the_data(self, size: int) -> None:
        record = numpy.zeros(1, [("step", "i8"), ("state", "f8", (size // 8 - 1,))])
        pieces = Batch.of(record).buffers()
        assert len(pieces) == 2
        assert len(pieces[0]) == 16
        assert numpy.shares_memory(numpy.frombuffer(pieces[1], "u1"), record)

    @pytest.mark.parametrize("size", SIZES[1:])
    def test_an_event_object_lends_its_array_to_the_record(self, size: int) -> None:
        @event
        class State:
            step: int
            state: Array[float64, size // 8]
            energy: float

        state = numpy.zeros(size // 8)
        pieces = [numpy.frombuffer(piece, "u1") for piece in Batch.of([State(1, state, 2.0)]).buffers() if len(piece)]
        assert any(numpy.shares_memory(piece, state) for piece in pieces) == (size >= 1024)


class TestSection33HomogeneousExchanges:
    """'ECho can deliver received data directly to the application without copying it from the message buffer.'"""

    @pytest.mark.parametrize("size", SIZES)
    def test_received_data_is_used_where_it_lies(self, size: int) -> None:
        sent = numpy.arange(size // 8, dtype="f8").view([("state", "f8", (size // 8,))])
        batch = Batch.of(sent)
        payload = b"".join(batch.buffers())
        registry = Registry()
        registry.add(batch.format)
        array = parse_batch(payload, registry).array
        assert numpy.shares_memory(array, numpy.frombuffer(payload, "u1"))
        assert array["state"].tolist() == sent["state"].tolist()


class TestSection34CostsForTypeExtension:
    """'ECho supports type extension by virtue of doing field matching ... by name.'"""

    def test_the_token_is_small_and_stands_in_every_batch(self) -> None:
        batch = Batch.of([SENT])
        assert b"".join(batch.buffers())[:8] == batch.format.token.to_bytes(8, "little")

    def test_full_type_information_is_retrieved_by_the_token(self) -> None:
        registry = Registry()
        registry.add_descriptor(Format.of(Sample).descriptor)
        assert registry.get(Format.of(Sample).token).describe() == Format.of(Sample).describe()

    def test_a_generic_component_operates_upon_data_it_has_no_knowledge_of(self) -> None:
        batch = received(described_by_hand("sparc32"), bytes.fromhex(RECORDS["sparc32"]))
        (record,) = batch.events()
        assert list(record) == ["flag", "value", "name", "small", "n", "samples"]
        assert record["name"] == record.name == "hi"
        assert {name: type(value).__name__ for name, value in record.items()}["samples"] == "ndarray"

    @pytest.mark.parametrize("size", SIZES)
    def test_an_unexpected_field_before_all_others_costs_one_copy_in_the_homogeneous_case(self, size: int) -> None:
        expected = [("step", "i8"), ("state", "f8", (size // 8 - 1,))]
        source, target = Format.of(numpy.dtype([("extra", "i8"), *expected])), Format.of(numpy.dtype(expected))
        assert match(source, target).moves == (Copy(8, 0, target.size),)

    def test_an_additional_field_at_the_end_leaves_the_others_where_they_are(self) -> None:
        expected = [("step", "i8"), ("state", "f8", (12,))]
        source, target = Format.of(numpy.dtype([*expected, ("extra", "i8")])), Format.of(numpy.dtype(expected))
        assert match(source, target).moves == (Copy(0, 0, target.size),)

    @pytest.mark.parametrize("machine", ["x86_64", "sparc64"])
    @pytest.mark.parametrize("size", SIZES)
    def test_an_unexpected_field_changes_nothing_for_the_receiver(self, size: int, machine: str) -> None:
        expected = numpy.dtype([("step", "i8"), ("state", "f8", (size // 8 - 1,))])
        extended = numpy.dtype([("extra", "S5"), *expected.descr])
        sent = numpy.zeros(3, extended)
        sent["extra"], sent["step"] = b"extra", [1, 2, 3]
        sent["state"] = numpy.arange(size // 8 - 1)
        there = Batch.of(sent).to(Format.of(extended).on(ARCHITECTURES[machine]))
        arrived = there.to(Format.of(expected)).array
        assert arrived["step"].tolist() == [1, 2, 3]
        assert arrived["state"].tolist() == sent["state"].tolist()
