"""The machine code of a conversion, as LLVM text.

The moves of a matching become straight-line code around one loop over the records: copies of known length, byte swaps,
widenings; the optimiser makes vector instructions of neighbouring ones. Slots are followed only after the checks that
`slots` makes, so memory outside the buffers is never touched, whatever a record says.

    fixed      i64 convert(source, source_bytes, target, count)
               the result is how many bytes the target needs; nothing else is done when target is null
    variable   i64 convert(source, source_bytes, bounds, bounds_bytes, target, capacity, count)
               the target gets u32 ends[count + 1], padding to 8, and the records; the result is its length
    locate     the same signature; the target gets the fixed parts, with slots resolved

Negative results: -1 a record is malformed, -2 the capacity does not suffice.
"""

from typing import Final, assert_never

from echoic.codegen import Emitter
from echoic.formats import (
    Cast,
    Copy,
    Each,
    Field,
    Fill,
    FillText,
    Format,
    Kind,
    Matching,
    Move,
    Number,
    Sizing,
    Text,
    Vector,
    block_alignment,
    match,
    round_up,
    sizing_of,
)

__all__ = ["fixed_routine", "locate_routine", "variable_routine"]

UNROLLED_MAX: Final = 4
COUNT_MAX: Final = 1 << 31
MALFORMED, FULL = "malformed", "full"  # the blocks that give up

# Vectors of 512 bits copy short records as overlapping stores, which wait for each other: 256 bits are faster.
ATTRIBUTES: Final = 'nounwind "prefer-vector-width"="256"'
FIXED_HEADER: Final = (
    "define i64 @convert(ptr noalias readonly %source, i64 %source_bytes, ptr noalias %target, i64 %count) "
    f"{ATTRIBUTES}"
)
VARIABLE_HEADER: Final = (
    "define i64 @convert(ptr noalias readonly %source, i64 %source_bytes, ptr noalias readonly %bounds, "
    f"i64 %bounds_bytes, ptr noalias %target, i64 %capacity, i64 %count) {ATTRIBUTES}"
)


def fixed_routine(matching: Matching, target_bytes_max: int) -> str:
    """Return the module that converts fixed records, to at most `target_bytes_max` bytes."""
    emit = Emitter()
    source, target = matching.source.size, matching.target.size
    emit.require(emit.value(f"icmp ult i64 %count, {target_bytes_max // target + 1}"), FULL)
    given = emit.value(f"mul nuw nsw i64 %count, {source}")
    emit.require(emit.value(f"icmp sge i64 %source_bytes, {given}"), MALFORMED)
    needed = emit.value(f"mul nuw nsw i64 %count, {target}")
    asked, run = emit.new_label("asked"), emit.new_label("run")
    emit.branch(emit.value("icmp eq ptr %target, null"), asked, run)
    emit.block(asked)
    emit.line(f"ret i64 {needed}")
    emit.block(run)
    index, loop = emit.begin_loop("%count")
    left = emit.at("%source", emit.value(f"mul nuw nsw i64 {index}, {source}"))
    right = emit.at("%target", emit.value(f"mul nuw nsw i64 {index}, {target}"))
    _Moves(emit, matching).apply(matching.moves, left, right)
    emit.end_loop(loop)
    emit.line(f"ret i64 {needed}")
    _give_up(emit)
    return emit.module(FIXED_HEADER)


def variable_routine(matching: Matching) -> str:
    """Return the module that converts records of which at least one side has a variable part."""
    emit = Emitter()
    bounds_bytes = _check_bounds(emit)
    head = emit.value(f"and i64 {emit.value(f'add nuw nsw i64 {bounds_bytes}, 7')}, -8")
    emit.require(emit.value(f"icmp sge i64 %capacity, {head}"), FULL)
    emit.clear("%target", head)
    written = emit.stack("i64")
    emit.line(f"store i64 {head}, ptr {written}")
    index, loop = emit.begin_loop("%count")
    _one_record(emit, matching, index, head, written)
    emit.end_loop(loop)
    emit.line(f"ret i64 {emit.value(f'load i64, ptr {written}')}")
    _give_up(emit)
    return emit.module(VARIABLE_HEADER)


