"""Programs as SQL: what the text is, and what is refused where."""

import pytest

from echoic.ecode import Signature, check, parameter_format
from echoic.ecode.sql import TEXT_MAX, Refusal, Translation, translate
from echoic.formats import NATIVE, Field, Format, Kind, format_of_text
from echoic.wire import Batch

TRADE = format_of_text(
    "Trade{symbol: str, price: float, volume: int, lot: int32, small: int16, count: uint32, huge: uint64, "
    "ratio: float32, open: bool, raw: bytes}"
).on(NATIVE)
MEAN = format_of_text("Mean{mean: float, lots: int16, symbol: str, open: bool}").on(NATIVE)


def translated(
    code: str, output: Format | None = None, params: dict[str, object] | None = None, given: Format = TRADE
) -> Translation | Refusal:
    block = parameter_format(params) if params is not None else None
    source = code if code.startswith("{") else f"{{ return {code}; }}"
    program = check(source, Signature(given, output, block))
    return translate(program, bytes(Batch.of([params], block).records) if block is not None else b"")


def sql(code: str, output: Format | None = None, params: dict[str, object] | None = None) -> Translation:
    found = translated(code, output, params)
    assert isinstance(found, Translation), found
    return found


def refusal(code: str, output: Format | None = None, given: Format = TRADE) -> Refusal:
    found = translated(code, output, given=given)
    assert isinstance(found, Refusal), found
    return found


def test_a_comparison_with_a_constant_is_as_plain_as_a_file_can_answer() -> None:
    found = sql("input.price < 71.5")
    assert found.condition == "(`price` < 71.5D)"
    assert found.where == "(`price` IS NOT NULL) AND (`price` < 71.5D)"


def test_nan_is_neither_less_nor_equal_but_different() -> None:
    assert sql("input.price > 1.0").condition == "((`price` > 1.0D) AND NOT isnan(`price`))"
    assert sql("input.price == input.price").condition == "((`price` = `price`) AND NOT isnan(`price`))"
    assert sql("input.price != 1.0").condition == "(`price` <> 1.0D)"
    assert sql("input.price != input.ratio").condition.endswith("OR isnan(`price`))")


def test_parameters_become_constants() -> None:
    found = sql("input.price < param.low && input.symbol == param.of", params={"low": 71.5, "of": "IBM"})
    assert found.condition == "((`price` < 71.5D) AND (`symbol` = 'IBM'))"


def test_texts_that_sql_would_read_in_its_own_way_are_spelled_by_their_bytes() -> None:
    assert sql('input.symbol == "a\'b"').condition == "(`symbol` = CAST(X'612762' AS STRING))"
    assert sql('input.symbol == "${x}"').condition == "(`symbol` = CAST(X'247b787d' AS STRING))"
    assert sql(r'input.symbol == "\xff"').condition == "(CAST(`symbol` AS BINARY) = X'ff')"
    assert sql('input.raw != "ab"').condition == "(`raw` <> X'6162')"


def test_what_is_rejected_early_needs_no_choice() -> None:
    found = sql("{ if (input.open) return 0; if (input.price < 1) return 0; return input.volume > 5; }")
    assert found.condition == "((NOT `open`) AND ((NOT (`price` < 1.0D)) AND (`volume` > 5L)))"


def test_ways_that_meet_again_make_choices() -> None:
    found = sql("{ long x = input.volume; if (input.open) x = 5; return x > 3; }")
    assert found.condition == "(if(`open`, 5L, `volume`) > 3L)"


def test_integers_of_32_bits_are_computed_exactly_and_wrapped_once() -> None:
    found = sql("input.lot * input.lot + input.small > 7")
    exact = "((CAST(`lot` AS BIGINT) * CAST(`lot` AS BIGINT)) + CAST(`small` AS BIGINT))"
    assert found.condition == f"(shiftright(shiftleft({exact}, 32), 32) > 7L)"
    assert sql("input.count + 1 > 7").condition == "(((`count` + 1L) & 4294967295L) > 7L)"


