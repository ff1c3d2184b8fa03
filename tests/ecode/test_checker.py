"""From the syntax tree to the typed tree: conversions, places, constants, variables, flow."""

import ctypes
import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.ecode import Signature, check, typed
from echoic.ecode.checking.checker import check_tree
from echoic.ecode.checking.folding import fold_arithmetic, fold_comparison
from echoic.ecode.numbers import FLOAT32, FLOAT64, INT32, INT64, NUMBERS, UINT32, UINT64, Number, convert
from echoic.ecode.syntax import tree
from echoic.ecode.syntax.text import SourceText
from echoic.errors import FormatError
from echoic.formats import ARCHITECTURES, NATIVE, Format
from tests.ecode.spelled import FILTER, ROUTER, TRANSFORM, Limits, Summary, Trade, body, checked, problems, returned


@pytest.mark.parametrize(
    ("source", "meaning"),
    [
        ("input.tiny + input.small", "(+ (int32 input.tiny+40) (int32 input.small+41)):int32"),
        ("input.volume + input.wide", "(+ (uint32 input.volume+16) input.wide+44):uint32"),
        ("input.wide + input.total", "(+ (int64 input.wide+44) input.total+56):int64"),
        ("input.total + input.huge", "(+ (uint64 input.total+56) input.huge+48):uint64"),
        ("input.volume * input.ratio", "(* (float32 input.volume+16) input.ratio+64):float32"),
        ("input.ratio * 2.0", "(* (float64 input.ratio+64) 2.0:float64):float64"),
        ("input.ratio * 2.0f", "(* input.ratio+64 2.0:float32):float32"),
        ("input.trade_price < 75", "(< input.trade_price+8 75.0:float64)"),
        ("input.wide < -1", "(< input.wide+44 4294967295:uint32)"),
        ("input.tiny << input.total", "(<< (int32 input.tiny+40) input.total+56):int32"),
        ("input.total >> input.tiny", "(>> input.total+56 (int32 input.tiny+40)):int64"),
        ("-input.small", "(- (int32 input.small+41)):int32"),
        ("+input.small", "(int32 input.small+41)"),
        ("~input.wide", "(~ input.wide+44):uint32"),
        ("!input.trade_price", "(! input.trade_price+8)"),
        ("(char) input.volume", "(int8 input.volume+16)"),
        ("input.tiny && input.trade_price", "(&& input.tiny+40 input.trade_price+8)"),
        (
            "input.tiny ? input.tiny : input.small",
            "(? input.tiny+40 (int32 input.tiny+40) (int32 input.small+41)):int32",
        ),
        ("input.tiny ? 1 : 2.5", "(? input.tiny+40 1.0:float64 2.5:float64):float64"),
        ("input.volume, input.ratio", "(, input.volume+16 input.ratio+64)"),
        ("sqrt(input.volume)", "(sqrt (float64 input.volume+16))"),
        ("isnan(input.ratio)", "(int32 (isnan (float64 input.ratio+64)))"),
        ("pow(2, input.trade_price)", "(pow 2.0:float64 input.trade_price+8)"),
        ("input.side == 2", "(== input.side+36 2:int32)"),
        ("input.flag == 1", "(== (int32 input.flag+32) 1:int32)"),
    ],
)
def test_conversions_are_those_of_c(source: str, meaning: str) -> None:
    assert returned(source) == meaning


@pytest.mark.parametrize(
    ("source", "meaning"),
    [
        ("output.count = input.trade_price", "(= output.count+8 (int16 input.trade_price+8))"),
        ("output.mean = 3", "(= output.mean 3.0:float64)"),
        ("output.count += input.trade_price", "(+= output.count+8 input.trade_price+8 in float64)"),
        ("output.count += 1", "(+= output.count+8 1:int32 in int32)"),
        ("output.count <<= input.total", "(<<= output.count+8 input.total+56 in int32)"),
        ("output.count++", "(+=post output.count+8 1:int32 in int32)"),
        ("--output.mean", "(-= output.mean 1.0:float64 in float64)"),
        ("output.mean = output.count = 2.5", "(= output.mean (float64 (= output.count+8 2:int16)))"),
        ("output.flag = input.trade_price", "(= output.flag+10 (uint8 (!= input.trade_price+8 0.0:float64)))"),
        ("output.flag = 256", "(= output.flag+10 1:uint8)"),
        ("output.flag = input.n < 3", "(= output.flag+10 (uint8 (< input.n+352 3:int32)))"),
        (
            "output.flag |= input.n",
            "(= output.flag+10 (uint8 (!= (| (int32 output.flag+10) input.n+352):int32 0:int32)))",
        ),
    ],
)
def test_assignments_convert_to_the_type_of_the_place(source: str, meaning: str) -> None:
    assert returned(source) == meaning


