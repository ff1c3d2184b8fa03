"""Pure. What does a derivation's code do to events, and may it be run at all?"""

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
