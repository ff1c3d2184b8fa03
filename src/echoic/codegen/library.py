"""From LLVM text to addresses.

Code is written as LLVM assembly text (building it through an object model costs more than parsing it), checked,
optimised, compiled to an object and linked by a just-in-time linker of its own: a shared one keeps about 8 KB for every
library that was dropped, and most code here lives as long as a subscription. LLVM's optimiser itself keeps 80 to 300 KB
for every module it has seen, dropped or not, so a process compiles only so many; whoever comes later does without.

The linker resolves *any* symbol of the process, `system` included. So before anything is linked, each declaration in
the module must be on the whitelist: the intrinsics of LLVM and the few functions of CPython that entry points call.
"""

import itertools
import re
from functools import lru_cache
from typing import Any, Final

from llvmlite import binding

from echoic.errors import CodegenError

__all__ = ["Library", "compile_library"]

INTRINSICS: Final = re.compile(
    r"llvm\.(memcpy|memset|memmove|bswap|umin|umax|smin|smax|fptosi\.sat|fptoui\.sat|ctpop|fabs|sqrt|floor|ceil|trunc|"
    r"lifetime\.start|lifetime\.end|assume|expect)\b"
)
PYTHON_SYMBOLS: Final = frozenset(
    {
        "PyBuffer_Release",
        "PyBytes_AsString",
        "PyBytes_FromStringAndSize",
        "PyErr_Occurred",
        "PyErr_SetString",
        "PyExc_TypeError",
        "PyExc_ValueError",
        "PyLong_AsLongLong",
        "PyLong_AsVoidPtr",
        "PyObject_GetBuffer",
        "Py_DecRef",
        "_PyBytes_Resize",
    }
)

OUTSIDE_LINKAGES: Final = (binding.Linkage.available_externally, binding.Linkage.external_weak)
COMPILES_MAX: Final = 2048
MACHINE_CODE: Final = re.compile(r"\basm\b")

_numbers: Final = itertools.count()


class Library:
    """Linked code; it stays in memory as long as this object."""

    __slots__ = ("_linker", "_tracker")

    def __init__(self, linker: Any, tracker: Any) -> None:  # noqa: ANN401 - llvmlite has no types
        self._linker = linker
        self._tracker = tracker

    def address(self, symbol: str) -> int:
        """Return where an exported function lies."""
        return int(self._tracker[symbol])


def compile_library(text: str, exports: tuple[str, ...], *, python: bool = False) -> Library:
    """Compile and link a module.

    Args:
        text: LLVM assembly.
        exports: The functions whose addresses will be asked for.
        python: Whether the module may call CPython.

    Raises:
        CodegenError: The text is not valid, declares a symbol that is not on the whitelist, or too much was compiled.
    """
    number = next(_numbers)
    if number >= COMPILES_MAX:
        raise CodegenError(f"{number} modules were compiled in this process, limit is {COMPILES_MAX}")
    if MACHINE_CODE.search(text):
        raise CodegenError("generated code contains assembly of the machine")
    machine = _target_machine()
    try:
        module = binding.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise CodegenError(f"generated code is not valid: {str(error).strip()}") from error
    _check_symbols(module, exports, allowed=PYTHON_SYMBOLS if python else frozenset())
    _optimise(module, machine)
    code = machine.emit_object(module)
    linker = binding.create_lljit_compiler(machine)
    builder = binding.JITLibraryBuilder().add_object_img(code).add_current_process()
    for export in exports:
        builder.export_symbol(export)
    return Library(linker, builder.link(linker, f"echoic{number}"))


def _check_symbols(module: Any, exports: tuple[str, ...], *, allowed: frozenset[str]) -> None:  # noqa: ANN401 - no types
    """Refuse every external name that generated code has no business with, and exports that are not there."""
    defined = set()
    for item in (*module.functions, *module.global_variables):
        outside = item.is_declaration or item.linkage in OUTSIDE_LINKAGES
        if outside and not INTRINSICS.match(item.name) and item.name not in allowed:
            raise CodegenError(f"generated code declares `{item.name}`, which is not on the whitelist")
        if not outside:
            defined.add(item.name)
    for export in exports:
        if export not in defined:
            raise CodegenError(f"generated code has no function `{export}`")


def _optimise(module: Any, machine: Any) -> None:  # noqa: ANN401 - llvmlite has no types
    options = binding.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = True
    passes = binding.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)


@lru_cache(maxsize=1)
def _target_machine() -> Any:  # noqa: ANN401 - llvmlite has no types
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    features = binding.get_host_cpu_features().flatten()
    return target.create_target_machine(cpu=binding.get_host_cpu_name(), features=features, opt=2, jit=True)
