"""Formats by token: what this process knows how to read.

A token is 64 bits of a hash, so two honest types never share one, but a hostile peer may try; a token whose
descriptor differs from the known one is refused rather than replaced.
"""

from typing import Final

from echoic.errors import LimitExceededError, MalformedFormatError, UnknownFormatError
from echoic.formats import descriptor
from echoic.formats.format import Format
from echoic.formats.limits import REGISTRY_FIELDS_MAX, REGISTRY_FORMATS_MAX

__all__ = ["Registry"]


class Registry:
    """A bounded table of formats."""

    def __init__(self, *, formats_max: int = REGISTRY_FORMATS_MAX) -> None:
        self._formats: dict[int, Format] = {}
        self._formats_max = formats_max
        self._fields = 0
        self.find: Final = self._formats.get
        """Return the format a token names, or None: `get` for the path on which nothing may be spent."""

    def add(self, format: Format) -> Format:
        """Enter a format; the one entered first is returned when it is there already.

        Raises:
            MalformedFormatError: Another format has the same token.
            LimitExceededError: The registry is full.
        """
        known = self._formats.get(format.token)
        if known is None:
            if len(self._formats) >= self._formats_max:
                raise LimitExceededError(
                    f"cannot add `{format.name}`: {len(self._formats)} formats are known, limit is {self._formats_max}"
                )
            if self._fields + format.fields_total > REGISTRY_FIELDS_MAX:
                raise LimitExceededError(
                    f"cannot add `{format.name}` of {format.fields_total} fields: {self._fields} are known, limit is "
                    f"{REGISTRY_FIELDS_MAX}"
                )
            self._fields += format.fields_total
            self._formats[format.token] = known = format
        elif known != format:
            raise MalformedFormatError(f"`{format.name}` and `{known.name}` have the same token {format.token:016x}")
        return known

    def add_descriptor(self, data: bytes) -> Format:
        """Enter a format by its descriptor; a known one is not parsed again.

        Raises:
            MalformedFormatError: The bytes are not a canonical descriptor.
            LimitExceededError: They are too long, or the registry is full.
        """
        known = self._formats.get(descriptor.token(data))
        return known if known is not None and known.descriptor == data else self.add(Format.from_descriptor(data))

    def get(self, token: int) -> Format:
        """Return the format a token names.

        Raises:
            UnknownFormatError: It was never described to this registry.
        """
        known = self._formats.get(token)
        if known is None:
            raise UnknownFormatError(f"no format with token {token:016x} was described, {len(self._formats)} are known")
        return known

    def __len__(self) -> int:
        return len(self._formats)

    def __contains__(self, token: object) -> bool:
        return token in self._formats