@pytest.mark.parametrize(
    ("source", "meaning"),
    [
        ("input.leg.price", "input.leg.price+72"),
        ("input.legs[2].count", "input.legs.count+152"),
        ("input.legs[input.n].price", "input.legs.price+96[(int64 input.n+352)<3*24]"),
        ("input.grid[1][2]", "input.grid+224"),
        ("input.grid[input.tiny][3]", "input.grid+192[(int64 input.tiny+40)<4*40]"),
        ("input.grid[3][input.total]", "input.grid+288[input.total+56<5*8]"),
        (
            "input.grid[input.tiny][input.n]",
            "input.grid+168[(int64 input.tiny+40)<4*40][(int64 input.n+352)<5*8]",
        ),
        ("input.code[input.n]", "input.code+20[(int64 input.n+352)<12*1]"),
        ("input.codes[1][7]", "input.codes+343"),
        ("input.samples[3]", "input.samples+356@3:int64*4 -> input.samples+0"),
        ("input.pairs[input.n][1]", "input.pairs+364@(int64 input.n+352)*16 -> input.pairs+8"),
        ("input.cells[input.n].speed", "input.cells+372@(int64 input.n+352)*20 -> input.cells.speed+0"),
        (
            "input.cells[2].levels[input.n]",
            "input.cells+372@2:int64*20 -> input.cells.levels+12@(int64 input.n+352)*2 -> input.cells.levels+0",
        ),
        ("input.letters[0]", "input.letters+388@0:int64*1 -> input.letters+0"),
        ("output.points[99].y", "output.points+116@99:int64*16 -> output.points.y+8"),
        ("output.samples[7]", "output.samples+100@7:int64*4 -> output.samples+0"),
        ("param.low", "param.low"),
    ],
)
def test_a_path_becomes_an_offset_and_indexes(source: str, meaning: str) -> None:
    assert returned(source) == meaning


def test_an_index_of_a_variable_is_its_offset() -> None:
    assert returned("a[2][input.n]", "short a[3][4];") == "a+16[(int64 input.n+352)<4*2]"


@pytest.mark.parametrize(
    ("source", "meaning"),
    [
        ('input.symbol == "IBM"', "(text== text input.symbol b'IBM')"),
        ('"IBM" != input.code', "(text!= b'IBM' text input.code+20)"),
        ("input.codes[1] == input.leg.label", "(text== text input.codes+336 text input.leg.label+84)"),
        ('input.tags[input.n] == "x"', "(text== text input.tags+380@(int64 input.n+352)*8 -> input.tags+0 b'x')"),
        ('input.cells[0].name == "x"', "(text== text input.cells+372@0:int64*20 -> input.cells.name+4 b'x')"),
        ("input.symbol[2] == 'M'", "(== (int32 (byte text input.symbol 2:int64)) 77:int32)"),
        ("strlen(input.symbol)", "(length text input.symbol)"),
        ("strlen(input.code)", "(length text input.code+20)"),
        ('strlen("four")', "4:int64"),
        ('"a" == "a"', "1:int32"),
        ('"a" != "a"', "0:int32"),
        ("length(input.samples)", "(length input.samples+356)"),
        ("length(input.cells[1].levels)", "(length input.cells+372@1:int64*20 -> input.cells.levels+12)"),
        ("length(output.values)", "(length output.values+108)"),
        ("length(input.grid)", "4:int64"),
        ("length(input.grid[1])", "5:int64"),
        ("output.name == param.name", "(text== text output.name+16 text param.name+16)"),
    ],
)
def test_texts_and_arrays_can_be_compared_indexed_and_measured(source: str, meaning: str) -> None:
    assert returned(source) == meaning


