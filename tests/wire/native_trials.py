"""Trials of native code that could end the process, and are therefore run in one of their own.

    python -m tests.wire.native_trials guard SEED     mutated records between pages that must not be touched
    python -m tests.wire.native_trials overrun end    the same pages, touched on purpose: the trial can fail
    python -m tests.wire.native_trials compile COUNT  that many routines made and dropped

Every buffer lies flush against a page without permissions, at its end or at its beginning:

    | no access | ... source | no access |        | no access | source ... | no access |

so a routine that reads or writes one byte too many ends the process with SIGSEGV. The last line printed is JSON.
"""

import ctypes
import gc
import json
import mmap
import random
import resource
import struct
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from echoic.codegen import NativeCode, compile_library
from echoic.formats import ARCHITECTURES, Format, bind, match
from echoic.wire import Batch, Conversion, Decoder
from echoic.wire.conversion_code import fixed_routine, locate_routine, variable_routine
from echoic.wire.convert import CONVERTED_BYTES_MAX
from tests.wire.samples import Color, Grid, Mesh, Point, Report, cells_of, reports

PAGE = mmap.PAGESIZE
ROOM = 4 * PAGE
CANARY = 0xA5
ROUNDS = 1500

Fixed = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
Variable = ctypes.CFUNCTYPE(
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int64,
)

OVERRUN = """
define i64 @convert(ptr %source, i64 %source_bytes, ptr %target, i64 %count) {
  %at = getelementptr i8, ptr %source, i64 %count
  %value = load volatile i8, ptr %at
  %wide = zext i8 %value to i64
  ret i64 %wide
}
"""


