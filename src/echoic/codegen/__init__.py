"""Pure. Native code: LLVM text to linked functions, and the CPython builtins around them."""

from echoic.codegen.batch_entry import (
    ROUTINE,
    WORK_HEADER,
    WORK_HEADER_BYTES,
    Demands,
    batch_entry,
    event_entry,
    work_bytes,
)
from echoic.codegen.emitter import Emitter, Lines
from echoic.codegen.entry import NativeCode, fixed_entry, variable_entry
from echoic.codegen.library import Library, Tier, compile_library

__all__ = [
    "ROUTINE",
    "WORK_HEADER",
    "WORK_HEADER_BYTES",
    "Demands",
    "Emitter",
    "Library",
    "Lines",
    "NativeCode",
    "Tier",
    "batch_entry",
    "compile_library",
    "event_entry",
    "fixed_entry",
    "variable_entry",
    "work_bytes",
]