def test_the_length_of_a_variable_is_a_constant() -> None:
    assert returned("length(a)", "int a[7][2];") == "7:int64"


@pytest.mark.parametrize(
    ("source", "meaning"),
    [
        ("37 * 253", "9361:int32"),
        ("2147483647 + 1", "-2147483648:int32"),
        ("-7 / 2", "-3:int32"),
        ("-7 % 2", "-1:int32"),
        ("(-2147483647 - 1) / -1", "-2147483648:int32"),
        ("1u - 2", "4294967295:uint32"),
        ("1 << 33", "2:int32"),
        ("-8 >> 1", "-4:int32"),
        ("1.0 / 0", "inf:float64"),
        ("-1.0 / 0", "-inf:float64"),
        ("0.0 / 0", "nan:float64"),
        ("16777217 * 1.0f", "16777216.0:float32"),
        ("(int) 3e9", "2147483647:int32"),
        ("(unsigned char) 300", "44:uint8"),
        ("(unsigned char) -1.5", "0:uint8"),
        ("!2.5", "0:int32"),
        ("~0u", "4294967295:uint32"),
        ("3 > 2 && 0.0", "0:int32"),
        ("0 && input.n", "0:int32"),
        ("1 || input.n", "1:int32"),
        ("1 && input.n", "(&& 1:int32 input.n+352)"),
        ("1 ? 2 : 3.5", "2.0:float64"),
        ("-1 < 1u", "0:int32"),
        ("'a' + 1", "98:int32"),
    ],
)
def test_constants_are_computed_as_at_run_time(source: str, meaning: str) -> None:
    assert returned(source) == meaning


FOREIGN = ARCHITECTURES["sparc64" if NATIVE.byte_order == "little" else "x86_64"]
NUMPY = {number: numpy.dtype(number.name) for number in NUMBERS.values()}


@given(st.data())
def test_folded_integers_wrap_as_the_machine_does(data: st.DataObject) -> None:
    number = data.draw(st.sampled_from([INT32, UINT32, INT64, UINT64]))
    left, right = (data.draw(st.integers(number.smallest, number.largest)) for _ in range(2))
    symbol = data.draw(st.sampled_from(["+", "-", "*", "&", "|", "^"]))
    operation = {
        "+": "add",
        "-": "subtract",
        "*": "multiply",
        "&": "bitwise_and",
        "|": "bitwise_or",
        "^": "bitwise_xor",
    }
    arrays = (numpy.array([value], NUMPY[number]) for value in (left, right))
    assert fold_arithmetic(symbol, left, right, number) == getattr(numpy, operation[symbol])(*arrays)[0]


@given(st.floats(), st.floats(), st.sampled_from("+-*/"), st.sampled_from([FLOAT32, FLOAT64]))
def test_folded_floats_are_rounded_as_the_machine_does(left: float, right: float, symbol: str, number: Number) -> None:
    left, right = convert(left, number), convert(right, number)
    operation = {"+": numpy.add, "-": numpy.subtract, "*": numpy.multiply, "/": numpy.divide}[symbol]
    with numpy.errstate(all="ignore"):
        expected = operation(NUMPY[number].type(left), NUMPY[number].type(right))
    found = fold_arithmetic(symbol, left, right, number)
    assert found == expected or (math.isnan(found) and math.isnan(expected))
    assert math.isnan(found) or math.copysign(1, found) == math.copysign(1, expected)


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1).filter(bool))
def test_folded_divisions_truncate(left: int, right: int) -> None:
    quotient, rest = fold_arithmetic("/", left, right, INT32), fold_arithmetic("%", left, right, INT32)
    assert ctypes.c_int32(int(quotient) * right + int(rest)).value == left
    assert abs(rest) < abs(right)
    assert rest == 0 or (rest < 0) == (left < 0)


@pytest.mark.parametrize("symbol", ["==", "<", ">", "<=", ">="])
def test_comparisons_with_nan_are_false(symbol: str) -> None:
    assert fold_comparison(symbol, math.nan, math.nan) == 0
    assert fold_comparison("!=", math.nan, math.nan) == 1


