"""LLVM assembly, written line by line.

A thin layer over text: it numbers the temporaries and labels, gathers declarations, and keeps every stack variable in
the entry block, where LLVM turns them into registers. Values are their names (`%t7`) or literals; types are the words
of LLVM (`i64`, `ptr`, `double`).

What comes early in a function is often known only when its end is written: which fields were used, how much room was
asked for. So a place can be marked, and filled later:

    checks = emit.mark()          # here the slots are checked
    emit.label("body")
    ...
    with emit.inside(checks):     # somebody in the body needs one
        emit.require(fine, "malformed")
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

__all__ = ["Emitter", "Lines"]

Lines: TypeAlias = "list[str | Lines]"

MEMORY_DECLARATIONS: Final = {
    "memcpy": "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    "memmove": "declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)",
    "memset": "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
}
LIKELY: Final = '!0 = !{!"branch_weights", i32 100000, i32 1}'


class Emitter:
    """Writes the body of one function."""

    def __init__(self) -> None:
        self._lines: Lines = []
        self._whole = self._lines
        self._stack: list[str] = []
        self._declarations: set[str] = set()
        self._constants: dict[bytes, str] = {}
        self._temporaries = 0
        self._weighted = False
        self.here = "entry"
        """The label of the block that is being written."""

    def line(self, text: str) -> None:
        """Write one instruction."""
        self._lines.append("  " + text)

    def value(self, text: str) -> str:
        """Write an instruction that gives a value, and return the name of the value."""
        self._temporaries += 1
        self.line(f"%t{self._temporaries} = {text}")
        return f"%t{self._temporaries}"

    def new_label(self, word: str) -> str:
        """Return a label that is not used yet."""
        self._temporaries += 1
        return f"{word}{self._temporaries}"

    def label(self, name: str) -> None:
        """Start the block `name`; the block before falls through to it."""
        self.line(f"br label %{name}")
        self.block(name)

    def block(self, name: str) -> None:
        """Start the block `name` after a block that has ended by itself."""
        self._lines.append(f"{name}:")
        self.here = name

    def jump(self, name: str) -> None:
        """End the block by going elsewhere."""
        self.line(f"br label %{name}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        """End the block by going to one of two others."""
        self.line(f"br i1 {condition}, label %{yes}, label %{no}")

    def require(self, condition: str, otherwise: str) -> None:
        """Go on only if `condition` holds, which it nearly always does."""
        fine = self.new_label("fine")
        self._weighted = True
        self.line(f"br i1 {condition}, label %{fine}, label %{otherwise}, !prof !0")
        self.block(fine)

    def join(self, kind: str, *incoming: tuple[str, str]) -> str:
        """Return the value that came from one of the blocks before: pairs of value and label."""
        return self.value(f"phi {kind} " + ", ".join(f"[ {value}, %{label} ]" for value, label in incoming))

    def mark(self) -> Lines:
        """Return a place between the lines, to be filled later; a new block must be started just behind it."""
        place: Lines = []
        self._lines.append(place)
        return place

    @contextmanager
    def inside(self, place: Lines) -> Iterator[None]:
        """Write at a marked place."""
        lines, here = self._lines, self.here
        self._lines = place
        try:
            yield
        finally:
            self._lines, self.here = lines, here

    def stack(self, kind: str) -> str:
        """Return a stack variable; it lives in the entry block however deep the place that asks."""
        self._temporaries += 1
        name = f"%x{self._temporaries}"
        self._stack.append(f"  {name} = alloca {kind}, align 8")
        return name

    def load(self, kind: str, pointer: str) -> str:
        """Read a value that may lie unaligned."""
        return self.value(f"load {kind}, ptr {pointer}, align 1")

    def store(self, kind: str, value: str, pointer: str) -> None:
        """Write a value that may lie unaligned."""
        self.line(f"store {kind} {value}, ptr {pointer}, align 1")

    def at(self, pointer: str, offset: int | str) -> str:
        """Return a pointer some bytes further on."""
        return pointer if offset == 0 else self.value(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def declare(self, declaration: str) -> None:
        """Declare what a line calls."""
        self._declarations.add(declaration)

    def call(self, kind: str, name: str, arguments: list[tuple[str, str]]) -> str:
        """Call an intrinsic that gives a value, and declare it."""
        self.declare(f"declare {kind} @{name}({', '.join(given for given, _ in arguments)})")
        return self.value(f"call {kind} @{name}({', '.join(f'{given} {value}' for given, value in arguments)})")

    def copy(self, target: str, source: str, size: int | str, *, overlapping: bool = False) -> None:
        """Copy bytes; between memories that overlap only if that is said."""
        name = "memmove" if overlapping else "memcpy"
        self.declare(MEMORY_DECLARATIONS[name])
        self.line(f"call void @llvm.{name}.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")

    def clear(self, target: str, size: int | str) -> None:
        """Write zeros."""
        self.declare(MEMORY_DECLARATIONS["memset"])
        self.line(f"call void @llvm.memset.p0.i64(ptr {target}, i8 0, i64 {size}, i1 false)")

    def constant(self, data: bytes) -> str:
        """Return a pointer to constant bytes."""
        return self._constants.setdefault(data, f"@k{len(self._constants)}")

    def begin_loop(self, count: str) -> tuple[str, tuple[str, str, str, str]]:
        """Start a loop that runs `count` times; return its index, and what `end_loop` needs."""
        counter = self.stack("i64")
        test, body, done = (self.new_label(word) for word in ("test", "body", "done"))
        self.line(f"store i64 0, ptr {counter}")
        self.label(test)
        index = self.value(f"load i64, ptr {counter}")
        self.branch(self.value(f"icmp slt i64 {index}, {count}"), body, done)
        self.block(body)
        return index, (counter, index, test, done)

    def end_loop(self, loop: tuple[str, str, str, str]) -> None:
        """End the body of a loop."""
        counter, index, test, done = loop
        following = self.value(f"add nuw nsw i64 {index}, 1")
        self.line(f"store i64 {following}, ptr {counter}")
        self.jump(test)
        self.block(done)

    def module(self, header: str) -> str:
        """Return the module: declarations, constants, and the function with the written body."""
        parts = [
            *sorted(self._declarations),
            *(
                f"{name} = private constant [{len(data)} x i8] {_quoted(data)}"
                for data, name in self._constants.items()
            ),
            f"{header} {{",
            "entry:",
            *self._stack,
            *_flat(self._whole),
            "}",
            *([LIKELY] if self._weighted else []),
        ]
        return "\n".join(parts) + "\n"


def _quoted(data: bytes) -> str:
    return 'c"' + "".join(f"\\{byte:02x}" for byte in data) + '"'


def _flat(lines: Lines) -> Iterator[str]:
    for line in lines:
        if isinstance(line, str):
            yield line
        else:
            yield from _flat(line)