class Arena:
    """Memory between two pages without permissions."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, ROOM + 2 * PAGE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self.start, self.end = base + PAGE, base + PAGE + ROOM
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        for page in (base, self.end):
            if protect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), 0):
                raise OSError(ctypes.get_errno(), "mprotect")

    def place(self, data: bytes, *, at_end: bool) -> int:
        """Put data at one of the ends and return its address."""
        address = self.end - len(data) if at_end else self.start
        ctypes.memmove(address, data, len(data))
        return address

    def clear(self) -> None:
        ctypes.memset(self.start, CANARY, ROOM)

    def untouched(self, address: int, size: int) -> bool:
        """Tell whether nothing around the given bytes was written."""
        before = ctypes.string_at(self.start, address - self.start)
        behind = ctypes.string_at(address + size, self.end - address - size)
        return before.count(CANARY) + behind.count(CANARY) == ROOM - size


def routine(text: str, signature: Any) -> tuple[Any, NativeCode]:
    code = NativeCode.of(compile_library(text, ("convert",)), "convert")
    return signature(int(code)), code


def mutated(records: bytes, bounds: list[int], chance: random.Random) -> tuple[bytes, list[int]]:
    """Return records with some bytes changed, sometimes cut short, sometimes with other bounds."""
    data = bytearray(records)
    for _ in range(chance.choice([0, 1, 1, 2, 8])):
        at = chance.randrange(len(data))
        if chance.random() < 0.5:
            data[at] = chance.choice([0, 1, 8, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        else:
            number = chance.choice([0, 8, len(data), len(data) - 8, 0x7FFF_FFFF, 0xFFFF_FFF8, 0xFFFF_FFFF])
            struct.pack_into(chance.choice("<>") + "I", data, min(at & ~3, len(data) - 4), number)
    places = list(bounds)
    if chance.random() < 0.2:
        places[chance.randrange(len(places))] = chance.choice([0, 4, 8, len(data), len(data) + 8, 0xFFFF_FFF8])
    if chance.random() < 0.1:
        del data[chance.randrange(len(data)) :]
        places[-1] = len(data)
    return bytes(data), places


def subjects() -> Iterator[tuple[str, Batch]]:
    """Yield the text of a routine for variable records, and records for it."""
    for events, declared in ((reports(4), Report), (cells_of(3), Mesh)):
        for source, target in (("x86_64", "sparc32"), ("m68k", "x86_64"), ("packed", "packed")):
            batch = Batch.of(events, Format.of(declared).on(ARCHITECTURES[source]))
            yield variable_routine(match(batch.format, batch.format.on(ARCHITECTURES[target]))), batch
    for name in ("x86_64", "sparc64", "packed"):
        batch = Batch.of(reports(4), Format.of(Report).on(ARCHITECTURES[name]))
        yield locate_routine(batch.format), batch


def try_variable(chance: random.Random, seen: Counter[str]) -> None:
    source, places, target = Arena(), Arena(), Arena()
    for text, batch in subjects():
        call, _code = routine(text, Variable)
        records, bounds = bytes(batch.records), list(batch.bounds)
        for _ in range(ROUNDS):
            data, changed = mutated(records, bounds, chance)
            told = struct.pack(f"<{len(changed)}I", *changed)
            if chance.random() < 0.1:
                told = told[: chance.randrange(len(told))]
            count = chance.choice([batch.count] * 8 + [0, 1, batch.count + 1, -1, 1 << 40])
            capacity = chance.choice([2 * PAGE, 2 * PAGE, chance.randrange(2 * len(records))])
            target.clear()
            made = target.place(b"\0" * capacity, at_end=chance.random() < 0.5)
            result = call(
                source.place(data, at_end=chance.random() < 0.5),
                len(data),
                places.place(told, at_end=True),
                len(told),
                made,
                capacity,
                count,
            )
            note(result, capacity, seen)
            if not target.untouched(made, capacity):
                raise SystemExit(f"bytes around the target were written: {data!r} {changed} {count} {capacity}")


def try_fixed(chance: random.Random, seen: Counter[str]) -> None:
    source, target = Arena(), Arena()
    grid = Grid(0.5, [], [1, 2, 3], b"name", b"x", Color.RED, Point(1.0, 2.0, 3))
    for events, name in (([Point(1.0, 2.0, 3)] * 20, "sparc64"), ([grid] * 3, "m68k"), ([grid] * 3, "i386")):
        batch = Batch.of(events)
        matching = match(batch.format, batch.format.on(ARCHITECTURES[name]))
        call, _code = routine(fixed_routine(matching, CONVERTED_BYTES_MAX), Fixed)
        for _ in range(100):
            data = bytes(batch.records)[: chance.choice([len(batch.records), chance.randrange(len(batch.records))])]
            count = chance.choice([batch.count] * 4 + [0, 1, -1, 1 << 62, batch.count + 1])
            at_end = chance.random() < 0.5
            here = source.place(data, at_end=at_end)
            needed = call(here, len(data), None, count)
            note(needed, ROOM, seen)
            if needed < 0:
                continue
            target.clear()
            made = target.place(b"\0" * needed, at_end=at_end)
            if call(here, len(data), made, count) != needed or not target.untouched(made, needed):
                raise SystemExit(f"bytes around the target were written: {count} records of {matching.target}")


def note(result: int, capacity: int, seen: Counter[str]) -> None:
    if result > capacity:
        raise SystemExit(f"a routine says that it wrote {result} bytes, capacity is {capacity}")
    seen["made" if result >= 0 else {-1: "malformed", -2: "full"}[result]] += 1


def guard(seed: int) -> dict[str, int]:
    seen: Counter[str] = Counter()
    chance = random.Random(seed)
    try_variable(chance, seen)
    try_fixed(chance, seen)
    return dict(seen)


def overrun(where: str) -> dict[str, int]:
    """Read one byte more than there is."""
    call, _code = routine(OVERRUN, Fixed)
    arena = Arena()
    data = bytes(100)
    print(call(arena.place(data, at_end=where == "end"), 100, None, 99 if where == "end" else 0), flush=True)
    return {"read": call(arena.place(data, at_end=where == "end"), 100, None, 100 if where == "end" else -1)}


def peak_kibibytes() -> int:
    scale = 1024 if sys.platform == "darwin" else 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // scale


def compile_many(count: int) -> dict[str, int]:
    """Make routines and drop them; return how the memory grew between the first fifth and the end."""
    source = Format.of(Point)
    targets = [source.on(ARCHITECTURES[name]) for name in ("sparc64", "m68k", "i386")]
    batch, kept = Batch.of([Point(1.0, 2.0, 3)] * 10), None
    early = 0
    for index in range(count):
        conversion = Conversion(source, targets[index % 3])
        conversion.compile()
        kept = conversion.convert_fixed
        kept(batch.records, 10)
        if index % 10 == 0:
            decoder = Decoder(bind(Report))
            decoder.compile()
            reported = Batch.of(reports(2))
            decoder.decode(reported.records, reported.bounds)
        if index == count // 5:
            gc.collect()
            early = peak_kibibytes()
    gc.collect()
    return {"early": early, "late": peak_kibibytes()}


if __name__ == "__main__":
    trial, argument = sys.argv[1:]
    found = (
        guard(int(argument))
        if trial == "guard"
        else overrun(argument)
        if trial == "overrun"
        else compile_many(int(argument))
    )
    print(json.dumps(found))
