"""Generated code that is linked into the process, and objects that are remembered.

Code is written as LLVM assembly text (building it through an object model costs more than parsing it), checked,
optimised, compiled to an object and linked by a just-in-time linker of its own (`llvm`): a shared one keeps about 8 KB
for every library that was dropped, and most code here lives as long as a subscription.

Objects are remembered by the text they were made of, so code that is asked for again is only linked (0.6 ms).

Most programs with a hub never compile anything, so LLVM is loaded for the first code that is asked for: that saves the
others a tenth of the processor time that it takes to start them.
"""

import hashlib
from typing import Any, Final, Literal, TypeAlias

__all__ = ["Library", "Tier", "compile_library"]

Tier: TypeAlias = Literal["quick", "light", "full"]
"""How much is optimised (`llvm`)."""

OBJECT_BYTES_MAX: Final = 16 << 20

_objects: Final[dict[bytes, bytes]] = {}


class Library:
    """Linked code; it stays in memory as long as this object."""

    __slots__ = ("_linker", "_tracker")

    def __init__(self, linker: Any, tracker: Any) -> None:  # noqa: ANN401 - llvmlite has no types
        self._linker = linker
        self._tracker = tracker

    def address(self, symbol: str) -> int:
        """Return where an exported function lies."""
        return int(self._tracker[symbol])


def compile_library(text: str, exports: tuple[str, ...], *, python: bool = False, tier: Tier = "full") -> Library:
    """Compile and link a module.

    Args:
        text: LLVM assembly.
        exports: The functions whose addresses will be asked for.
        python: Whether the module may call CPython.
        tier: How much is optimised.

    Raises:
        CodegenError: The text is not valid, or declares a symbol that is not on the whitelist.
    """
    from echoic.codegen.llvm import compile_object, link_object

    key = hashlib.sha256(repr((text, exports, python, tier)).encode()).digest()
    code = _objects.pop(key, None)
    if code is None:
        code = compile_object(text, exports, python=python, tier=tier)
    _remember(key, code)
    return Library(*link_object(code, exports, tier))


def _remember(key: bytes, code: bytes) -> None:
    """Keep an object as the youngest of all, and forget the oldest ones when they are too many.

    Several threads may do so at once; each step is one operation on the dictionary, so the worst is an object less.
    """
    _objects[key] = code
    kept = list(_objects.items())
    excess = sum(len(each) for _, each in kept) - OBJECT_BYTES_MAX
    for oldest, dropped in kept:
        if excess <= 0:
            break
        _objects.pop(oldest, None)
        excess -= len(dropped)
