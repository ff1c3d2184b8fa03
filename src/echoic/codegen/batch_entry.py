"""CPython functions around routines that look at records one after the other.

    run(records, bounds, params, statics, output, work, start, count, fuel, release) -> int
    look(records) -> int

Both are builtins generated once with LLVM, as in `entry`. `run` finds the memory of six buffers, any of which may be
None, checks that they are as large as the routine needs them (`Demands`), and returns how many events were selected, or
`-1 - event` if the routine did not get beyond some event; with `release` other threads of Python run meanwhile. `look`
is bound to parameters and statics and gives the routine one record: 30 ns for all of it. Of several records of fixed
size it tells how many are selected in the first block that has any, so 0 means that none is. What can be done here is
done here, because this code is compiled once and a routine for each program.

The work memory begins with what a routine tells, numbers of 64 bits, which the next call goes on with:

    0 selected | 8 fault | 16 end of output | 24 output bytes needed | 32 last returned value | 40 (unused)
    48 scratch of the routine | selected events u32[count] | ports i32[count] | bounds of output u32[count + 1]

Ports and bounds are there only if they are demanded. A run that starts at 0 clears the header; scratch memory must have
been cleared by whoever made it.

`fault` is 0, or one more than the number of the fault that the event had at which the routine came to an end. Number 0
is the fault of a record that is not there: `run` reports it for records of fixed size that `records` has no room for.
"""

import ctypes
import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from echoic.codegen.entry import METH_FASTCALL, PRELUDE, MethodDefinition, NativeCode, make_builtin
from echoic.codegen.library import Library, compile_library

__all__ = ["ROUTINE", "WORK_HEADER", "WORK_HEADER_BYTES", "Demands", "batch_entry", "event_entry", "work_bytes"]

METH_O: Final = 0x0008
WORK_HEADER: Final = struct.Struct("=6q")
WORK_HEADER_BYTES: Final = WORK_HEADER.size
COUNT_MAX: Final = 1 << 32
BLOCK_EVENTS: Final = 256
DEMANDS: Final = (
    "routine record_bytes bound_bytes records_min params_min statics_min scratch_bytes port_bytes output_bound_bytes"
)

ROUTINE: Final = (
    "ptr noalias %records, i64 %records_bytes, ptr noalias %bounds, ptr noalias %params, i64 %params_bytes, "
    "ptr noalias %statics, ptr noalias %output, i64 %output_bytes, ptr noalias %header, ptr noalias %scratch, "
    "ptr noalias %numbers, ptr noalias %ports, ptr noalias %output_bounds, i64 %start, i64 %count, i64 %fuel"
)
"""What a routine is called with. It returns the number of the first event that it has not looked at, or that faulted;
negative if it cannot work with these buffers."""


class Demands(NamedTuple):
    """How large the buffers of a routine must be; what it does not need is 0."""

    record_bytes: int = 0
    """The size of each record, if all are alike."""
    bound_bytes: int = 0
    """The size of one of the bounds, of which there is one more than records."""
    records_bytes_min: int = 0
    params_bytes: int = 0
    statics_bytes: int = 0
    scratch_bytes: int = 0
    port_bytes: int = 0
    """4 if the routine tells a port for each selected event."""
    output_bound_bytes: int = 0
    """4 if the routine tells where the records of its output begin and end."""


class _Bound(bytes):
    """Numbers for an entry point, and what must live as long as they are used."""

    kept: tuple[object, ...]


def work_bytes(demands: Demands, count: int) -> int:
    """Return how large the work memory must be."""
    each = 4 + demands.port_bytes + demands.output_bound_bytes
    return WORK_HEADER_BYTES + demands.scratch_bytes + each * count + demands.output_bound_bytes


_kept: Final[dict[str, tuple[MethodDefinition, MethodDefinition, Library]]] = {}


def batch_entry(code: NativeCode, demands: Demands) -> Callable[..., int]:
    """Return a builtin `run` around a routine.

    It raises ValueError if the routine cannot work with the buffers, TypeError or BufferError for what is no buffer.
    """
    bound = _Bound(struct.pack("=9q", code, *demands))
    bound.kept = (code,)
    builtin: Callable[..., int] = make_builtin(_definitions()[0], bound)
    return builtin


