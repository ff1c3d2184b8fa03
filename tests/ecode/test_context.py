"""The context of a source in E-Code: read, assigned to and called, alike in both back ends and both spellings."""

import struct

import pytest

from echoic import Array, event, float32, int32, uint8
from echoic.ecode import CALLS_MAX, Kernel, Program, Signature, analyse, check, compile_native, compile_python
from echoic.errors import CodegenError, ECodeError, FormatError
from echoic.formats import ARCHITECTURES, NATIVE, Format
from echoic.wire import Batch
from tests.ecode.programs import BACK_ENDS, compiled

pytestmark = pytest.mark.parametrize("back_end", BACK_ENDS)


@event
class Sample:
    t: float


@event
class Limits:
    low: int32
    high: int32


@event
class Controls:
    temperature: float
    step: float
    open: bool
    count: int32
    gain: float32
    small: uint8
    valves: Array[float, 3]
    limits: Limits


VALUES = Controls(20.0, 1.0, False, 7, 0.5, 250, [1.0, 2.0, 3.0], Limits(-1, 1))
SIGNATURE = Signature(Format.of(Sample), context=Format.of(Controls).on(NATIVE))


class Ran:
    """A program that was run over samples, and what it has left of the context."""

    def __init__(self, back_end: str, source: str, *samples: float, spelling: str = "ecode") -> None:
        self.program = check(source, SIGNATURE, spelling=spelling)
        self.use = self.program.context
        self.block = block_of(self.program)
        records = struct.pack(f"={len(samples)}d", *samples)
        self.outcome = compiled(back_end, self.program).run(records, None, len(samples), b"", self.block)
        self.selected = self.outcome.selected.tolist()
        self.faults = [fault.kind.name for fault in self.outcome.faults]

    @property
    def calls(self) -> list[tuple[str, tuple[float, ...]]]:
        return self.use.calls(self.block)

    def __getattr__(self, name: str) -> object:
        return getattr(value_of(self.use.offset, self.block), name)


def block_of(program: Program) -> bytearray:
    block = program.initial_statics()
    if program.context is not None:
        record = bytes(Batch.of([VALUES], SIGNATURE.context).records)
        block[program.context.offset : program.context.offset + program.context.size] = record
    return block


def value_of(offset: int, block: bytearray) -> object:
    record = bytes(block[offset : offset + SIGNATURE.context.size])
    return Batch.of_record(record, SIGNATURE.context).events()[0]


def test_values_are_read_beside_the_input(back_end: str) -> None:
    ran = Ran(back_end, "input.t > context.temperature && context.limits.low < 0", 19.0, 21.0)
    assert ran.selected == [1]
    assert not ran.use.acts


def test_values_are_assigned_to_and_seen_by_following_events(back_end: str) -> None:
    ran = Ran(back_end, "{ context.step = context.step / 2; return context.step < 0.2; }", 1.0, 2.0, 3.0)
    assert ran.selected == [2]
    assert ran.step == 0.125
    assert ran.use.written == {"step"}


def test_every_type_of_value_is_converted_as_a_field_of_output_is(back_end: str) -> None:
    ran = Ran(
        back_end,
        """{
            context.open = 7;
            context.count += 2;
            context.gain = 0.1;
            context.small += 10;
            context.valves[1] = context.valves[2]++;
            context.limits.high = -context.limits.low * 40;
            return 1;
        }""",
        1.0,
    )
    assert (ran.open, ran.count, ran.small) == (True, 9, 4)
    assert struct.pack("f", ran.gain) == struct.pack("f", 0.1)
    assert list(ran.valves) == [1.0, 3.0, 4.0]
    assert (ran.limits.low, ran.limits.high) == (-1, 40)
    assert ran.use.written == {"open", "count", "gain", "small", "valves", "limits"}


def test_a_computed_index_of_the_context_is_checked(back_end: str) -> None:
    code = "{ int i = input.t; context.valves[i] = 9; return 1; }"
    ran = Ran(back_end, code, 0.0, 3.0, -1.0, 2.0)
    assert ran.selected == [0, 3]
    assert ran.faults == ["INDEX", "INDEX"]
    assert list(ran.valves) == [9.0, 2.0, 9.0]


def test_calls_are_written_down_in_order_with_numbers_as_doubles(back_end: str) -> None:
    code = "{ context.vent(input.t, 2); if (input.t > 1) context.stop(); context.vent(1 / 2); return 1; }"
    assert Ran(back_end, code, 1.5).calls == [("vent", (1.5, 2.0)), ("stop", ()), ("vent", (0.0,))]
    assert Ran(back_end, code, 1.5).use.functions == (("vent", 2), ("stop", 0), ("vent", 1))


def test_the_log_of_calls_is_that_of_the_last_event(back_end: str) -> None:
    ran = Ran(back_end, "{ context.vent(input.t); return 1; }", *map(float, range(2 * CALLS_MAX)))
    assert ran.calls == [("vent", (2.0 * CALLS_MAX - 1,))]
    assert not ran.faults


def test_an_event_may_make_so_many_calls_and_no_more(back_end: str) -> None:
    code = "{ int i; for (i = 0; i < input.t; i++) context.vent(i); return 1; }"
    ran = Ran(back_end, code, float(CALLS_MAX), float(CALLS_MAX + 1))
    assert (ran.selected, ran.faults) == ([0], ["CALLS"])
    assert f"more than {CALLS_MAX} functions" in ran.outcome.faults[0].kind.text


