"""Pure. What does a derivation's code do to events, and may it be run at all?

Names are imported when first used: most programs with a hub compile nothing, and parser, checker and back ends take an
eighth of the time that it takes to start one.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from echoic.ecode.analysis import Analysis, analyse
    from echoic.ecode.backends import compile_kernel
    from echoic.ecode.checking import check_context
    from echoic.ecode.compiling import check, spelled
    from echoic.ecode.context import CALLS_MAX, ContextUse
    from echoic.ecode.generated_python import compile_python
    from echoic.ecode.kernel import FAULTS_MAX, FUEL, Buffer, Fault, FaultKind, Kernel, Outcome
    from echoic.ecode.native import compile_native
    from echoic.ecode.parameters import parameter_format, updated
    from echoic.ecode.program import ARRAY_CAPACITY, PORTS_MAX, Program, Signature, Spelling
    from echoic.ecode.python_spelling import source_of

__all__ = [
    "ARRAY_CAPACITY",
    "CALLS_MAX",
    "FAULTS_MAX",
    "FUEL",
    "PORTS_MAX",
    "Analysis",
    "Buffer",
    "ContextUse",
    "Fault",
    "FaultKind",
    "Kernel",
    "Outcome",
    "Program",
    "Signature",
    "Spelling",
    "analyse",
    "check",
    "check_context",
    "compile_kernel",
    "compile_native",
    "compile_python",
    "parameter_format",
    "source_of",
    "spelled",
    "updated",
]

_HOMES: Final = {
    "analysis": ("Analysis", "analyse"),
    "backends": ("compile_kernel",),
    "checking": ("check_context",),
    "compiling": ("check", "spelled"),
    "context": ("CALLS_MAX", "ContextUse"),
    "generated_python": ("compile_python",),
    "kernel": ("FAULTS_MAX", "FUEL", "Buffer", "Fault", "FaultKind", "Kernel", "Outcome"),
    "native": ("compile_native",),
    "parameters": ("parameter_format", "updated"),
    "program": ("ARRAY_CAPACITY", "PORTS_MAX", "Program", "Signature", "Spelling"),
    "python_spelling": ("source_of",),
}
_homes: Final = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a name from the module it lives in."""
    if name not in _homes:
        raise AttributeError(f"module 'echoic.ecode' has no attribute {name!r}")
    value = getattr(import_module(f"echoic.ecode.{_homes[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