def event_entry(
    code: NativeCode, demands: Demands, params: bytes, statics: bytearray, fuel: int
) -> Callable[[object], int]:
    """Return a builtin `look` around a routine that needs neither output nor scratch, for parameters and statics.

    The block of statics cannot change its size while the builtin lives. An event that faults raises ValueError with the
    number of the fault.

    Raises:
        ValueError: Parameters or statics are too small.
    """
    if len(params) < demands.params_bytes or len(statics) < demands.statics_bytes or demands.scratch_bytes:
        raise ValueError(f"{len(params)} bytes of parameters and {len(statics)} of statics do not suffice")
    holder = (ctypes.c_char * len(statics)).from_buffer(statics)
    given = ctypes.create_string_buffer(params, len(params))
    addresses = ctypes.addressof(given), len(params), ctypes.addressof(holder), fuel
    bound = _Bound(struct.pack("=6q", code, demands.record_bytes, *addresses))
    bound.kept = (code, given, holder)
    builtin: Callable[[object], int] = make_builtin(_definitions()[1], bound)
    return builtin


def _definitions() -> tuple[MethodDefinition, MethodDefinition, Library]:
    """Compile the two entry points, and keep definitions and library for the life of the process.

    Two threads may get here at once. Both must then use the one pair that is kept: builtins point into it.
    """
    if _kept:
        return _kept["entries"]
    library = compile_library(PRELUDE + ENTRIES, ("batch_entry", "event_entry"), python=True, tier="light")
    batch = MethodDefinition(b"run", library.address("batch_entry"), METH_FASTCALL, None)
    event = MethodDefinition(b"look", library.address("event_entry"), METH_O, None)
    return _kept.setdefault("entries", (batch, event, library))


def _loads(base: str, names: str, kinds: str = "") -> str:
    """Return the lines that load neighbouring numbers; a `p` in `kinds` is a pointer, anything else an i64."""
    lines = []
    for position, name in enumerate(names.split()):
        kind = "ptr" if kinds[position : position + 1] == "p" else "i64"
        lines.append(f"  %{name}_at = getelementptr i8, ptr {base}, i64 {8 * position}")
        lines.append(f"  %{name} = load {kind}, ptr %{name}_at")
    return "\n".join(lines)


def _views(*names: str) -> str:
    """Return the lines that load address and size of each buffer."""
    lines = []
    for position, name in enumerate(names):
        lines.append(f"  %{name}_view = getelementptr i8, ptr %views, i64 {80 * position}")
        lines.append(f"  %{name} = load ptr, ptr %{name}_view")
        lines.append(f"  %{name}_size_at = getelementptr i8, ptr %views, i64 {80 * position + 16}")
        lines.append(f"  %{name}_bytes = load i64, ptr %{name}_size_at")
    return "\n".join(lines)


