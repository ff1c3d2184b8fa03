"""The first file that Python runs in a confined process: it makes the start short.

    python -I -S -B boot.py FOLDER-OF-ECHOIC FOLDER-OF-PACKAGES...

Importing is nearly all that a start costs, so a confined process imports little. Two packages stand there without their
`__init__`, which would name nearly everything else: a few of their names are known to be in one module each, and for
any other one the package is completed, so that whatever a shipped text imports is there. LLVM is left out altogether
(`without_llvm`). Measured on the machine of `docs/benchmarks.md`: 145 ms instead of 315.

It imports nothing of echoic before the packages stand.
"""

import os
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Final

__all__: list[str] = []

HOMES: Final = {
    "echoic.channels": {
        "SharedPolicy": "shared_state",
        "SharedView": "shared_state",
        "VALUE_BYTES_MAX": "shared_state",
    },
    "echoic.eager": {
        "Demodulator": "modulator",
        "EcodeModulator": "modulator",
        "Modulator": "modulator",
        "SharedObject": "shared_object",
    },
}
# OpenBLAS would start threads when it is loaded, and before the filter is in place it could.
ONE_THREAD: Final = ("MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def stand(name: str, folder: Path) -> None:
    """Put a package in place without running its `__init__`."""
    found = spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
    if found is None or found.loader is None:
        raise ImportError(name)
    package, complete = module_from_spec(found), found.loader.exec_module

    def look(attribute: str) -> object:
        home = HOMES[name].get(attribute)
        if home is not None:
            return getattr(import_module(f"{name}.{home}"), attribute)
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        del package.__getattr__
        complete(package)
        return getattr(package, attribute)

    package.__getattr__ = look  # type: ignore[method-assign] # a module's own, by PEP 562
    sys.modules[name] = package


def main(folder: Path, paths: list[str]) -> None:
    """Import what a confined process needs, and run it."""
    sys.path[:0] = paths
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    for name in HOMES:
        stand(name, folder / name.rpartition(".")[2])
    sys.modules["echoic.codegen.library"] = import_module("echoic.eager.without_llvm")
    import_module("echoic.eager.inside").main()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
