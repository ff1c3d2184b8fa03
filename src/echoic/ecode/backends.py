"""From a checked program to a kernel: native code, or generated Python where there can be none."""

from typing import Literal

from echoic.ecode.analysis import Analysis
from echoic.ecode.generated_python import compile_python
from echoic.ecode.kernel import Kernel
from echoic.ecode.native import compile_native
from echoic.ecode.program import Program
from echoic.errors import CodegenError

__all__ = ["compile_kernel"]


def compile_kernel(program: Program, analysis: Analysis, *, tier: Literal["light", "full"] = "light") -> Kernel:
    """Return a kernel for a program.

    Args:
        program: What to compile.
        analysis: What is known about it.
        tier: How much to optimise: `light` takes some milliseconds, `full` several times that.
    """
    try:
        return compile_native(program, analysis, tier=tier)
    except CodegenError:  # no code generator for this machine, or too much was generated
        return compile_python(program, analysis)