def _one_record(emit: Emitter, matching: Matching, index: str, head: str, written: str) -> None:
    """Convert the record `index`: check its bounds, apply the moves, note where the made record ends."""
    start, record_bytes = _record_bounds(emit, index, matching.source)
    done = emit.value(f"load i64, ptr {written}")
    room = emit.value(f"sub nsw i64 %capacity, {done}")
    fixed = round_up(matching.target.size) if matching.target.variable else matching.target.size
    emit.require(emit.value(f"icmp sge i64 {room}, {fixed}"), FULL)
    record, made = emit.at("%source", start), emit.at("%target", done)
    if fixed > matching.target.size:
        emit.clear(emit.at(made, matching.target.size), fixed - matching.target.size)
    moves = _Moves(emit, matching, record=record, record_bytes=record_bytes, made=made, room=room)
    moves.start(fixed)
    moves.apply(matching.moves, record, made)
    end = moves.padded_end() if matching.target.variable else str(fixed)
    total = emit.value(f"add nsw i64 {done}, {end}")
    emit.line(f"store i64 {total}, ptr {written}")
    if matching.target.variable:
        place = emit.at("%target", emit.value(f"mul nuw nsw i64 {emit.value(f'add nuw nsw i64 {index}, 1')}, 4"))
        emit.store("i32", emit.value(f"trunc i64 {emit.value(f'sub nsw i64 {total}, {head}')} to i32"), place)


def locate_routine(format: Format) -> str:
    """Return the module that copies the fixed parts of variable records next to each other, with slots resolved.

    A text slot becomes {where it begins, where it ends} in the buffer, with 1, 0 for null; the slot of a dynamic array
    becomes {where it begins, its length}. What was checked once need not be checked again by whoever slices the buffer.
    The target needs room for `count` fixed parts.
    """
    emit = Emitter()
    _check_bounds(emit)
    needed = emit.value(f"mul nuw nsw i64 %count, {format.size}")
    emit.require(emit.value(f"icmp sge i64 %capacity, {needed}"), FULL)
    index, loop = emit.begin_loop("%count")
    start, record_bytes = _record_bounds(emit, index, format)
    record = emit.at("%source", start)
    made = emit.at("%target", emit.value(f"mul nuw nsw i64 {index}, {format.size}"))
    emit.copy(made, record, format.size)
    moves = _Moves(emit, match(format, format), record=record, record_bytes=record_bytes)
    moves.start(0)
    moves.locate(format, record, made, start)
    emit.end_loop(loop)
    emit.line(f"ret i64 {needed}")
    _give_up(emit)
    return emit.module(VARIABLE_HEADER)


def _check_bounds(emit: Emitter) -> str:
    """Check that there is a bound for every record, and return how many bytes the bounds have."""
    emit.require(emit.value(f"icmp ult i64 %count, {COUNT_MAX}"), MALFORMED)
    numbers = emit.value("add nuw nsw i64 %count, 1")
    bounds_bytes = emit.value(f"mul nuw nsw i64 {numbers}, 4")
    emit.require(emit.value(f"icmp sge i64 %bounds_bytes, {bounds_bytes}"), MALFORMED)
    first = emit.load("i32", "%bounds")
    emit.require(emit.value(f"icmp eq i32 {first}, 0"), MALFORMED)
    last = emit.load("i32", emit.at("%bounds", emit.value("mul nuw nsw i64 %count, 4")))
    whole = emit.value(f"zext i32 {last} to i64")
    emit.require(emit.value(f"icmp eq i64 {whole}, %source_bytes"), MALFORMED)
    return bounds_bytes


