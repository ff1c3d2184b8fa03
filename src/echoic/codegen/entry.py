"""CPython functions around native code.

A call through ctypes costs 0.5 to 0.9 us, more than most of what is called. So the way in is a real builtin: a C
function with the signature CPython wants, generated once with LLVM, that takes the address of the native routine from
its own `self`. `NativeCode` is an int (that address) which keeps the linked library alive as long as any builtin made
from it.

    convert(source, count)                      -> bytes      fixed records: the routine tells how many bytes it needs
    convert(source, bounds, count, capacity)    -> bytes      variable records: cut to what the routine has written

A routine reports failure by a negative number, which comes out as ValueError with that number in its message.
"""

import ctypes
from collections.abc import Callable
from typing import Any, Final

from echoic.codegen.library import Library, compile_library

__all__ = ["PRELUDE", "MethodDefinition", "NativeCode", "fixed_entry", "make_builtin", "variable_entry"]

METH_FASTCALL: Final = 0x0080


class NativeCode(int):
    """The address of a native routine; while it lives, so does the routine."""

    library: Library

    @classmethod
    def of(cls, library: Library, symbol: str) -> "NativeCode":
        """Return the routine `symbol` of a library."""
        code = cls(library.address(symbol))
        code.library = library
        return code


class MethodDefinition(ctypes.Structure):
    """What CPython knows about a builtin: the struct `PyMethodDef`."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_kept: Final[dict[str, tuple[MethodDefinition, MethodDefinition, Library]]] = {}


def fixed_entry(code: NativeCode) -> Callable[[object, int], bytes]:
    """Return a builtin `convert(source, count) -> bytes` around a routine for fixed records.

    The routine is `i64 (ptr source, i64 source_bytes, ptr target, i64 count)`; with a null target it only tells how
    many bytes the target must have.
    """
    builtin: Callable[[object, int], bytes] = make_builtin(_definitions()[0], code)
    return builtin


def variable_entry(code: NativeCode) -> Callable[[object, object, int, int], bytes]:
    """Return a builtin `convert(source, bounds, count, capacity) -> bytes` around a routine for variable records.

    The routine is `i64 (ptr source, i64 source_bytes, ptr bounds, i64 bounds_bytes, ptr target, i64 capacity,
    i64 count)` and returns how many bytes of the target it has written.
    """
    builtin: Callable[[object, object, int, int], bytes] = make_builtin(_definitions()[1], code)
    return builtin


def make_builtin(definition: MethodDefinition, bound: object) -> Any:  # noqa: ANN401 - ctypes has no types for it
    """Return a builtin whose `self` is `bound`; the definition must outlive it."""
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(ctypes.addressof(definition), bound, None)


def _definitions() -> tuple[MethodDefinition, MethodDefinition, Library]:
    """Compile the two entry points, and keep definitions and library for the life of the process.

    Two threads may get here at once. Both must then use the one pair that is kept: builtins point into it.
    """
    if _kept:
        return _kept["entries"]
    library = compile_library(PRELUDE + ENTRIES, ("fixed_entry", "variable_entry"), python=True)
    fixed, variable = (
        MethodDefinition(b"convert", library.address(symbol), METH_FASTCALL, None)
        for symbol in ("fixed_entry", "variable_entry")
    )
    return _kept.setdefault("entries", (fixed, variable, library))


# A Py_buffer is 80 bytes on every 64-bit machine: buf at 0, obj at 8, len at 16.
PRELUDE: Final = """
declare i32 @PyObject_GetBuffer(ptr, ptr, i32)
declare void @PyBuffer_Release(ptr)
declare ptr @PyBytes_AsString(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_SetString(ptr, ptr)
declare void @Py_DecRef(ptr)
@PyExc_TypeError = external global ptr
@PyExc_ValueError = external global ptr
@arguments = private constant [26 x i8] c"wrong number of arguments\\00"

define private ptr @refuse(ptr %kind, ptr %text) {
  %error = load ptr, ptr %kind
  call void @PyErr_SetString(ptr %error, ptr %text)
  ret ptr null
}
"""

ENTRIES: Final = """
declare ptr @PyBytes_FromStringAndSize(ptr, i64)
declare i32 @_PyBytes_Resize(ptr, i64)
@malformed = private constant [3 x i8] c"-1\\00"
@capacity = private constant [3 x i8] c"-2\\00"

define private i1 @failed(i64 %value) {
  %suspicious = icmp eq i64 %value, -1
  br i1 %suspicious, label %ask, label %fine
ask:
  %error = call ptr @PyErr_Occurred()
  %raised = icmp ne ptr %error, null
  ret i1 %raised
fine:
  ret i1 false
}

define private ptr @finish(ptr %bytes, i64 %result) {
  %bad = icmp slt i64 %result, 0
  br i1 %bad, label %failed, label %good
good:
  ret ptr %bytes
failed:
  call void @Py_DecRef(ptr %bytes)
  %short = icmp eq i64 %result, -2
  %text = select i1 %short, ptr @capacity, ptr @malformed
  %null = call ptr @refuse(ptr @PyExc_ValueError, ptr %text)
  ret ptr %null
}

define ptr @fixed_entry(ptr %self, ptr %args, i64 %given) {
entry:
  %view = alloca [80 x i8], align 8
  %enough = icmp eq i64 %given, 2
  br i1 %enough, label %numbers, label %wrong
wrong:
  %null = call ptr @refuse(ptr @PyExc_TypeError, ptr @arguments)
  ret ptr %null
numbers:
  %routine = call ptr @PyLong_AsVoidPtr(ptr %self)
  %arg1 = getelementptr ptr, ptr %args, i64 1
  %object1 = load ptr, ptr %arg1
  %count = call i64 @PyLong_AsLongLong(ptr %object1)
  %bad = call i1 @failed(i64 %count)
  br i1 %bad, label %fail, label %buffer
buffer:
  %object0 = load ptr, ptr %args
  %code = call i32 @PyObject_GetBuffer(ptr %object0, ptr %view, i32 0)
  %none = icmp slt i32 %code, 0
  br i1 %none, label %fail, label %ask
ask:
  %source = load ptr, ptr %view
  %length_at = getelementptr i8, ptr %view, i64 16
  %length = load i64, ptr %length_at
  %size = call i64 %routine(ptr %source, i64 %length, ptr null, i64 %count)
  %impossible = icmp slt i64 %size, 0
  br i1 %impossible, label %refused, label %allocate
refused:
  %short = icmp eq i64 %size, -2
  %text = select i1 %short, ptr @capacity, ptr @malformed
  %nothing = call ptr @refuse(ptr @PyExc_ValueError, ptr %text)
  br label %release
allocate:
  %bytes = call ptr @PyBytes_FromStringAndSize(ptr null, i64 %size)
  %empty = icmp eq ptr %bytes, null
  br i1 %empty, label %release, label %run
run:
  %target = call ptr @PyBytes_AsString(ptr %bytes)
  %result = call i64 %routine(ptr %source, i64 %length, ptr %target, i64 %count)
  call void @PyBuffer_Release(ptr %view)
  %made = call ptr @finish(ptr %bytes, i64 %result)
  ret ptr %made
release:
  call void @PyBuffer_Release(ptr %view)
  br label %fail
fail:
  ret ptr null
}

define ptr @variable_entry(ptr %self, ptr %args, i64 %given) {
entry:
  %view = alloca [80 x i8], align 8
  %bounds = alloca [80 x i8], align 8
  %holder = alloca ptr, align 8
  %enough = icmp eq i64 %given, 4
  br i1 %enough, label %numbers, label %wrong
wrong:
  %null = call ptr @refuse(ptr @PyExc_TypeError, ptr @arguments)
  ret ptr %null
numbers:
  %routine = call ptr @PyLong_AsVoidPtr(ptr %self)
  %arg1 = getelementptr ptr, ptr %args, i64 1
  %arg2 = getelementptr ptr, ptr %args, i64 2
  %arg3 = getelementptr ptr, ptr %args, i64 3
  %object1 = load ptr, ptr %arg1
  %object2 = load ptr, ptr %arg2
  %object3 = load ptr, ptr %arg3
  %count = call i64 @PyLong_AsLongLong(ptr %object2)
  %bad1 = call i1 @failed(i64 %count)
  %size = call i64 @PyLong_AsLongLong(ptr %object3)
  %bad2 = call i1 @failed(i64 %size)
  %bad = or i1 %bad1, %bad2
  br i1 %bad, label %fail, label %buffer
buffer:
  %object0 = load ptr, ptr %args
  %code = call i32 @PyObject_GetBuffer(ptr %object0, ptr %view, i32 0)
  %none = icmp slt i32 %code, 0
  br i1 %none, label %fail, label %second
second:
  %code2 = call i32 @PyObject_GetBuffer(ptr %object1, ptr %bounds, i32 0)
  %none2 = icmp slt i32 %code2, 0
  br i1 %none2, label %release, label %allocate
allocate:
  %bytes = call ptr @PyBytes_FromStringAndSize(ptr null, i64 %size)
  %empty = icmp eq ptr %bytes, null
  br i1 %empty, label %release2, label %run
run:
  %source = load ptr, ptr %view
  %length_at = getelementptr i8, ptr %view, i64 16
  %length = load i64, ptr %length_at
  %bounds_source = load ptr, ptr %bounds
  %bounds_length_at = getelementptr i8, ptr %bounds, i64 16
  %bounds_length = load i64, ptr %bounds_length_at
  %target = call ptr @PyBytes_AsString(ptr %bytes)
  %result = call i64 %routine(
    ptr %source, i64 %length, ptr %bounds_source, i64 %bounds_length, ptr %target, i64 %size, i64 %count
  )
  call void @PyBuffer_Release(ptr %bounds)
  call void @PyBuffer_Release(ptr %view)
  %made = call ptr @finish(ptr %bytes, i64 %result)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %fail, label %shrink
shrink:
  store ptr %made, ptr %holder
  %resized = call i32 @_PyBytes_Resize(ptr %holder, i64 %result)
  %whole = load ptr, ptr %holder
  ret ptr %whole
release2:
  call void @PyBuffer_Release(ptr %bounds)
  br label %release
release:
  call void @PyBuffer_Release(ptr %view)
  br label %fail
fail:
  ret ptr null
}
"""
