"""That the comparison of back ends, on which other tests rest, sees the smallest difference."""

import pytest

from echoic.formats import Format
from tests.ecode.orders import Made, order
from tests.ecode.programs import Ran, assert_alike, run

NAN = "double zero = input.price - input.price; output.price = zero / zero;"


def made(code: str) -> Ran:
    return run("python", f"static double kept; {code} return 1;", [order()], Made)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("output.n = 1; output.samples[0] = 0.1;", "output.n = 1; output.samples[0] = 0.10000000000000002;"),
        ("output.price = 0.0;", "output.price = -0.0;"),
        (
            f"{NAN} output.n = 1; output.samples[0] = 0.1;",
            f"{NAN} output.n = 1; output.samples[0] = 0.10000000000000002;",
        ),
        (f"{NAN} output.single = 1;", f"{NAN} output.single = 1.0000001f;"),
        ("output.name = input.name;", "output.name = input.symbol;"),
        ("kept = 0.1;", "kept = 0.10000000000000002;"),
        ("kept = 1 / input.number;", "kept = 1 / (input.number - 7);"),
    ],
)
def test_a_difference_in_the_last_bit_is_one(one: str, other: str) -> None:
    assert_alike(made(one), made(one), Made)
    with pytest.raises(AssertionError):
        assert_alike(made(one), made(other), Made)


def test_any_nan_is_as_good_as_any_other() -> None:
    one, other = made(NAN), made(NAN)
    place = Format.of(Made).field("price").offset
    data = bytearray(other.outcome.records or b"")
    data[place + 7] ^= 0x80
    other.outcome.records = bytes(data)
    assert one.outcome.records != other.outcome.records
    assert_alike(one, other, Made)