def test_what_cannot_overflow_is_not_wrapped() -> None:
    assert sql("input.small * 1000 > 7").condition == "((CAST(`small` AS BIGINT) * 1000L) > 7L)"
    assert sql("(input.volume & 1023) * 1000 > 7").condition == "(((`volume` & 1023L) * 1000L) > 7L)"


def test_integers_of_64_bits_fall_back_to_decimals_only_when_they_overflow() -> None:
    condition = sql("input.volume + input.volume + 1 > 7").condition
    assert condition.startswith("(coalesce(try_add(try_add(`volume`, `volume`), 1L), CAST((pmod(")
    assert condition.count("coalesce") == 1


def test_a_long_sum_grows_with_its_length_and_not_faster() -> None:
    short = len(sql(" + ".join(["input.volume"] * 5) + " > 0").condition)
    long = len(sql(" + ".join(["input.volume"] * 20) + " > 0").condition)
    assert long < 5 * short


def test_an_integer_division_needs_a_divisor_that_is_not_zero() -> None:
    assert sql("input.volume / 3 > 7").condition == "((`volume` DIV 3L) > 7L)"
    assert sql("input.lot % 3 == 1").condition == "((CAST(`lot` AS BIGINT) % 3L) = 1L)"
    assert refusal("10 / input.lot > 1") == Refusal("an integer is divided by what may be zero, which faults", (1, 13))


@pytest.mark.parametrize(
    "code",
    [
        "input.lot != 0 && 10 / input.lot > 1",
        "input.lot == 0 || 10 / input.lot > 1",
        "input.lot && 10 / input.lot > 1",
        "!(input.lot <= 0) ? 10 / input.lot > 1 : 5",
        "0 < input.lot && input.open && input.volume % input.lot > 1",
        "{ if (input.lot == 0 || input.open) return 0; return 10 / input.lot > 1; }",
        "{ int n = input.lot; if (n < -3) { n = 10 / n; } return n > 1; }",
        "{ long n = input.small; if (n != 0) { n = input.volume / n; } return n > 1; }",
    ],
)
def test_what_was_found_not_to_be_zero_can_be_divided_by(code: str) -> None:
    assert "nullif(" in sql(code).condition


@pytest.mark.parametrize(
    "code",
    [
        "input.lot != 0 || 10 / input.lot > 1",
        "input.lot >= 0 && 10 / input.lot > 1",
        "input.small != 0 && 10 / input.lot > 1",
        "input.lot != 1 && 10 / input.lot > 1",
        "{ int n = input.lot; if (n != 0 && (n = input.small, 1)) return 10 / n > 1; return 0; }",
        "{ int n = input.lot; if (n != 0) { n = input.small; return 10 / n > 1; } return 0; }",
        "{ int n = input.lot; if (n != 0) n = 5; return 10 / input.lot > 1; }",
    ],
)
def test_what_may_still_be_zero_cannot(code: str) -> None:
    assert "may be zero" in refusal(code).reason


def test_the_smallest_integer_is_divided_by_minus_one_without_an_error() -> None:
    condition = sql("input.volume / ((input.volume & 1) - 2) > 1").condition
    divisor = "nullif(((`volume` & 1L) - 2L), (-1L))"
    turned = "coalesce(try_subtract(0L, `volume`), `volume`)"
    assert condition == f"(coalesce((`volume` DIV {divisor}), {turned}) > 1L)"


def test_floats_are_divided_by_zero_without_an_error() -> None:
    assert sql("input.price / 2 > 1").condition.startswith("(((`price` / 2.0D)")
    assert "try_divide(1.0D, `price`)" in sql("1 / input.price > 1").condition


def test_a_transform_has_a_column_for_each_field_of_its_output() -> None:
    code = "{ output.mean = input.price; output.lots = input.lot; output.symbol = input.symbol; return 1; }"
    found = sql(code, MEAN)
    assert found.condition == "true"
    assert dict(found.columns) == {
        "mean": "CAST(`price` AS DOUBLE)",
        "lots": "CAST(shiftright(shiftleft(CAST(`lot` AS BIGINT), 48), 48) AS SMALLINT)",
        "symbol": "`symbol`",
        "open": "false",
    }


