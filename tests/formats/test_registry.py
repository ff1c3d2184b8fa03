"""The table of known formats: bounded, and true to its tokens."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.errors import LimitExceededError, MalformedFormatError, UnknownFormatError
from echoic.formats import Field, Format, Kind, Registry
from echoic.formats.limits import DESCRIPTOR_BYTES_MAX, REGISTRY_FIELDS_MAX
from tests.strategies import formats


def format_of(index: int) -> Format:
    return Format(f"T{index}", (Field("a", Kind.INT, 4),), byte_order="little", alignment=4, size=4)


def test_a_format_is_found_by_its_token() -> None:
    registry, format = Registry(), format_of(0)
    assert registry.add(format) is format
    assert registry.get(format.token) is registry.find(format.token) is format
    assert (len(registry), format.token in registry) == (1, True)


def test_an_equal_format_is_answered_with_the_one_that_is_known() -> None:
    registry, first, second = Registry(), format_of(0), format_of(0)
    registry.add(first)
    assert registry.add(second) is first
    assert registry.add_descriptor(second.descriptor) is first
    assert len(registry) == 1


def test_a_token_nobody_described_is_unknown() -> None:
    registry = Registry()
    registry.add(format_of(0))
    assert registry.find(0xBEEF) is None
    assert 0xBEEF not in registry
    with pytest.raises(UnknownFormatError, match="no format with token 000000000000beef was described, 1 are known"):
        registry.get(0xBEEF)


def test_a_full_registry_takes_no_more_and_forgets_nothing() -> None:
    registry = Registry(formats_max=2)
    known = [registry.add(format_of(index)) for index in range(2)]
    for add in (lambda: registry.add(format_of(2)), lambda: registry.add_descriptor(format_of(2).descriptor)):
        with pytest.raises(LimitExceededError, match=r"cannot add `T2`: .*2 formats.*, limit is 2"):
            add()
    assert len(registry) == 2
    assert [registry.add(format_of(index)) for index in range(2)] == known
    assert registry.add_descriptor(format_of(1).descriptor) is known[1]


def test_the_fields_of_all_formats_together_are_bounded() -> None:
    fields = tuple(Field(f"f{index}", Kind.INT, 1, index) for index in range(4096))
    registry = Registry()
    for index in range(REGISTRY_FIELDS_MAX // 4096):
        registry.add(Format(f"Broad{index}", fields, byte_order="little", alignment=1, size=4096))
    assert registry.add(Format("Broad0", fields, byte_order="little", alignment=1, size=4096)).name == "Broad0"
    message = f"cannot add `T0` of 1 fields: {REGISTRY_FIELDS_MAX} are known, limit is {REGISTRY_FIELDS_MAX}"
    with pytest.raises(LimitExceededError, match=message):
        registry.add(format_of(0))
    assert format_of(0).token not in registry


def test_a_second_format_with_the_token_of_the_first_is_refused_and_the_first_stays() -> None:
    registry, honest, forged = Registry(), format_of(0), format_of(1)
    registry.add(honest)
    vars(forged)["token"] = honest.token  # what an attacker who could find a collision would send
    with pytest.raises(MalformedFormatError, match=rf"`T1` and `T0` have the same token {honest.token:016x}"):
        registry.add(forged)
    assert registry.get(honest.token) is honest


def test_a_descriptor_is_not_believed_because_of_its_token() -> None:
    registry, honest, forged = Registry(), format_of(0), format_of(1)
    vars(forged)["token"] = honest.token
    registry.add(forged)
    with pytest.raises(MalformedFormatError, match="`T0` and `T1` have the same token"):
        registry.add_descriptor(honest.descriptor)


@pytest.mark.parametrize("data", [b"", b"\x94", msgspec.msgpack.encode([1, 0, 0, []]), bytes(100)])
def test_what_is_no_descriptor_is_refused_and_leaves_no_trace(data: bytes) -> None:
    registry = Registry()
    with pytest.raises(MalformedFormatError):
        registry.add_descriptor(data)
    assert len(registry) == 0


def test_a_descriptor_that_is_too_long_is_refused() -> None:
    with pytest.raises(LimitExceededError, match=f"limit is {DESCRIPTOR_BYTES_MAX}"):
        Registry().add_descriptor(bytes(DESCRIPTOR_BYTES_MAX + 1))


@settings(max_examples=40)
@given(st.lists(formats(max_depth=1), max_size=5))
def test_a_registry_knows_what_was_added_to_another_by_descriptor(known: list[Format]) -> None:
    here, there = Registry(), Registry()
    for format in known:
        here.add(format)
        there.add_descriptor(format.descriptor)
    assert len(here) == len(there) == len(set(known))
    assert all(here.get(format.token) == there.get(format.token) == format for format in known)
