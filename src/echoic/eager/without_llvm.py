"""What stands in the place of `echoic.codegen.llvm` in a confined process, where nothing is compiled.

LLVM takes 33 ms to import, much memory, and 50 ms for a first piece of code, which would be counted as the modulator's
time. Everything that compiles takes a CodegenError for "go on without", so that is what it gets.
"""

from typing import NoReturn

from echoic.errors import CodegenError

__all__ = ["compile_object", "link_object"]


def compile_object(_text: str, _exports: tuple[str, ...], **_how: object) -> NoReturn:
    """Refuse.

    Raises:
        CodegenError: Always.
    """
    raise CodegenError("nothing is compiled in a confined process")


def link_object(_code: bytes, _exports: tuple[str, ...], _tier: str) -> NoReturn:
    """Refuse.

    Raises:
        CodegenError: Always.
    """
    raise CodegenError("nothing is linked in a confined process")