def test_arguments_are_evaluated_before_the_call_is_refused(back_end: str) -> None:
    code = "{ static int k; while (1) context.vent(++k); return 1; }"
    ran = Ran(back_end, code, 1.0)
    assert ran.faults == ["CALLS"]
    assert struct.unpack_from("=i", ran.block)[0] == CALLS_MAX + 1


def test_statics_keep_their_place_before_the_context(back_end: str) -> None:
    ran = Ran(back_end, "{ static short k = 5; k++; context.count = k; return 1; }", 1.0, 2.0)
    assert (ran.use.offset, ran.count) == (8, 7)
    assert struct.unpack_from("=h", ran.block)[0] == 7
    assert ran.program.static_format().size == ran.program.static_bytes == 8


def test_a_python_function_has_the_context_as_its_last_parameter(back_end: str) -> None:
    code = """
def steer(input, context):
    if input.t > 90:
        context.step /= 2
        context.vent(input.t, 1)
        context.valves[0] = context.count // 2
    return input.t > context.temperature
"""
    ran = Ran(back_end, code, 50.0, 95.0, spelling="python")
    assert (ran.step, list(ran.valves)) == (0.5, [3.0, 2.0, 3.0])
    assert ran.calls == [("vent", (95.0, 1.0))]


def test_a_transform_and_a_router_have_a_context_too(back_end: str) -> None:
    format = Format.of(Sample)
    program = check(
        "{ output.t = context.temperature; context.step = 3; context.vent(1); return input.t > 1; }",
        Signature(format, format.on(NATIVE), context=SIGNATURE.context, ports=2),
    )
    block = block_of(program)
    outcome = compiled(back_end, program).run(struct.pack("=2d", 1.0, 2.0), None, 2, b"", block)
    assert outcome.ports.tolist() == [0, 1]
    assert bytes(outcome.records) == struct.pack("=2d", 20.0, 20.0)
    assert program.context.calls(block) == [("vent", (1.0,))]


def test_a_bound_kernel_works_on_the_context_in_its_block(back_end: str) -> None:
    program = check("{ context.count++; return context.count > 8; }", SIGNATURE)
    block = block_of(program)
    look = compiled(back_end, program).bind(b"", block)
    assert [look(struct.pack("=d", 1.0)) for _ in range(3)] == [0, 1, 1]
    assert value_of(program.context.offset, block).count == 10


def test_a_block_without_room_for_the_context_is_refused(back_end: str) -> None:
    program = check("context.step > 1", SIGNATURE)
    with pytest.raises(CodegenError):
        compiled(back_end, program).run(bytes(8), None, 1, b"", bytearray(8))


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("context.tempratur > 1", "record `Controls` has no field `tempratur` (did you mean `temperature`?)"),
        ("{ return context.vent(1); }", "`context.vent` gives no value: it is called when the event is done"),
        ("{ context.step(1); return 1; }", "`context.step` is a value of the context, not a function"),
        ("{ context = 1; return 1; }", "`context` is a record, name one of its fields"),
        ("{ int context = 1; return 1; }", "`context` is the name of a record"),
        ("{ context.limits.vent(1); return 1; }", "only a function can be called"),
        ("{ input.vent(1); return 1; }", "only a function can be called"),
        ("{ context.vent(1, 2, 3, 4, 5, 6, 7, 8, 9); return 1; }", "has 9 arguments, limit is 8"),
        ('{ context.vent("now"); return 1; }', "a text is not a number"),
        ("{ context.valves[3] = 1; return 1; }", "index 3 is outside of `context.valves`, length is 3"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(back_end: str, code: str, problem: str) -> None:
    with pytest.raises(ECodeError, match="<ecode>:1:") as caught:
        check(code, SIGNATURE)
    assert problem in str(caught.value)


def test_a_channel_without_a_context_has_none(back_end: str) -> None:
    for code in ("context.step > 1", "{ context.vent(); return 1; }"):
        with pytest.raises(ECodeError, match="there is no `context`: the channel was created without one"):
            check(code, Signature(Format.of(Sample)))


def test_a_call_in_python_must_be_a_statement_of_its_own(back_end: str) -> None:
    with pytest.raises(ECodeError, match="has no value, it must be a statement of its own"):
        check("def f(input, context):\n    return context.vent(1)\n", SIGNATURE, spelling="python")
    with pytest.raises(ECodeError, match="not a parameter of the function"):
        check("def f(input):\n    context.vent(1)\n    return 1\n", SIGNATURE, spelling="python")


def test_a_context_has_numbers_only(back_end: str) -> None:
    @event
    class Named:
        name: str

    @event
    class Huge:
        values: Array[float, 513]

    with pytest.raises(FormatError, match="a context has numbers, and fixed arrays and records of them"):
        check("1", Signature(Format.of(Sample), context=Format.of(Named).on(NATIVE)))
    with pytest.raises(FormatError, match="a context has 4104 bytes, limit is 4096"):
        check("1", Signature(Format.of(Sample), context=Format.of(Huge).on(NATIVE)))
    with pytest.raises(FormatError, match="big-endian"):
        check("1", Signature(Format.of(Sample), context=Format.of(Controls).on(ARCHITECTURES["sparc64"])))


def test_a_program_that_does_not_name_the_context_is_the_same_as_without_one(back_end: str) -> None:
    code = "{ static int k; k++; return input.t > 1 && k > 2; }"
    make = {"native": compile_native, "python": compile_python}[back_end]
    kernels: list[Kernel] = []
    for signature in (SIGNATURE, Signature(Format.of(Sample))):
        program = check(code, signature)
        assert (program.context, program.block_bytes) == (None, 8)
        kernels.append(make(program, analyse(program)))
    if back_end == "python":
        assert kernels[0].text == kernels[1].text
