"""COD, the compiler of EVPath and ADIOS2 that E-Code became, out of the `adios2` wheel.

It compiles a function for one event, which EVPath calls from C. From Python it is called by ctypes, which costs more
than the code does; for batches a loop of native code calls it, as EVPath would. It checks nothing: a bad index ends the
process.
"""

import ctypes
import importlib.util
from collections.abc import Callable
from pathlib import Path

import numpy

from echoic.codegen import compile_library
from echoic.formats import Format, Kind
from echoic.testing.bench.derive import (
    EVENTS,
    FIGURE_4,
    FIGURE_5,
    FIGURE_6,
    Call,
    Compiler,
    Figure,
    Ready,
)

__all__ = ["COMPILERS"]

KINDS = {Kind.INT: "integer", Kind.UINT: "unsigned integer", Kind.FLOAT: "float", Kind.CHAR: "char"}
LOOP = """
define i32 @each(ptr %function, ptr %events, i64 %size, i32 %count, ptr %selected, ptr %params) {
begin:
  br label %test
test:
  %number = phi i32 [0, %begin], [%following, %next]
  %passed = phi i32 [0, %begin], [%more, %next]
  %at = phi ptr [%events, %begin], [%further, %next]
  %going = icmp ult i32 %number, %count
  br i1 %going, label %next, label %end
next:
  %told = call i32 %function(ptr %at, ptr %params)
  %place = getelementptr i32, ptr %selected, i32 %passed
  store i32 %number, ptr %place
  %passes = icmp ne i32 %told, 0
  %one = zext i1 %passes to i32
  %more = add i32 %passed, %one
  %following = add i32 %number, 1
  %further = getelementptr i8, ptr %at, i64 %size
  br label %test
end:
  ret i32 %passed
}
"""


class FieldRow(ctypes.Structure):
    """One field of a struct, as FFS describes it."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_char_p),
        ("size", ctypes.c_int),
        ("offset", ctypes.c_int),
    )


class CodeStart(ctypes.Structure):
    """The beginning of what `cod_code_gen` returns."""

    _fields_ = (("function", ctypes.c_void_p), ("has_context", ctypes.c_int))


def load() -> ctypes.CDLL:
    """Return the library of the compiler, with the signatures of what is called."""
    place = importlib.util.find_spec("adios2")
    library = ctypes.CDLL(str(Path(place.origin).parent / "libadios2_ffs.so"))
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    library.new_cod_parse_context.restype = pointer
    library.cod_add_simple_struct_type.argtypes = (text, pointer, pointer)
    library.cod_subroutine_declaration.argtypes = (text, pointer)
    library.cod_code_gen.argtypes = (text, pointer)
    library.cod_code_gen.restype = ctypes.POINTER(CodeStart)
    library.cod_code_free.argtypes = (pointer,)
    library.cod_free_parse_context.argtypes = (pointer,)
    return library


def rows_of(format: Format) -> ctypes.Array[FieldRow]:
    """Return a type as FFS describes it."""
    rows = (FieldRow * (len(format.fields) + 1))()
    for number, field in enumerate(format.fields):
        kind = KINDS[field.kind] + "".join(f"[{length}]" for length in field.dimensions)
        rows[number] = FieldRow(field.name.encode(), kind.encode(), field.size, field.offset)
    return rows


LIBRARY = load()


class CodeOf:
    """The code of one figure; it is freed with this object."""

    def __init__(self, figure: Figure) -> None:
        roots = {"input": figure.signature.input, "output": figure.signature.output, "param": figure.signature.params}
        known = {name: format for name, format in roots.items() if format is not None}
        # COD keeps pointers to these names, so they must live as long as it does.
        self._rows = {name.capitalize().encode(): rows_of(format) for name, format in known.items()}
        self._context = LIBRARY.new_cod_parse_context()
        for name, rows in self._rows.items():
            LIBRARY.cod_add_simple_struct_type(name, ctypes.cast(rows, ctypes.c_void_p), self._context)
        arguments = ", ".join(f"{name.capitalize()} *{name}" for name in known)
        LIBRARY.cod_subroutine_declaration(f"int f({arguments})".encode(), self._context)
        self._code = LIBRARY.cod_code_gen(figure.code.encode(), self._context)
        if not self._code:
            raise RuntimeError(f"COD does not compile {figure.name}")
        self.address = self._code.contents.function

    def function(self, arguments: int) -> Callable[..., int]:
        """Return the code as a function of so many pointers."""
        return ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * arguments)(self.address)

    def __del__(self) -> None:
        if getattr(self, "_code", None):
            LIBRARY.cod_code_free(self._code)
            LIBRARY.cod_free_parse_context(self._context)


def ready(records: numpy.ndarray, array: numpy.ndarray) -> Ready:
    """Make calls."""
    figure_4, figure_5, figure_6 = codes = [CodeOf(figure) for figure in (FIGURE_4, FIGURE_5, FIGURE_6)]
    params, output, selected = ctypes.create_string_buffer(FIGURE_6.params), numpy.zeros(1), numpy.zeros(EVENTS, "u4")
    library = compile_library(LOOP, ("each",))
    pointer = ctypes.c_void_p
    each = ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer, ctypes.c_int64, ctypes.c_int, pointer, pointer)(
        library.address("each")
    )
    each.kept = (library, codes, params, selected)  # memory that is known here by its address only
    at, size, params_at, output_at = records.ctypes.data, records.itemsize, ctypes.addressof(params), output.ctypes.data
    selected_at = selected.ctypes.data
    one_of_figure_6, one_of_figure_5 = figure_6.function(2), figure_5.function(2)

    def batch(code: CodeOf) -> int:
        return each(code.address, at, size, EVENTS, selected_at, params_at)

    def average(place: int) -> float:
        one_of_figure_5(place, output_at)
        return output[0]

    return Ready(
        {
            FIGURE_4.name: Call(figure_4.function(1), at + size),
            FIGURE_6.name: Call(lambda place: one_of_figure_6(place, params), at + size),
        },
        {FIGURE_4.name: Call(batch, figure_4, EVENTS), FIGURE_6.name: Call(batch, figure_6, EVENTS)},
        Call(average, array.ctypes.data),
    )


COMPILERS = (Compiler("COD", CodeOf, ready),)
