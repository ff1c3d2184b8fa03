"""What stands in the place of `echoic.codegen.library` in a confined process, where nothing is compiled.

LLVM takes 33 ms to import, much memory, and 50 ms for a first piece of code, which would be counted as the modulator's
time. Everything that compiles takes a CodegenError for "go on without", so that is what it gets.
"""

from typing import Literal, NoReturn, TypeAlias

from echoic.errors import CodegenError

__all__ = ["Library", "Tier", "compile_library"]

Tier: TypeAlias = Literal["quick", "light", "full"]


class Library:
    """Linked code, of which there is none."""

    def address(self, symbol: str) -> NoReturn:
        """Refuse.

        Raises:
            CodegenError: Always.
        """
        raise CodegenError(f"nothing is compiled in a confined process - at `{symbol}`")


def compile_library(_text: str, _exports: tuple[str, ...], **_how: object) -> Library:
    """Refuse.

    Raises:
        CodegenError: Always.
    """
    raise CodegenError("nothing is compiled in a confined process")