def test_locals_are_declared_where_they_begin_to_live() -> None:
    assert body("int i; double x = 1, y[2][2] = {{1}, {2}}; return 1;") == (
        "{ int32 i = (); float64 x = (1.0:float64); "
        "float64 y[2][2] = (1.0:float64, 0.0:float64, 2.0:float64); return 1:int32; }"
    )


def test_names_live_in_blocks() -> None:
    program = checked("int x = 1; { double x = 2; output.mean = x; } output.count = x; return x;")
    assert [variable.number for variable in program.locals] == [INT32, FLOAT64]
    assert [variable.serial for variable in program.locals] == [0, 1]
    assert problems("{ int x; } return x;") == ["1:19: there is no variable `x`"]
    assert problems("for (int i = 0; i < 3; i++) ; return i;") == ["1:38: there is no variable `i`"]


def test_a_declaration_sees_the_name_outside_of_it() -> None:
    assert body("int x = 1; { int x = x + 1; } return 1;") == (
        "{ int32 x = (1:int32); { int32 x = ((+ x 1:int32):int32); } return 1:int32; }"
    )


def test_a_constant_that_is_known_is_no_variable() -> None:
    program = checked("const int n = 3; static const double x = n; int a[n * 2]; a[n] = 1; return x;")
    assert [variable.dimensions for variable in program.locals] == [(6,)]
    assert program.statics == ()


def test_a_constant_that_is_computed_is_a_variable() -> None:
    (variable,) = checked("const int n = input.n; return n;").locals
    assert variable.constant


def test_statics_are_aligned_one_after_the_other() -> None:
    program = checked(
        "static char a = 'x'; static double b = 1; static short c[3] = {1, 2}; static float d = 0.1; "
        "{ static long long e[2][2] = {{1}, {-2}}; } return a;"
    )
    laid = [(each.name, each.offset, each.initial) for each in program.statics]
    assert laid == [
        ("a", 0, (120,)),
        ("b", 8, (1.0,)),
        ("c", 16, (1, 2, 0)),
        ("d", 24, (convert(0.1, FLOAT32),)),
        ("e", 32, (1, 0, -2, 0)),
    ]
    assert program.static_bytes == 64
    record = numpy.frombuffer(program.initial_statics(), program.static_format().dtype)[0]
    assert record["c"].tolist() == [1, 2, 0]
    assert record["e"].tolist() == [[1, 0], [-2, 0]]


def test_statics_of_one_name_can_be_told_apart() -> None:
    program = checked("static int x_2; static int x = 7; { static int x = 8; { static int x = 9; } } return x + x_2;")
    laid = program.static_format()
    assert laid is not None
    assert [field.name for field in laid.fields] == ["x_2", "x", "x_2_2", "x_3"]
    assert numpy.frombuffer(program.initial_statics(), laid.dtype)[0].tolist() == (0, 7, 8, 9)


def test_the_block_of_statics_is_a_multiple_of_eight() -> None:
    assert checked("static char a; return a;").static_bytes == 8
    assert checked("return 1;").static_bytes == 0


def test_locals_and_statics_may_take_sixty_four_kilobytes_each() -> None:
    assert checked("char a[65536]; static char b[65536]; return a[0] + b[0];")
    assert problems("char a[65537]; return 1;") == [
        "1:6: `a` takes 65537 bytes, limit for all local variables is 65536"
    ]
    assert problems("char a[65536]; int b; return 1;") == [
        "1:20: with `b` the local variables take 65544 bytes, limit is 65536"
    ]
    assert problems("static char a[65536]; static char b; return 1;") == [
        "1:35: with `b` the static variables take 65537 bytes, limit is 65536"
    ]
    assert "limit is 65536" in problems("int a[60000][60000][60000]; return 1;")[0].replace(
        "for all local variables ", ""
    )


