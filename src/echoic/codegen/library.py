"""From LLVM text to addresses.

Code is written as LLVM assembly text (building it through an object model costs more than parsing it), checked,
optimised, compiled to an object and linked by a just-in-time linker of its own: a shared one keeps about 8 KB for every
library that was dropped, and most code here lives as long as a subscription.

How much is optimised is the caller's choice:

    quick    stack variables become registers, the machine code is written in one go     for very large functions
    light    the same, simpler branches and instructions, the back end's usual effort    1 to 3 ms for most code
    full     what a C compiler does at -O2, vectors included                             5 to 50 ms

Objects are remembered by the text they were made of, so code that is asked for again is only linked (0.6 ms).

The linker resolves *any* symbol of the process, `system` included. So before anything is linked, each declaration in
the module must be on the whitelist: the intrinsics of LLVM, functions of C's `math.h`, and the few functions of CPython
that entry points call.

Nothing may be left behind by code that was dropped, since a process compiles for as long as strangers subscribe. Three
things would be, and are seen to here: a module's types and constants stay in LLVM's global context, so each module has
one of its own; llvmlite closes a pass manager without freeing it (4 to 75 KB each), so `_optimise` does; and every pass
builder leaves its callbacks behind (1.5 KB), so one is used many times, though not for ever, since it asks one more
callback for each time it was used.
"""

import hashlib
import itertools
import re
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

from llvmlite import binding
from llvmlite.binding.newpassmanagers import NewPassManager

from echoic.errors import CodegenError

__all__ = ["Library", "Tier", "compile_library"]

Tier: TypeAlias = Literal["quick", "light", "full"]

INTRINSICS: Final = re.compile(
    r"llvm\.(memcpy|memset|memmove|bswap|umin|umax|smin|smax|fptosi\.sat|fptoui\.sat|ctpop|fabs|sqrt|floor|ceil|trunc|"
    r"round|lifetime\.start|lifetime\.end|assume|expect)\b"
)
PYTHON_SYMBOLS: Final = frozenset(
    {
        "PyBuffer_Release",
        "PyBytes_AsString",
        "PyBytes_FromStringAndSize",
        "PyErr_Occurred",
        "PyErr_SetObject",
        "PyErr_SetString",
        "PyEval_RestoreThread",
        "PyEval_SaveThread",
        "PyExc_TypeError",
        "PyExc_ValueError",
        "PyLong_AsLongLong",
        "PyLong_AsVoidPtr",
        "PyLong_FromLongLong",
        "PyObject_GetBuffer",
        "Py_DecRef",
        "_PyBytes_Resize",
        "_Py_NoneStruct",
    }
)
MATH_SYMBOLS: Final = frozenset(
    {
        "acos",
        "asin",
        "atan",
        "atan2",
        "cos",
        "exp",
        "fmod",
        "hypot",
        "log",
        "log10",
        "log2",
        "pow",
        "sin",
        "tan",
    }
)

OUTSIDE_LINKAGES: Final = (binding.Linkage.available_externally, binding.Linkage.external_weak)
MACHINE_CODE: Final = re.compile(r"\basm\b")
# A builder still has the callbacks of its earlier runs; they answer without looking, unless a function is `optnone`.
UNOPTIMISED: Final = re.compile(r"\boptnone\b")
BUILDER_RUNS_MAX: Final = 64
OBJECT_BYTES_MAX: Final = 16 << 20

_numbers: Final = itertools.count()
_builders: Final[dict[Tier, tuple[Any, Any]]] = {}
_objects: Final[dict[bytes, bytes]] = {}


class Library:
    """Linked code; it stays in memory as long as this object."""

    __slots__ = ("_linker", "_tracker")

    def __init__(self, linker: Any, tracker: Any) -> None:  # noqa: ANN401 - llvmlite has no types
        self._linker = linker
        self._tracker = tracker

    def address(self, symbol: str) -> int:
        """Return where an exported function lies."""
        return int(self._tracker[symbol])


