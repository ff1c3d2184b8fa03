"""What tests that compare E-Code with other compilers share: both back ends, and the C compiler of the machine."""

import shutil

import numpy

from echoic.ecode.analysis import analyse
from echoic.ecode.compiling import check
from echoic.ecode.generated_python import compile_python
from echoic.ecode.kernel import Kernel
from echoic.ecode.native import compile_native
from echoic.ecode.program import Signature

BACK_ENDS = ("native", "python")


def kernel_of(back_end: str, source: str, signature: Signature) -> Kernel:
    """Compile by one of the two back ends."""
    program = check(source, signature)
    compiler = compile_native if back_end == "native" else compile_python
    return compiler(program, analyse(program))


def run_all(back_end: str, source: str, signature: Signature, inputs: numpy.ndarray) -> numpy.ndarray:
    """Return what a transform that passes every event makes of fixed records."""
    assert signature.output is not None
    kernel = kernel_of(back_end, source, signature)
    outcome = kernel.run(inputs.tobytes(), None, len(inputs), b"", kernel.program.initial_statics())
    assert outcome.faults == []
    assert len(outcome.selected) == len(inputs)
    return numpy.frombuffer(bytes(outcome.records or b""), signature.output.dtype)


def c_compiler() -> str:
    """Return the C compiler. `./run test` installs one where there is none."""
    found = shutil.which("gcc") or shutil.which("cc")
    assert found, "there is no C compiler; ./run test installs one by apt-get, elsewhere install gcc"
    return found
