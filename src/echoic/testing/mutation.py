"""Mutations: small damage to bytes that were right, of the kinds that parsers are known to stumble over."""

import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

__all__ = ["BOUNDARIES", "Mutator"]

BOUNDARIES: Final = (0, 1, 7, 8, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF8, 0xFFFFFFFF)


class Mutator:
    """Damages samples with a seeded generator, some of it with pieces of other samples."""

    def __init__(self, random: Random, samples: Sequence[bytes]) -> None:
        self._random = random
        self._samples = samples

    def damage(self, data: bytearray) -> None:
        """Change something, in place."""
        self._random.choice(self._mutations)(self, data)

    def damage_often(self, data: bytearray) -> None:
        """Change one thing, as a rule, or a few."""
        for _ in range(self._random.choice((1, 1, 1, 2, 4))):
            self.damage(data)

    def _flip_bit(self, data: bytearray) -> None:
        if data:
            data[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)

    def _set_byte(self, data: bytearray) -> None:
        if data:
            data[self._random.randrange(len(data))] = self._random.randrange(256)

    def _set_number(self, data: bytearray) -> None:
        """Put a boundary number where a u32 may stand, in either byte order."""
        if len(data) >= 4:
            at = self._random.randrange(0, len(data) - 3, 4)
            struct.pack_into(self._random.choice("<>") + "I", data, at, self._random.choice(BOUNDARIES))

    def _truncate(self, data: bytearray) -> None:
        del data[self._random.randrange(len(data) + 1) :]

    def _splice(self, data: bytearray) -> None:
        """Continue with a piece of another sample."""
        other = self._random.choice(self._samples)
        start = self._random.randrange(len(other) + 1)
        data[self._random.randrange(len(data) + 1) :] = other[start:]

    def _repeat(self, data: bytearray) -> None:
        if data:
            start = self._random.randrange(len(data))
            data[start:start] = data[start : start + self._random.randrange(1, 64)]

    _mutations: tuple[Callable[["Mutator", bytearray], None], ...] = (
        _flip_bit,
        _flip_bit,
        _set_byte,
        _set_number,
        _set_number,
        _truncate,
        _splice,
        _repeat,
    )
