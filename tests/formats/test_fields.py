"""Fields: what they are called, how many elements they have, and what lies in the variable part."""

import dataclasses

import pytest

from echoic.formats import MISSING, NATIVE, Enumeration, Field, Format, Kind, Slots

SIDE = Enumeration("Side", signed=True, members=(("BUY", 1), ("SELL", 2)))
CELL = Format.place("Cell", [Field("x", Kind.INT, 2)], NATIVE)
NOTE = Format.place("Note", [Field("text", Kind.STRING, 8)], NATIVE)


@pytest.mark.parametrize(
    ("field", "spelling"),
    [
        (Field("a", Kind.INT, 1), "int8"),
        (Field("a", Kind.INT, 8), "int64"),
        (Field("a", Kind.UINT, 2), "uint16"),
        (Field("a", Kind.FLOAT, 4), "float32"),
        (Field("a", Kind.BOOL, 1), "bool"),
        (Field("a", Kind.CHAR, 1, dimensions=(16,)), "char[16]"),
        (Field("a", Kind.ENUM, 4, enumeration=SIDE), "enum Side"),
        (Field("a", Kind.STRING, 8), "string"),
        (Field("a", Kind.STRING, 8, optional=True), "string?"),
        (Field("a", Kind.BYTES, 8, optional=True), "bytes?"),
        (Field("a", Kind.STRING, 8, dimensions=("",)), "string[]"),
        (Field("a", Kind.FLOAT, 8, dimensions=(37, 253)), "float64[37][253]"),
        (Field("a", Kind.FLOAT, 4, dimensions=("n", 3)), "float32[n][3]"),
        (Field("a", Kind.RECORD, 2, dimensions=("n",), record=CELL), "Cell[n]"),
    ],
)
def test_a_field_is_spelled_as_people_write_its_type(field: Field, spelling: str) -> None:
    assert field.spelling == spelling


@pytest.mark.parametrize(
    ("dimensions", "dynamic", "sizing", "fixed", "count"),
    [
        ((), False, "", (), 1),
        ((37, 253), False, "", (37, 253), 37 * 253),
        (("n",), True, "n", (), 1),
        (("n", 3, 2), True, "n", (3, 2), 6),
        (("",), True, "", (), 1),
        (("", 4), True, "", (4,), 4),
    ],
)
def test_the_dimensions_alone_tell_the_three_shapes_of_fields_apart(
    dimensions: tuple[int | str, ...], dynamic: bool, sizing: str, fixed: tuple[int, ...], count: int
) -> None:
    field = Field("a", Kind.FLOAT, 4, dimensions=dimensions)
    assert (field.dynamic, field.sizing, field.fixed_dimensions, field.count) == (dynamic, sizing, fixed, count)


@pytest.mark.parametrize(
    ("field", "variable"),
    [
        (Field("a", Kind.INT, 4), False),
        (Field("a", Kind.CHAR, 1, dimensions=(16,)), False),
        (Field("a", Kind.INT, 4, dimensions=("n",)), True),
        (Field("a", Kind.STRING, 8), True),
        (Field("a", Kind.BYTES, 8, dimensions=(3,)), True),
        (Field("a", Kind.RECORD, 2, record=CELL), False),
        (Field("a", Kind.RECORD, 2, dimensions=("",), record=CELL), True),
        (Field("a", Kind.RECORD, 8, record=NOTE), True),
    ],
)
def test_text_dynamic_arrays_and_records_with_them_reach_into_the_variable_part(field: Field, variable: bool) -> None:
    assert field.variable is variable


def test_only_strings_and_bytes_are_text() -> None:
    assert {kind for kind in Kind if Field("a", kind, 1).text} == {Kind.STRING, Kind.BYTES}


def test_the_numbers_of_kinds_and_slots_are_those_of_the_wire_and_never_change() -> None:
    kinds = {"INT": 1, "UINT": 2, "FLOAT": 3, "BOOL": 4, "CHAR": 5, "ENUM": 6, "STRING": 7, "BYTES": 8, "RECORD": 9}
    assert {kind.name: kind.value for kind in Kind} == kinds
    assert {slots.name: slots.value for slots in Slots} == {"SPAN": 0, "POINTER32": 1, "POINTER64": 2}


def test_a_slot_is_a_pair_of_words_or_one_pointer() -> None:
    assert {slots: (slots.size, slots.unit) for slots in Slots} == {
        Slots.SPAN: (8, 4),
        Slots.POINTER32: (4, 4),
        Slots.POINTER64: (8, 8),
    }


def test_a_field_is_a_value_without_default_unless_one_is_given() -> None:
    field = Field("a", Kind.INT, 4)
    assert field == Field("a", Kind.INT, 4)
    assert field.default is MISSING
    assert dataclasses.replace(field, default=0) != field
    with pytest.raises(dataclasses.FrozenInstanceError):
        field.size = 8  # type: ignore[misc]
