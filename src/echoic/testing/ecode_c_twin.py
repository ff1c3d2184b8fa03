"""The third opinion: random programs as the C compiler of the machine has them, many in one file.

Two back ends by the same authors may be wrong alike; a C compiler is by others. It takes a third of a second to start,
so a hundred programs are compiled at once, each a function, and looked up by number. The programs (`ecode_c_programs`)
mean the same in C and in E-Code; `-fwrapv` and its like say what E-Code defines and C does not. The C compiler is what
the back ends are measured by and not what is tried, so it does not optimise, which takes half the time of `-O1`.
"""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Final

import numpy

from echoic.ecode.analysis import Analysis, analyse
from echoic.ecode.compiling import check
from echoic.ecode.generated_python import compile_python
from echoic.ecode.kernel import Kernel
from echoic.ecode.native import compile_native
from echoic.ecode.program import Program, Signature
from echoic.testing.ecode_c_programs import C_TYPES, INPUT, OUTPUT, ProgramMaker, Records, draw_inputs
from echoic.testing.guarded_memory import GuardedMemory

__all__ = ["c_compiler", "compare_with_c", "difference_of", "outputs_of_c"]

FLAGS: Final = ("-O0", "-shared", "-fPIC", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-w")
COMPILE_SECONDS_MAX: Final = 300  # of the processor; by the clock a trial that is held up would be over the limit
COMPILE_WAIT_SECONDS_MAX: Final = 3600
LIMITED: Final = ("sh", "-c", f'ulimit -t {COMPILE_SECONDS_MAX} && exec "$@"', "sh")
EVENTS: Final = 12
FUNCTION: Final = "static int f{number}(Input *in, Output *out) {{\n{body}\n}}\n"
FRAME: Final = """{types}
#define input (*in)
#define output (*out)
{functions}
#undef input
#undef output
int (*table[])(Input *, Output *) = {{{table}}};
void run(int which, Input *in, Output *out, int count) {{
    for (int number = 0; number < count; number++) table[which](in + number, out + number);
}}
"""


def c_compiler() -> str | None:
    """Return the C compiler of this machine, None if it has none."""
    return shutil.which("gcc") or shutil.which("cc")


def outputs_of_c(compiler: str, folder: Path, bodies: Sequence[str], inputs: Records) -> list[Records]:
    """Return what each program makes of the events, by the C compiler."""
    functions = "".join(FUNCTION.format(number=number, body=body) for number, body in enumerate(bodies))
    table = ", ".join(f"f{number}" for number in range(len(bodies)))
    source, made = folder / "programs.c", folder / "programs.so"
    source.write_text(FRAME.format(types=C_TYPES, functions=functions, table=table), "ascii")
    command = (*LIMITED, compiler, *FLAGS, "-o", str(made), str(source))
    subprocess.run(command, check=True, timeout=COMPILE_WAIT_SECONDS_MAX)
    library = ctypes.CDLL(str(made))
    library.run.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
    found = []
    for number in range(len(bodies)):
        outputs = numpy.zeros(len(inputs), OUTPUT.dtype)
        library.run(number, inputs.ctypes.data, outputs.ctypes.data, len(inputs))
        found.append(outputs)
    return found


def difference_of(inputs: Records, wanted: Records, found: Records) -> str:
    """Return in what two outputs differ, "" if in nothing; one NaN is as good as another."""
    for field in OUTPUT.dtype.names or ():
        left, right = wanted[field], found[field]
        same = left == right
        if left.dtype.kind == "f":
            same |= numpy.isnan(left) & numpy.isnan(right)
        if not same.all():
            first = int(numpy.argwhere(~same)[0][0])
            event = dict(zip(INPUT.dtype.names or (), inputs[first].tolist(), strict=True))
            return f"{field}: C gives {left[first]}, E-Code {right[first]}, for {event}"
    return ""


def compare_with_c(compiler: str, seed: int, count: int) -> list[str]:
    """Return what differs between C and either back end in the programs of a seed."""
    random = Random(f"C {seed}")
    bodies = [ProgramMaker(random, for_cod=False).body() for _ in range(count)]
    inputs, memory, problems = draw_inputs(random, EVENTS), GuardedMemory(), []
    with tempfile.TemporaryDirectory(prefix="echoic-c-") as folder:
        wanted = outputs_of_c(compiler, Path(folder), bodies, inputs)
    for number, (body, right) in enumerate(zip(bodies, wanted, strict=True)):
        program = check(body, Signature(INPUT, OUTPUT))
        analysis = analyse(program)
        for name, compile_kernel in BACK_ENDS.items():
            outputs = _run(compile_kernel(program, analysis), inputs, memory)
            difference = difference_of(inputs, right, outputs) if isinstance(outputs, numpy.ndarray) else outputs
            if difference:
                problems.append(f"program {number} of seed {seed}, {name}: {difference}\n{body}")
    return problems


BACK_ENDS: Final[dict[str, Callable[[Program, Analysis], Kernel]]] = {
    "native": compile_native,
    "Python": compile_python,
}


def _run(kernel: Kernel, inputs: Records, memory: GuardedMemory) -> Records | str:
    """Return what a kernel makes of events that lie flush against a guard page, or why it makes nothing."""
    records = memory.place(inputs.tobytes())
    outcome = kernel.run(records, None, len(inputs), b"", kernel.program.initial_statics())
    if outcome.faults or len(outcome.selected) != len(inputs):
        return f"faults {outcome.faults}, {len(outcome.selected)} of {len(inputs)} events passed"
    return numpy.frombuffer(bytes(outcome.records or b""), OUTPUT.dtype)
