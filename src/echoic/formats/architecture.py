"""The machines whose C layouts are known by name.

Natural data representation needs the layout of *other* machines too: to describe what they send, to test against
them, to write a file for them. Three numbers say almost everything about a C ABI: the byte order, the largest
alignment a member can ask for (4 on 32-bit x86 Unix, 2 on m68k, 8 nearly everywhere else) and the pointer size.
A fourth is a curiosity of the old ARM ABI, which rounds every struct up to words.

    >>> print(Format.of(Trade).on(ARCHITECTURES["sparc32"]).describe())
"""

import struct
import sys
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from echoic.formats.fields import Slots

__all__ = ["ARCHITECTURES", "NATIVE", "Architecture", "ByteOrder"]

ByteOrder: TypeAlias = Literal["little", "big"]


@dataclass(frozen=True, slots=True)
class Architecture:
    """A machine and its C ABI, as far as the layout of a struct depends on them."""

    name: str
    byte_order: ByteOrder
    alignment_max: int = 8
    pointer_bytes: int = 8
    record_alignment_min: int = 1
    slots: Slots = Slots.SPAN

    def with_pointers(self) -> "Architecture":
        """Return this machine with C pointers as slots, as a C program lays its own structs out."""
        return replace(self, slots=Slots.POINTER32 if self.pointer_bytes == 4 else Slots.POINTER64)


ARCHITECTURES: Final[dict[str, Architecture]] = {
    architecture.name: architecture
    for architecture in (
        Architecture("x86_64", "little"),
        Architecture("aarch64", "little"),
        Architecture("i386", "little", alignment_max=4, pointer_bytes=4),
        Architecture("windows32", "little", pointer_bytes=4),
        Architecture("windows64", "little"),
        Architecture("arm", "little", pointer_bytes=4),
        Architecture("arm-oabi", "little", alignment_max=4, pointer_bytes=4, record_alignment_min=4),
        Architecture("sparc32", "big", pointer_bytes=4),
        Architecture("sparc64", "big"),
        Architecture("ppc32", "big", pointer_bytes=4),
        Architecture("ppc64", "big"),
        Architecture("s390x", "big"),
        Architecture("m68k", "big", alignment_max=2, pointer_bytes=4),
        Architecture("packed", "little", alignment_max=1),
    )
}

NATIVE: Final = Architecture(
    "native",
    "little" if sys.byteorder == "little" else "big",
    alignment_max=struct.calcsize("cd") - struct.calcsize("d"),
    pointer_bytes=struct.calcsize("P"),
)
