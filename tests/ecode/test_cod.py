"""E-Code beside its relatives: random programs through both back ends, through gcc and through COD.

COD is what E-Code became in EVPath and ADIOS2. Its compiler comes with the `adios2` wheel, which exists for Linux on
x86-64 only; elsewhere the comparison with gcc remains.
"""

import ctypes
import json
import platform
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy
import pytest

from echoic.ecode.program import Signature
from echoic.formats import Format, Kind
from tests.ecode.c_programs import C_TYPES, INPUT, OUTPUT, ProgramMaker, draw_inputs
from tests.ecode.compilers import BACK_ENDS, c_compiler, run_all

PROGRAMS = 150
EVENTS = 12
HERE = Path(__file__).parent
COD_KINDS = {Kind.INT: "integer", Kind.UINT: "unsigned integer", Kind.FLOAT: "float"}
COD_EXISTS = sys.platform == "linux" and platform.machine() == "x86_64"


def bodies(seed: int, count: int, *, for_cod: bool) -> list[str]:
    random = Random(seed)
    return [ProgramMaker(random, for_cod=for_cod).body() for _ in range(count)]


def by_gcc(folder: Path, programs: list[str], inputs: numpy.ndarray) -> list[numpy.ndarray]:
    functions = "".join(
        f"static int f{number}(Input *in, Output *out) {{\n{body}\n}}\n" for number, body in enumerate(programs)
    )
    table = ", ".join(f"f{number}" for number in range(len(programs)))
    source = (
        f"{C_TYPES}\n#define input (*in)\n#define output (*out)\n{functions}\n#undef input\n#undef output\n"
        f"int (*table[])(Input *, Output *) = {{{table}}};\n"
        "void run(int which, Input *in, Output *out, int count) {\n"
        "    for (int number = 0; number < count; number++) table[which](in + number, out + number);\n}\n"
    )
    (folder / "programs.c").write_text(source)
    made = folder / "programs.so"
    flags = ("-O1", "-shared", "-fPIC", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-w")
    subprocess.run([c_compiler(), *flags, "-o", str(made), str(folder / "programs.c")], check=True, timeout=120)
    library = ctypes.CDLL(str(made))
    library.run.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
    found = []
    for number in range(len(programs)):
        outputs = numpy.zeros(len(inputs), OUTPUT.dtype)
        library.run(number, inputs.ctypes.data, outputs.ctypes.data, len(inputs))
        found.append(outputs)
    return found


def by_cod(programs: list[str], inputs: numpy.ndarray) -> list[numpy.ndarray]:
    job = {
        "structs": {"Input": cod_fields(INPUT), "Output": cod_fields(OUTPUT)},
        "events": [event.tobytes().hex() for event in inputs],
        "output_bytes": OUTPUT.size,
        "bodies": programs,
    }
    command = [sys.executable, str(HERE / "cod_programs.py")]
    done = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, check=True, timeout=120)
    found = json.loads(done.stdout)
    assert not [complaint for complaint in found if isinstance(complaint, str)]
    return [numpy.frombuffer(bytes.fromhex("".join(outputs)), OUTPUT.dtype) for outputs in found]


def cod_fields(format: Format) -> list[tuple[str, str, int, int]]:
    return [
        (
            field.name,
            COD_KINDS[field.kind] + "".join(f"[{length}]" for length in field.dimensions),
            field.size,
            field.offset,
        )
        for field in format.fields
    ]


def compare(program: str, inputs: numpy.ndarray, wanted: numpy.ndarray, found: numpy.ndarray) -> None:
    for field in OUTPUT.dtype.names or ():
        left, right = wanted[field], found[field]
        same = left == right
        if left.dtype.kind == "f":
            same |= numpy.isnan(left) & numpy.isnan(right)
        if not same.all():
            first = int(numpy.argwhere(~same)[0][0])
            event = dict(zip(INPUT.dtype.names or (), inputs[first], strict=True))
            raise AssertionError(f"{program}\n{event}\n{field}: expected {left[first]}, got {right[first]}")


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_random_programs_do_what_gcc_makes_of_them(tmp_path: Path, back_end: str) -> None:
    programs, inputs = bodies(1, PROGRAMS, for_cod=False), draw_inputs(Random(2), EVENTS)
    for program, wanted in zip(programs, by_gcc(tmp_path, programs, inputs), strict=True):
        compare(program, inputs, wanted, run_all(back_end, program, Signature(INPUT, OUTPUT), inputs))


@pytest.mark.skipif(not COD_EXISTS, reason="adios2 has wheels for Linux on x86-64 only")
@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_random_programs_do_what_cod_makes_of_them(back_end: str) -> None:
    programs, inputs = bodies(3, PROGRAMS, for_cod=True), draw_inputs(Random(4), EVENTS)
    for program, wanted in zip(programs, by_cod(programs, inputs), strict=True):
        compare(program, inputs, wanted, run_all(back_end, program, Signature(INPUT, OUTPUT), inputs))
