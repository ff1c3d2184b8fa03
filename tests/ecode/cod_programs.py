"""COD, the compiler of EVPath and ADIOS2 that succeeded E-Code, run over events in a process of its own.

    python cod_programs.py < job.json > results.json

The job has bodies of functions, and the events of `c_programs.INPUT` as hexadecimal; the result has the outputs of each
body, or the compiler's complaint. The compiler is exported by `libadios2_ffs`, which the `adios2` wheel contains. COD
trusts its programs: a bad index or a division by zero would end this process.
"""

import ctypes
import importlib.util
import json
import sys
from pathlib import Path


class FieldRow(ctypes.Structure):
    """One field of a struct, as FFS describes it."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_char_p),
        ("size", ctypes.c_int),
        ("offset", ctypes.c_int),
    )


class Code(ctypes.Structure):
    """The beginning of what `cod_code_gen` returns."""

    _fields_ = (("function", ctypes.c_void_p), ("has_context", ctypes.c_int))


COMPLAIN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


class CodCompiler:
    """Compiles bodies of `int f(Input *input, Output *output)`."""

    def __init__(self, structs: dict[str, list[tuple[str, str, int, int]]]) -> None:
        self._library = load()
        # COD keeps pointers to these names, so they must live as long as it does.
        self._structs = {name.encode(): rows_of(fields) for name, fields in structs.items()}

    def run(self, body: str, events: list[bytes], output_bytes: int) -> list[str] | str:
        """Return the outputs as hexadecimal, or why the body was refused."""
        library = self._library
        context = library.new_cod_parse_context()
        complaints: list[bytes] = []
        complain = COMPLAIN(lambda _, text: complaints.append(text))
        library.cod_set_error_func(context, complain)
        for name, rows in self._structs.items():
            library.cod_add_simple_struct_type(name, ctypes.cast(rows, ctypes.c_void_p), context)
        library.cod_subroutine_declaration(b"int f(Input *input, Output *output)", context)
        code = library.cod_code_gen(("{" + body + "}").encode(), context)
        if not code:
            return b" ".join(complaints).decode()
        function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(code.contents.function)
        found = []
        for event in events:
            record, output = ctypes.create_string_buffer(event, len(event)), ctypes.create_string_buffer(output_bytes)
            function(record, output)
            found.append(output.raw.hex())
        library.cod_code_free(code)
        library.cod_free_parse_context(context)
        return found


def load() -> ctypes.CDLL:
    """Return the library of the compiler, with the signatures of what is called."""
    place = importlib.util.find_spec("adios2")
    assert place is not None
    assert place.origin is not None
    library = ctypes.CDLL(str(Path(place.origin).parent / "libadios2_ffs.so"))
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    library.new_cod_parse_context.restype = pointer
    library.cod_set_error_func.argtypes = (pointer, COMPLAIN)
    library.cod_add_simple_struct_type.argtypes = (text, pointer, pointer)
    library.cod_subroutine_declaration.argtypes = (text, pointer)
    library.cod_code_gen.argtypes = (text, pointer)
    library.cod_code_gen.restype = ctypes.POINTER(Code)
    library.cod_code_free.argtypes = (pointer,)
    library.cod_free_parse_context.argtypes = (pointer,)
    return library


def rows_of(fields: list[tuple[str, str, int, int]]) -> ctypes.Array[FieldRow]:
    rows = (FieldRow * (len(fields) + 1))()
    for number, (name, kind, size, offset) in enumerate(fields):
        rows[number] = FieldRow(name.encode(), kind.encode(), size, offset)
    return rows


def main() -> None:
    job = json.load(sys.stdin)
    compiler = CodCompiler(job["structs"])
    events = [bytes.fromhex(event) for event in job["events"]]
    json.dump([compiler.run(body, events, job["output_bytes"]) for body in job["bodies"]], sys.stdout)


if __name__ == "__main__":
    main()