def test_a_variable_without_a_type_has_that_of_its_value() -> None:
    at = (1, 1)
    half = tree.Constant(0.5, FLOAT64, at)
    one = tree.Constant(1, INT32, at)
    block = tree.Block(
        (
            tree.Declaration("x", None, (), half, static=False, constant=False, at=at),
            tree.Declaration("a", None, (None,), tree.Braces((one, half), at), static=False, constant=False, at=at),
            tree.Return(tree.TrueDivision(one, one, at), at),
        ),
        at,
        at,
    )
    program = check_tree(block, FILTER, SourceText(""), "python")
    assert [(each.number, each.dimensions) for each in program.locals] == [(FLOAT64, ()), (FLOAT64, (2,))]


@pytest.mark.parametrize(
    ("source", "meaning"),
    [
        ('output.name = "x"; return 1;', "{ text output.name+16 = b'x'; return 1:int32; }"),
        ("output.name = input.symbol; return 1;", "{ text output.name+16 = text input.symbol; return 1:int32; }"),
        ('output.code = "four"; return 1;', "{ text output.code+24 = b'four'; return 1:int32; }"),
        (
            "output.inner.note = input.tags[1]; return 1;",
            "{ text output.inner.note+40 = text input.tags+380@1:int64*8 -> input.tags+0; return 1:int32; }",
        ),
        (
            "resize(output.values, input.n); return 1;",
            "{ resize output.values+108 (int64 input.n+352); return 1:int32; }",
        ),
        ("if (input.n) return 1; else return 0;", "{ if input.n+352 return 1:int32; else return 0:int32; }"),
        ("while (input.n) { break; } return 1;", "{ loop (input.n+352; ) { break; } return 1:int32; }"),
        ("do continue; while (input.n); return 1;", "{ do (input.n+352; ) continue; return 1:int32; }"),
        (
            "for (int i = 0; i < 3; i++) ; return 1;",
            "{ { int32 i = (0:int32); loop ((< i 3:int32); (+=post i 1:int32 in int32)) {  } } return 1:int32; }",
        ),
        ("for (;;) return 1;", "{ loop (; ) return 1:int32; }"),
        ("return input.trade_price;", "{ return (int32 input.trade_price+8); }"),
    ],
)
def test_statements_become_typed_ones(source: str, meaning: str) -> None:
    assert body(source) == meaning


def test_a_resize_converts_its_length() -> None:
    statement = checked("resize(output.points, input.n); return 1;").body.statements[0]
    assert isinstance(statement, typed.Resize)
    assert statement.length.number is INT64
    assert statement.array.path == ("points",)


def test_a_loop_knows_the_statement_before_it() -> None:
    program = checked("int i = 0; while (i < 3) i++; for (i = 5; i; --i) ; return 1;")
    declare, loop, block, _ = program.body.statements
    assert isinstance(loop, typed.Loop)
    assert loop.before is declare
    assert isinstance(block, typed.Block)
    assert isinstance(block.statements[1], typed.Loop)
    assert block.statements[1].before is block.statements[0]


@pytest.mark.parametrize(
    ("source", "signature", "meaning"),
    [
        ("input.n < 3", FILTER, "{ return (< input.n+352 3:int32); }"),
        ("input.trade_price", FILTER, "{ return (!= input.trade_price+8 0.0:float64); }"),
        ("input.total", FILTER, "{ return (!= input.total+56 0:int64); }"),
        ("input.n && 1", FILTER, "{ return (&& input.n+352 1:int32); }"),
        ("input.n % 4", ROUTER, "{ return (% input.n+352 4:int32):int32; }"),
        ("input.total", ROUTER, "{ return (int32 input.total+56); }"),
    ],
)
def test_an_expression_alone_passes_what_is_not_zero_or_names_the_port(
    source: str, signature: Signature, meaning: str
) -> None:
    assert body(source, signature) == meaning


@pytest.mark.parametrize(
    "source",
    [
        "while (1) { }",
        "for (;;) { if (input.n) return 1; }",
        "do { return 1; } while (0);",
        "do { } while (1);",
        "do { if (input.n) continue; return 1; } while (1);",
        "if (input.n) return 1; else { return 0; }",
        "{ { return 1; } }",
        "return 1; input.n;",
        "while (1) { while (1) break; }",
        "while (1) { for (;;) { break; } if (input.n) return 1; }",
    ],
)
def test_a_program_need_not_return_where_its_end_is_never_reached(source: str) -> None:
    assert problems(source) == []


