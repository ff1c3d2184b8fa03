"""E-Code beside its relative: random programs through both back ends and through COD.

COD is what E-Code became in EVPath and ADIOS2. Its compiler comes with the `adios2` wheel, which exists for Linux on
x86-64 only; the comparison with a C compiler is trial 9 (`tests/reliability`).
"""

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
from echoic.testing.ecode_c_programs import INPUT, OUTPUT, ProgramMaker, draw_inputs
from echoic.testing.ecode_c_twin import difference_of
from tests.ecode.compilers import BACK_ENDS, run_all

PROGRAMS = 150
EVENTS = 12
HERE = Path(__file__).parent
COD_KINDS = {Kind.INT: "integer", Kind.UINT: "unsigned integer", Kind.FLOAT: "float"}
COD_EXISTS = sys.platform == "linux" and platform.machine() == "x86_64"


def bodies(seed: int, count: int, *, for_cod: bool) -> list[str]:
    random = Random(seed)
    return [ProgramMaker(random, for_cod=for_cod).body() for _ in range(count)]


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


@pytest.mark.skipif(not COD_EXISTS, reason="adios2 has wheels for Linux on x86-64 only")
@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_random_programs_do_what_cod_makes_of_them(back_end: str) -> None:
    programs, inputs = bodies(3, PROGRAMS, for_cod=True), draw_inputs(Random(4), EVENTS)
    for program, wanted in zip(programs, by_cod(programs, inputs), strict=True):
        found = run_all(back_end, program, Signature(INPUT, OUTPUT), inputs)
        assert difference_of(inputs, wanted, found) == "", program