def _record_bounds(emit: Emitter, index: str, format: Format) -> tuple[str, str]:
    """Return where a record starts and how long it is, having checked that its fixed part is there."""
    bound = emit.at("%bounds", emit.value(f"mul nuw nsw i64 {index}, 4"))
    start = emit.value(f"zext i32 {emit.load('i32', bound)} to i64")
    stop = emit.value(f"zext i32 {emit.load('i32', emit.at(bound, 4))} to i64")
    emit.require(emit.value(f"icmp sle i64 {stop}, %source_bytes"), MALFORMED)
    record_bytes = emit.value(f"sub i64 {stop}, {start}")
    emit.require(emit.value(f"icmp sge i64 {record_bytes}, {format.size}"), MALFORMED)
    if not format.variable:
        return start, record_bytes
    odd = emit.value(f"and i64 {emit.value(f'or i64 {start}, {record_bytes}')}, 7")
    emit.require(emit.value(f"icmp eq i64 {odd}, 0"), MALFORMED)
    return start, record_bytes


def _give_up(emit: Emitter) -> None:
    for label, code in ((MALFORMED, -1), (FULL, -2)):
        emit.block(label)
        emit.line(f"ret i64 {code}")


class _Moves:
    """Writes moves.

    For records with a variable part: `record` is where the source record starts, `record_bytes` its length; `made` is
    where the target record starts, `room` how many bytes may follow there. Two stack variables go along: `end`, how
    long the target record has become, and `remaining`, how many bytes the blocks of the source record may still claim.
    """

    def __init__(
        self,
        emit: Emitter,
        matching: Matching,
        *,
        record: str = "",
        record_bytes: str = "",
        made: str = "",
        room: str = "",
    ) -> None:
        self._emit = emit
        self._source, self._target = matching.source, matching.target
        self._record, self._record_bytes = record, record_bytes
        self._made, self._room = made, room
        self._end = self._remaining = ""

    def start(self, fixed: int) -> None:
        """Begin a record with a variable part."""
        emit = self._emit
        self._end, self._remaining = emit.stack("i64"), emit.stack("i64")
        emit.line(f"store i64 {fixed}, ptr {self._end}")
        left = emit.value(f"sub nsw i64 {self._record_bytes}, {self._source.size}")
        emit.line(f"store i64 {left}, ptr {self._remaining}")

    def padded_end(self) -> str:
        """Pad the record to a multiple of 8 and return its length."""
        self._align(8)
        return self._emit.value(f"load i64, ptr {self._end}")

    def apply(self, moves: tuple[Move, ...], left: str, right: str) -> None:
        """Write moves between the element at `left` and the element at `right`."""
        emit = self._emit
        for move in moves:
            match move:
                case Copy(s, t, size):
                    emit.copy(emit.at(right, t), emit.at(left, s), size)
                case Cast(s, t, count, read, write):
                    self._casts(emit.at(left, s), emit.at(right, t), count, read, write)
                case Fill(t, data):
                    self._fill(emit.at(right, t), data)
                case Each(s, t, count, source_stride, target_stride, inner):
                    self._each(inner, emit.at(left, s), emit.at(right, t), str(count), source_stride, target_stride)
                case Text():
                    for index in range(move.count) if move.count <= UNROLLED_MAX else ():
                        self._text(
                            move, emit.at(left, move.source + 8 * index), emit.at(right, move.target + 8 * index)
                        )
                    if move.count > UNROLLED_MAX:
                        self._texts(move, left, right)
                case FillText():
                    self._fill_text(move, emit.at(right, move.target))
                case Vector():
                    self._vector(move, left, right)
                case _:
                    assert_never(move)

    def locate(self, format: Format, left: str, right: str, start: str) -> None:
        """Resolve the slots of a fixed part that has been copied to `right`."""
        emit = self._emit
        for field in format.fields:
            here, there = emit.at(left, field.offset), emit.at(right, field.offset)
            if field.record is not None:
                self.locate(field.record, here, there, start)
            elif field.text or field.dynamic:
                sizing = sizing_of(field, format)
                told = None if sizing is None else self._told(left, sizing)
                self._locate_slot(field, here, there, start, told)

    def _locate_slot(self, field: Field, here: str, there: str, start: str, told: str | None) -> None:
        emit = self._emit
        offset, length = self._slot(here)
        if told is not None:
            emit.require(emit.value(f"icmp eq i64 {told}, {length}"), MALFORMED)
        done = self._if_present(offset, length, there, null=("1", "0") if field.text else ("0", "0"))
        step = 1 if field.text else field.size * field.count
        terminated = field.kind is Kind.STRING and not field.dynamic
        size = emit.value(f"mul nuw nsw i64 {length}, {step}")
        block = self._claim(offset, size, int(terminated), 1 if field.text else block_alignment(field, self._source))
        if terminated:
            last = emit.load("i8", emit.at(block, length))
            emit.require(emit.value(f"icmp eq i8 {last}, 0"), MALFORMED)
        begin = emit.value(f"add nsw i64 {start}, {offset}")
        self._write_slot(there, begin, emit.value(f"add nsw i64 {begin}, {length}") if field.text else length)
        emit.label(done)

    def _fill(self, target: str, data: bytes) -> None:
        if any(data):
            self._emit.copy(target, self._emit.constant(data), len(data))
        else:
            self._emit.clear(target, len(data))

    def _each(
        self, moves: tuple[Move, ...], left: str, right: str, count: str, source_stride: int, target_stride: int
    ) -> None:
        emit = self._emit
        index, loop = emit.begin_loop(count)
        here = emit.at(left, emit.value(f"mul nuw nsw i64 {index}, {source_stride}"))
        there = emit.at(right, emit.value(f"mul nuw nsw i64 {index}, {target_stride}"))
        self.apply(moves, here, there)
        emit.end_loop(loop)

    def _casts(self, left: str, right: str, count: int, read: Number, write: Number) -> None:
        emit = self._emit
        if count > UNROLLED_MAX:
            self._each((Cast(0, 0, 1, read, write),), left, right, str(count), read.size, write.size)
            return
        for index in range(count):
            value = _read(emit, emit.at(left, index * read.size), read)
            _write(emit, emit.at(right, index * write.size), convert_number(emit, value, read, write), write)

    def _texts(self, move: Text, left: str, right: str) -> None:
        one = Text(0, 0, 1, move.source_terminated, move.target_terminated, move.path)
        emit = self._emit
        self._each((one,), emit.at(left, move.source), emit.at(right, move.target), str(move.count), 8, 8)

    def _slot(self, pointer: str) -> tuple[str, str]:
        """Return offset and length of a source slot as 64-bit numbers."""
        number = Number(Kind.UINT, 4, self._source.byte_order)
        emit = self._emit
        offset, length = _read(emit, pointer, number), _read(emit, emit.at(pointer, 4), number)
        return emit.value(f"zext i32 {offset} to i64"), emit.value(f"zext i32 {length} to i64")

    def _write_slot(self, pointer: str, offset: str, length: str) -> None:
        number = Number(Kind.UINT, 4, self._target.byte_order)
        emit = self._emit
        _write(emit, pointer, emit.value(f"trunc i64 {offset} to i32"), number)
        _write(emit, emit.at(pointer, 4), emit.value(f"trunc i64 {length} to i32"), number)

    def _claim(self, offset: str, size: str, tail: int, alignment: int) -> str:
        """Check that a block lies in the variable part of the source record, and return a pointer to it."""
        emit = self._emit
        emit.require(emit.value(f"icmp sge i64 {offset}, {self._source.size}"), MALFORMED)
        stop = emit.value(f"add nsw i64 {emit.value(f'add nsw i64 {offset}, {size}')}, {tail}")
        emit.require(emit.value(f"icmp sle i64 {stop}, {self._record_bytes}"), MALFORMED)
        if alignment > 1:
            odd = emit.value(f"and i64 {offset}, {alignment - 1}")
            emit.require(emit.value(f"icmp eq i64 {odd}, 0"), MALFORMED)
        left = emit.value(f"sub nsw i64 {emit.value(f'load i64, ptr {self._remaining}')}, {size}")
        emit.require(emit.value(f"icmp sge i64 {left}, 0"), MALFORMED)
        emit.line(f"store i64 {left}, ptr {self._remaining}")
        return emit.at(self._record, offset)

    def _align(self, alignment: int) -> None:
        """Pad the target record with zeros to a multiple of `alignment`."""
        emit = self._emit
        end = emit.value(f"load i64, ptr {self._end}")
        padding = emit.value(f"and i64 {emit.value(f'sub i64 0, {end}')}, {alignment - 1}")
        aligned = emit.value(f"add nsw i64 {end}, {padding}")
        emit.require(emit.value(f"icmp sle i64 {aligned}, {self._room}"), FULL)
        emit.clear(emit.at(self._made, end), padding)
        emit.line(f"store i64 {aligned}, ptr {self._end}")

    def _allocate(self, size: str, alignment: int) -> tuple[str, str]:
        """Return offset and pointer of a further block of the target record."""
        emit = self._emit
        if alignment > 1:
            self._align(alignment)
        end = emit.value(f"load i64, ptr {self._end}")
        stop = emit.value(f"add nsw i64 {end}, {size}")
        emit.require(emit.value(f"icmp sle i64 {stop}, {self._room}"), FULL)
        emit.line(f"store i64 {stop}, ptr {self._end}")
        return end, emit.at(self._made, end)

    def _if_present(self, offset: str, length: str, target: str, *, null: tuple[str, str] = ("0", "0")) -> str:
        """Write an empty slot for a null one; go on in the block for a slot that points somewhere."""
        emit = self._emit
        absent, present, done = (emit.new_label(word) for word in ("absent", "present", "done"))
        emit.branch(emit.value(f"icmp eq i64 {offset}, 0"), absent, present)
        emit.block(absent)
        emit.require(emit.value(f"icmp eq i64 {length}, 0"), MALFORMED)
        self._write_slot(target, *null)
        emit.jump(done)
        emit.block(present)
        return done

    def _text(self, move: Text, slot: str, target: str) -> None:
        emit = self._emit
        offset, length = self._slot(slot)
        done = self._if_present(offset, length, target)
        block = self._claim(offset, length, int(move.source_terminated), 1)
        if move.source_terminated:
            last = emit.load("i8", emit.at(block, length))
            emit.require(emit.value(f"icmp eq i8 {last}, 0"), MALFORMED)
        size = emit.value(f"add nsw i64 {length}, {int(move.target_terminated)}")
        made_offset, made = self._allocate(size, 1)
        emit.copy(made, block, length)
        if move.target_terminated:
            emit.store("i8", "0", emit.at(made, length))
        self._write_slot(target, made_offset, length)
        emit.label(done)

    def _fill_text(self, move: FillText, target: str) -> None:
        if move.data is None:
            self._write_slot(target, "0", "0")
            return
        data = move.data + (b"\0" if move.terminated else b"")
        offset, made = self._allocate(str(len(data)), 1)
        if data:
            self._emit.copy(made, self._emit.constant(data), len(data))
        self._write_slot(target, offset, str(len(move.data)))

    def _vector(self, move: Vector, left: str, right: str) -> None:
        emit = self._emit
        target = emit.at(right, move.target)
        offset, length = self._slot(emit.at(left, move.source))
        if move.source_sizing is not None:
            told = self._told(left, move.source_sizing)
            emit.require(emit.value(f"icmp eq i64 {told}, {length}"), MALFORMED)
        if move.target_sizing is not None:
            self._tell(right, move.target_sizing, length)
        done = self._if_present(offset, length, target)
        count = emit.value(f"mul nuw nsw i64 {length}, {move.per}")
        block = self._claim(
            offset, emit.value(f"mul nuw nsw i64 {count}, {move.source_stride}"), 0, move.source_alignment
        )
        full, empty = emit.new_label("full"), emit.new_label("empty")
        emit.branch(emit.value(f"icmp eq i64 {length}, 0"), empty, full)
        emit.block(empty)
        self._write_slot(target, "0", "0")
        emit.jump(done)
        emit.block(full)
        size = emit.value(f"mul nuw nsw i64 {count}, {move.target_stride}")
        made_offset, made = self._allocate(size, move.target_alignment)
        self._write_slot(target, made_offset, length)
        if move.moves == (Copy(0, 0, move.source_stride),) and move.source_stride == move.target_stride:
            emit.copy(made, block, size)
        else:
            self._each(move.moves, block, made, count, move.source_stride, move.target_stride)
        emit.label(done)

    def _told(self, left: str, sizing: Sizing) -> str:
        """Return the value of a source sizing field as a 64-bit number."""
        emit, number = self._emit, sizing.number
        value = _read(emit, emit.at(left, sizing.offset), number)
        if number.size == 8:
            return value
        return emit.value(f"{'sext' if number.kind is Kind.INT else 'zext'} i{8 * number.size} {value} to i64")

    def _tell(self, right: str, sizing: Sizing, length: str) -> None:
        """Write a target sizing field."""
        emit, number = self._emit, sizing.number
        if number.limits[1] < 1 << 32:
            emit.require(emit.value(f"icmp sle i64 {length}, {number.limits[1]}"), MALFORMED)
        value = length if number.size == 8 else emit.value(f"trunc i64 {length} to i{8 * number.size}")
        _write(emit, emit.at(right, sizing.offset), value, number)