@pytest.mark.parametrize(
    "source",
    [
        "input.n;",
        "if (input.n) return 1;",
        "if (1) return 1;",
        "while (input.n) return 1;",
        "while (1) { break; }",
        "while (1) { if (input.n) break; }",
        "for (int i = 0; i < 3; i++) return 1;",
        "do { if (input.n) continue; return 1; } while (input.n);",
        "do { break; } while (1);",
        "if (input.n) { return 1; } else { }",
        "int x;",
    ],
)
def test_a_program_whose_end_can_be_reached_must_return(source: str) -> None:
    assert "control reaches the end without `return`" in problems(source)[-1]


def test_the_fields_that_occur_are_known() -> None:
    program = checked(
        "output.mean = input.cells[0].speed + input.leg.price; output.name = param.name; return length(input.tags);"
    )
    assert program.used == {
        ("input", ("cells",)),
        ("input", ("cells", "speed")),
        ("input", ("leg", "price")),
        ("input", ("tags",)),
        ("output", ("mean",)),
        ("output", ("name",)),
        ("param", ("name",)),
    }


def test_offsets_are_those_of_the_machine_that_sends() -> None:
    foreign = Signature(Format.of(Trade).on(ARCHITECTURES["i386"]))
    assert returned("input.trade_price", signature=foreign) == "input.trade_price+8"
    assert returned("input.total", signature=foreign) == f"input.total+{foreign.input.field('total').offset}"
    assert foreign.input.field("legs").size != FILTER.input.field("legs").size


def test_a_program_remembers_what_it_was_made_of() -> None:
    program = check("return 1;", FILTER, file="a.ec")
    assert (program.source, program.spelling, program.file, program.signature) == ("return 1;", "ecode", "a.ec", FILTER)


def test_the_size_of_a_program_is_limited() -> None:
    assert checked("output.mean += 1;" * 490 + "return 1;").nodes <= typed.NODES_MAX
    found = problems("output.mean += 1;" * 700 + "return 1;")
    assert [problem.split(": ")[1] for problem in found] == [
        "the code has more than 2000 operations, values and statements"
    ]


def test_zeros_between_the_values_of_a_local_array_count_too() -> None:
    assert "more than 2000" in problems("char a[2][30000] = {{1}, {1}}; return 1;")[0]
    assert checked("static char a[2][30000] = {{1}, {1}}; return a[1][0];").statics[0].initial[30000] == 1


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        (
            Signature(Format.of(Limits).on(NATIVE.with_pointers())),
            "`input` has C pointers as slots (pointer64), expected spans: convert it first - at `Limits`",
        ),
        (Signature(FILTER.input, ports=65), "a router has 65 ports, limit is 64"),
        (Signature(FILTER.input, ports=-1), "a router has -1 ports, limit is 64"),
        (
            Signature(FILTER.input, Format.of(Summary).on(FOREIGN)),
            (
                f"`output` is {FOREIGN.byte_order}-endian, expected this machine's order, which is "
                f"{NATIVE.byte_order}-endian - at `Summary`"
            ),
        ),
        (
            Signature(FILTER.input, TRANSFORM.output, capacities=(("sampels", 3),)),
            "a capacity is for a dynamic array of `output`, which this is not (did you mean `samples`?) - at `sampels`",
        ),
        (
            Signature(FILTER.input, capacities=(("samples", 3),)),
            "a capacity is for a dynamic array of `output`, which this is not - at `samples`",
        ),
        (
            Signature(FILTER.input, TRANSFORM.output, capacities=(("samples", 0),)),
            "the capacity is 0, expected 1 to 1000000 - at `samples`",
        ),
        (
            Signature(FILTER.input, TRANSFORM.output, capacities=(("samples", 1_000_001),)),
            "the capacity is 1000001, expected 1 to 1000000 - at `samples`",
        ),
        (
            Signature(FILTER.input, TRANSFORM.output, capacities=(("samples", 1), ("samples", 2))),
            "two capacities are given for one array - at `samples`",
        ),
    ],
)
def test_types_that_no_program_can_work_on_are_refused(signature: Signature, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        check("return 1;", signature)
    assert str(caught.value) == message