def compile_library(text: str, exports: tuple[str, ...], *, python: bool = False, tier: Tier = "full") -> Library:
    """Compile and link a module.

    Args:
        text: LLVM assembly.
        exports: The functions whose addresses will be asked for.
        python: Whether the module may call CPython.
        tier: How much is optimised.

    Raises:
        CodegenError: The text is not valid, or declares a symbol that is not on the whitelist.
    """
    key = hashlib.sha256(repr((text, exports, python, tier)).encode()).digest()
    code = _objects.pop(key, None)
    if code is None:
        code = _compile(text, exports, python=python, tier=tier)
    _remember(key, code)
    linker = binding.create_lljit_compiler(_target_machine(tier))
    builder = binding.JITLibraryBuilder().add_object_img(code).add_current_process()
    for export in exports:
        builder.export_symbol(export)
    return Library(linker, builder.link(linker, f"echoic{next(_numbers)}"))


def _remember(key: bytes, code: bytes) -> None:
    """Keep an object as the youngest of all, and forget the oldest ones when they are too many.

    Several threads may do so at once; each step is one operation on the dictionary, so the worst is an object less.
    """
    _objects[key] = code
    kept = list(_objects.items())
    excess = sum(len(each) for _, each in kept) - OBJECT_BYTES_MAX
    for oldest, dropped in kept:
        if excess <= 0:
            break
        _objects.pop(oldest, None)
        excess -= len(dropped)


def _compile(text: str, exports: tuple[str, ...], *, python: bool, tier: Tier) -> bytes:
    """Return the object that a module becomes."""
    if MACHINE_CODE.search(text):
        raise CodegenError("generated code contains assembly of the machine")
    with binding.create_context() as context:
        try:
            module = binding.parse_assembly(text, context)
        except RuntimeError as error:
            raise CodegenError(f"generated code is not valid: {str(error).strip()}") from error
        with module:
            try:
                module.verify()
            except RuntimeError as error:
                raise CodegenError(f"generated code is not valid: {str(error).strip()}") from error
            _check_symbols(module, exports, allowed=MATH_SYMBOLS | (PYTHON_SYMBOLS if python else frozenset()))
            if UNOPTIMISED.search(text):
                raise CodegenError("generated code contains a function that must not be optimised")
            _optimise(module, tier)
            return bytes(_target_machine(tier).emit_object(module))


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


def _optimise(module: Any, tier: Tier) -> None:  # noqa: ANN401 - llvmlite has no types
    builder = _pass_builder(tier)
    if tier == "full":
        passes = builder.getModulePassManager()
    else:
        passes = binding.create_new_module_pass_manager()
        passes.add_sroa_pass()
        if tier == "light":
            passes.add_simplify_cfg_pass()
            passes.add_instruction_combine_pass()
            passes.add_simplify_cfg_pass()
    try:
        passes.run(module, builder)
    finally:
        # What `close` should do, but its class inherits another `_dispose` first, one that does nothing.
        NewPassManager._dispose(passes)  # noqa: SLF001 - see above
        passes.detach()


def _pass_builder(tier: Tier) -> Any:  # noqa: ANN401 - llvmlite has no types
    """Return a pass builder that was not used too often."""
    builder, runs = _builders.get(tier, (None, iter(())))
    if next(runs, None) is None:
        options = binding.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization = options.slp_vectorization = tier == "full"
        builder, runs = binding.create_pass_builder(_target_machine(tier), options), iter(range(BUILDER_RUNS_MAX - 1))
        _builders[tier] = builder, runs
    return builder


@lru_cache(maxsize=3)
def _target_machine(tier: Tier) -> Any:  # noqa: ANN401 - llvmlite has no types
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_default_triple()
    features = binding.get_host_cpu_features().flatten()
    effort = 0 if tier == "quick" else 2
    return target.create_target_machine(cpu=binding.get_host_cpu_name(), features=features, opt=effort, jit=True)
