"""Pure. Native code: LLVM text to linked functions, and the CPython builtins around them."""

from echoic.codegen.emitter import Emitter
from echoic.codegen.entry import NativeCode, fixed_entry, variable_entry
from echoic.codegen.library import Library, compile_library

__all__ = ["Emitter", "Library", "NativeCode", "compile_library", "fixed_entry", "variable_entry"]