def _type(number: Number) -> str:
    """Return the LLVM type in which a number is computed with."""
    if number.kind is Kind.FLOAT:
        return "float" if number.size == 4 else "double"
    return f"i{8 * number.size}"


def _swapped(emit: Emitter, value: str, number: Number) -> str:
    if number.size == 1 or number.byte_order == "little":
        return value
    bits = f"i{8 * number.size}"
    return emit.call(bits, f"llvm.bswap.{bits}", [(bits, value)])


def _read(emit: Emitter, pointer: str, number: Number) -> str:
    bits = f"i{8 * number.size}"
    value = _swapped(emit, emit.load(bits, pointer), number)
    return emit.value(f"bitcast {bits} {value} to {_type(number)}") if number.kind is Kind.FLOAT else value


def _write(emit: Emitter, pointer: str, value: str, number: Number) -> None:
    bits = f"i{8 * number.size}"
    if number.kind is Kind.FLOAT:
        value = emit.value(f"bitcast {_type(number)} {value} to {bits}")
    emit.store(bits, _swapped(emit, value, number), pointer)


def convert_number(emit: Emitter, value: str, read: Number, write: Number) -> str:
    """Write the conversion of a number, as `convert_numpy.cast` does it."""
    source, target = _type(read), _type(write)
    if read.kind is Kind.BOOL:
        truth = emit.value(f"icmp ne i8 {value}, 0")
        return emit.value(f"{'uitofp' if write.kind is Kind.FLOAT else 'zext'} i1 {truth} to {target}")
    if write.kind is Kind.FLOAT:
        if read.kind is not Kind.FLOAT:
            return emit.value(f"{'sitofp' if read.kind is Kind.INT else 'uitofp'} {source} {value} to {target}")
        if read.size == write.size:
            return value
        return emit.value(f"{'fpext' if write.size > read.size else 'fptrunc'} {source} {value} to {target}")
    if read.kind is Kind.FLOAT:
        sign = "s" if write.kind is Kind.INT else "u"
        return emit.call(target, f"llvm.fpto{sign}i.sat.{target}.f{8 * read.size}", [(source, value)])
    return _convert_integer(emit, value, read, write)


def _convert_integer(emit: Emitter, value: str, read: Number, write: Number) -> str:
    source, target = _type(read), _type(write)
    (least, greatest), (low, high) = read.limits, write.limits
    sign = "s" if read.kind is Kind.INT else "u"
    if low > least:
        value = emit.call(source, f"llvm.smax.{source}", [(source, value), (source, str(low))])
    if high < greatest:
        value = emit.call(source, f"llvm.{sign}min.{source}", [(source, value), (source, str(high))])
    if read.size == write.size:
        return value
    if write.size < read.size:
        return emit.value(f"trunc {source} {value} to {target}")
    return emit.value(f"{'sext' if read.kind is Kind.INT else 'zext'} {source} {value} to {target}")