# A Py_buffer is 80 bytes on every 64-bit machine: buf at 0, obj at 8, len at 16. One without an object is not released.
ENTRIES: Final = f"""
declare void @PyErr_SetObject(ptr, ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
@_Py_NoneStruct = external global i8
@unusable = private constant [3 x i8] c"-1\\00"

define private void @release(ptr %views) {{
entry:
  br label %next
next:
  %index = phi i64 [ 0, %entry ], [ %following, %next ]
  %offset = mul i64 %index, 80
  %view = getelementptr i8, ptr %views, i64 %offset
  call void @PyBuffer_Release(ptr %view)
  %following = add i64 %index, 1
  %more = icmp ult i64 %following, 6
  br i1 %more, label %next, label %done
done:
  ret void
}}

define private i64 @number(ptr %args, i64 %index) {{
  %place = getelementptr ptr, ptr %args, i64 %index
  %object = load ptr, ptr %place
  %value = call i64 @PyLong_AsLongLong(ptr %object)
  ret i64 %value
}}

define private i64 @whole_records(i64 %bytes, i64 %record_bytes, i64 %count) {{
entry:
  %any = icmp eq i64 %record_bytes, 0
  br i1 %any, label %all, label %divide
divide:
  %whole = udiv i64 %bytes, %record_bytes
  %limit = call i64 @llvm.umin.i64(i64 %whole, i64 %count)
  ret i64 %limit
all:
  ret i64 %count
}}

define ptr @batch_entry(ptr %self, ptr %args, i64 %given) {{
entry:
  %views = alloca [480 x i8], align 8
  %enough = icmp eq i64 %given, 10
  br i1 %enough, label %begin, label %wrong
wrong:
  %null = call ptr @refuse(ptr @PyExc_TypeError, ptr @arguments)
  ret ptr null
begin:
  %start = call i64 @number(ptr %args, i64 6)
  %count = call i64 @number(ptr %args, i64 7)
  %fuel = call i64 @number(ptr %args, i64 8)
  %release = call i64 @number(ptr %args, i64 9)
  %raised = call ptr @PyErr_Occurred()
  %bad = icmp ne ptr %raised, null
  br i1 %bad, label %fail, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %views, i8 0, i64 480, i1 false)
  br label %next
next:
  %index = phi i64 [ 0, %clear ], [ %following, %taken ]
  %place = getelementptr ptr, ptr %args, i64 %index
  %object = load ptr, ptr %place
  %none = icmp eq ptr %object, @_Py_NoneStruct
  br i1 %none, label %taken, label %take
take:
  %offset = mul i64 %index, 80
  %view = getelementptr i8, ptr %views, i64 %offset
  %writable = icmp ugt i64 %index, 2
  %flags = zext i1 %writable to i32
  %code = call i32 @PyObject_GetBuffer(ptr %object, ptr %view, i32 %flags)
  %refused = icmp slt i32 %code, 0
  br i1 %refused, label %drop, label %taken
taken:
  %following = add i64 %index, 1
  %more = icmp ult i64 %following, 6
  br i1 %more, label %next, label %check
check:
{_views("records", "bounds", "params", "statics", "output", "work")}
  %block = call ptr @PyBytes_AsString(ptr %self)
{_loads("%block", DEMANDS, "p")}
  %few = icmp ule i64 %count, {COUNT_MAX}
  br i1 %few, label %measure, label %unable
measure:
  %numbers_at = add i64 %scratch_bytes, {WORK_HEADER_BYTES}
  %numbers_bytes = mul i64 %count, 4
  %ports_at = add i64 %numbers_at, %numbers_bytes
  %ports_bytes = mul i64 %count, %port_bytes
  %output_bounds_at = add i64 %ports_at, %ports_bytes
  %beyond = add i64 %count, 1
  %output_bounds_bytes = mul i64 %beyond, %output_bound_bytes
  %work_min = add i64 %output_bounds_at, %output_bounds_bytes
  %bounds_min = mul i64 %beyond, %bound_bytes
  %fine0 = icmp ule i64 %start, %count
  %fine1 = icmp uge i64 %work_bytes, %work_min
  %fine2 = icmp uge i64 %bounds_bytes, %bounds_min
  %fine3 = icmp uge i64 %records_bytes, %records_min
  %fine4 = icmp uge i64 %params_bytes, %params_min
  %fine5 = icmp uge i64 %statics_bytes, %statics_min
  %both01 = and i1 %fine0, %fine1
  %both23 = and i1 %fine2, %fine3
  %both45 = and i1 %fine4, %fine5
  %four = and i1 %both01, %both23
  %all = and i1 %four, %both45
  br i1 %all, label %ready, label %unable
ready:
  %limit = call i64 @whole_records(i64 %records_bytes, i64 %record_bytes, i64 %count)
  %scratch = getelementptr i8, ptr %work, i64 {WORK_HEADER_BYTES}
  %numbers = getelementptr i8, ptr %work, i64 %numbers_at
  %ports = getelementptr i8, ptr %work, i64 %ports_at
  %output_bounds = getelementptr i8, ptr %work, i64 %output_bounds_at
  %fault_at = getelementptr i8, ptr %work, i64 8
  store i64 0, ptr %fault_at
  %first = icmp eq i64 %start, 0
  br i1 %first, label %reset, label %prepared
reset:
  call void @llvm.memset.p0.i64(ptr %work, i8 0, i64 {WORK_HEADER_BYTES}, i1 false)
  call void @llvm.memset.p0.i64(ptr %output_bounds, i8 0, i64 %output_bound_bytes, i1 false)
  br label %prepared
prepared:
  %alone = icmp eq i64 %release, 0
  br i1 %alone, label %run, label %save
save:
  %state = call ptr @PyEval_SaveThread()
  br label %run
run:
  %saved = phi ptr [ null, %prepared ], [ %state, %save ]
  %came = call i64 %routine(
    ptr %records, i64 %records_bytes, ptr %bounds, ptr %params, i64 %params_bytes, ptr %statics, ptr %output,
    i64 %output_bytes, ptr %work, ptr %scratch, ptr %numbers, ptr %ports, ptr %output_bounds, i64 %start, i64 %limit,
    i64 %fuel
  )
  %still = icmp eq ptr %saved, null
  br i1 %still, label %look, label %restore
restore:
  call void @PyEval_RestoreThread(ptr %saved)
  br label %look
look:
  %at_limit = icmp sge i64 %came, %limit
  %too_few = icmp ult i64 %limit, %count
  %cut = and i1 %at_limit, %too_few
  br i1 %cut, label %missing, label %finish
missing:
  store i64 1, ptr %fault_at
  br label %finish
finish:
  %selected = load i64, ptr %work
  call void @release(ptr %views)
  %impossible = icmp slt i64 %came, 0
  br i1 %impossible, label %unusable, label %good
good:
  %whole = icmp eq i64 %came, %count
  %stopped = sub i64 -1, %came
  %told = select i1 %whole, i64 %selected, i64 %stopped
  %result = call ptr @PyLong_FromLongLong(i64 %told)
  ret ptr %result
unable:
  call void @release(ptr %views)
  br label %unusable
unusable:
  %nothing = call ptr @refuse(ptr @PyExc_ValueError, ptr @unusable)
  ret ptr null
drop:
  call void @release(ptr %views)
  br label %fail
fail:
  ret ptr null
}}

define ptr @event_entry(ptr %self, ptr %object) {{
entry:
  %views = alloca [80 x i8], align 8
  %header = alloca [{WORK_HEADER_BYTES} x i8], align 8
  %numbers = alloca [{BLOCK_EVENTS} x i32], align 8
  %ports = alloca [{BLOCK_EVENTS} x i32], align 8
  %bounds = alloca [2 x i32], align 8
  %code = call i32 @PyObject_GetBuffer(ptr %object, ptr %views, i32 0)
  %refused = icmp slt i32 %code, 0
  br i1 %refused, label %fail, label %run
run:
  %block = call ptr @PyBytes_AsString(ptr %self)
{_loads("%block", "routine record_bytes params params_bytes statics fuel", "p-p-p")}
{_views("given")}
  call void @llvm.memset.p0.i64(ptr %header, i8 0, i64 {WORK_HEADER_BYTES}, i1 false)
  %short = icmp ult i64 %given_bytes, %record_bytes
  br i1 %short, label %missing, label %call
missing:
  call void @PyBuffer_Release(ptr %views)
  br label %faulted
call:
  %limited = call i64 @llvm.umin.i64(i64 %given_bytes, i64 4294967295)
  %end = trunc i64 %limited to i32
  store i32 0, ptr %bounds
  %end_at = getelementptr i8, ptr %bounds, i64 4
  store i32 %end, ptr %end_at
  %several = icmp ne i64 %record_bytes, 0
  %bytes_each = select i1 %several, i64 %record_bytes, i64 %given_bytes
  %divisor = call i64 @llvm.umax.i64(i64 %bytes_each, i64 1)
  %whole = udiv i64 %given_bytes, %divisor
  %count = call i64 @llvm.umax.i64(i64 %whole, i64 1)
  br label %next_block
next_block:
  %start = phi i64 [ 0, %call ], [ %stop, %rejected ]
  %beyond = add i64 %start, {BLOCK_EVENTS}
  %stop = call i64 @llvm.umin.i64(i64 %beyond, i64 %count)
  %came = call i64 %routine(
    ptr %given, i64 %given_bytes, ptr %bounds, ptr %params, i64 %params_bytes, ptr %statics, ptr null, i64 0,
    ptr %header, ptr null, ptr %numbers, ptr %ports, ptr null, i64 %start, i64 %stop, i64 %fuel
  )
  %fault_at = getelementptr i8, ptr %header, i64 8
  %fault = load i64, ptr %fault_at
  %fine = icmp eq i64 %fault, 0
  br i1 %fine, label %judge, label %hurt
judge:
  %selected = load i64, ptr %header
  %any = icmp ne i64 %selected, 0
  %last = icmp uge i64 %stop, %count
  %over = or i1 %any, %last
  br i1 %over, label %good, label %rejected
rejected:
  br label %next_block
good:
  call void @PyBuffer_Release(ptr %views)
  %returned_at = getelementptr i8, ptr %header, i64 32
  %returned = load i64, ptr %returned_at
  %lone = icmp eq i64 %count, 1
  %told = select i1 %lone, i64 %returned, i64 %selected
  %result = call ptr @PyLong_FromLongLong(i64 %told)
  ret ptr %result
hurt:
  call void @PyBuffer_Release(ptr %views)
  br label %faulted
faulted:
  %which = phi i64 [ 1, %missing ], [ %fault, %hurt ]
  %number = sub i64 %which, 1
  %object_of_number = call ptr @PyLong_FromLongLong(i64 %number)
  %error = load ptr, ptr @PyExc_ValueError
  call void @PyErr_SetObject(ptr %error, ptr %object_of_number)
  call void @Py_DecRef(ptr %object_of_number)
  br label %fail
fail:
  ret ptr null
}}
"""