def test_effects_inside_of_a_return_are_seen_in_the_output() -> None:
    found = sql("{ return output.lots = 5; }", MEAN)
    assert (found.condition, dict(found.columns)["lots"]) == ("true", "CAST(5L AS SMALLINT)")


def test_the_right_side_of_a_logical_operator_has_effects_only_if_it_is_reached() -> None:
    found = sql("{ long x = 1; if (input.open && (x = input.volume)) ; return x > 3; }")
    assert found.condition == "(if(`open`, `volume`, 1L) > 3L)"


def test_elements_of_fixed_arrays_and_of_records_in_arrays_are_found_by_their_offsets() -> None:
    inner = Format.place("Cell", format_of_text("Cell{speed: float, at: int32}").fields, NATIVE)
    fields = [
        Field("grid", Kind.FLOAT, 8, dimensions=(2, 3)),
        Field("cells", Kind.RECORD, inner.size, dimensions=(4,), record=inner),
        Field("n", Kind.INT, 8),
    ]
    given = Format.place("Grid", fields, NATIVE)
    found = translated("input.grid[1][2] < 1 && input.cells[3].at == 2", given=given)
    assert isinstance(found, Translation)
    assert found.condition == ("((get(get(`grid`, 1), 2) < 1.0D) AND (CAST(get(`cells`, 3).`at` AS BIGINT) = 2L))")
    row = "forall(`grid_0`, `grid_0_1` -> (`grid_0_1` IS NOT NULL))"
    assert found.usable == (
        "((size(`cells`) = 4) AND forall(`cells`, `cells_0` -> (`cells_0`.`at` IS NOT NULL)))",
        f"((size(`grid`) = 2) AND forall(`grid`, `grid_0` -> ((size(`grid_0`) = 3) AND {row})))",
    )
    assert refusal("input.grid[input.n & 1][0] < 1", given=given).reason == "an index is computed"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("{ static int n; return ++n; }", "`n` is static"),
        ("{ for (int i = 0; i < 3; i++) ; return 1; }", "there is a loop"),
        ("input.huge > 3", "an unsigned integer of 64 bits may be larger than those of SQL"),
        (
            "(unsigned long)input.price > 3",
            "a float may become an unsigned integer of 64 bits, which SQL does not have",
        ),
        ("sin(input.price) > 0", "`sin` may have another last bit in Java than in C"),
        ("pow(input.price, 2) > 0", "`pow` may have another last bit in Java than in C"),
        ("input.symbol[0] == 'I'", "an index may be outside of its text, which faults"),
    ],
)
def test_what_sql_cannot_say_is_refused_with_its_place(code: str, reason: str) -> None:
    found = refusal(code)
    assert found.reason == reason
    assert found.position > (1, 1)


def test_bytes_cannot_become_a_string_and_long_texts_no_char_array() -> None:
    assert "UTF-8" in refusal("{ output.symbol = input.raw; return 1; }", MEAN).reason
    given = format_of_text("Code{code: char[4]}").on(NATIVE)
    assert "longer" in refusal("{ output.code = input.symbol; return 1; }", given).reason


def test_a_char_array_is_filled_on_every_way() -> None:
    given = format_of_text("Code{code: char[4]}").on(NATIVE)
    found = sql('{ if (input.open) output.code = "ab"; return 1; }', given)
    assert found.columns == (("code", "if(`open`, X'61620000', X'00000000')"),)
    assert sql("{ return 1; }", given).columns == (("code", "X'00000000'"),)


def test_a_program_that_grows_too_large_is_refused() -> None:
    doubling = " ".join("x = x * x + (long)(x / 7.5);" for _ in range(12))
    found = refusal(f"{{ long x = input.volume; {doubling} return x > 0; }}")
    assert f"limit is {TEXT_MAX}" in found.reason


def test_too_many_ways_through_the_code_are_refused() -> None:
    forks = " ".join(f"if (input.volume > {n}) {{ if (input.open) return {n}; }}" for n in range(40))
    assert "limit is" in refusal(f"{{ {forks} return 0; }}").reason


def test_a_router_is_refused() -> None:
    program = check("{ return input.volume > 5; }", Signature(TRADE, ports=2))
    assert translate(program) == Refusal("a router has several outputs", (0, 0))
