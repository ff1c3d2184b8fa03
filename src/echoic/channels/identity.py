"""What a channel is called, and where it can be asked for.

A channel's *id* contains the contact of the hub that created it (ECho, section 2.1): `echoic://127.0.0.1:7401/trades`.
Its *name* alone means something only to a name server, which knows the id. Names are paths of words, so that people can
group them: `lab/wind`, `orders.eu`.
"""

import re
from dataclasses import dataclass
from typing import Final

from echoic.errors import AddressError

__all__ = ["ChannelId", "check_channel_name"]

SCHEME: Final = "echoic://"
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*(/[A-Za-z0-9_][A-Za-z0-9_.\-]*)*\Z", re.ASCII)
NAME_BYTES_MAX: Final = 200
ADDRESS: Final = re.compile(r"[^\s/]+:[0-9]{1,5}\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class ChannelId:
    """The address of the hub that manages a channel, and the channel's name there."""

    address: str
    name: str

    @classmethod
    def parse(cls, text: str) -> "ChannelId":
        """Return the id that a text spells.

        Raises:
            AddressError: It is not a channel id.
        """
        address, slash, name = text.removeprefix(SCHEME).partition("/")
        if not text.startswith(SCHEME) or not slash:
            raise AddressError(f"expected a channel id like {SCHEME}127.0.0.1:7401/trades, got `{text}`")
        if not ADDRESS.match(address):
            raise AddressError(f"expected an address like 127.0.0.1:7401, got `{address}` - at `{text}`")
        check_channel_name(name)
        return cls(address, name)

    def __str__(self) -> str:
        return f"{SCHEME}{self.address}/{self.name}"


def check_channel_name(name: str) -> None:
    """Refuse what cannot be part of a channel id.

    Raises:
        AddressError: Naming the rule.
    """
    if len(name) > NAME_BYTES_MAX or not NAME.match(name):
        raise AddressError(
            f"a channel name has at most {NAME_BYTES_MAX} letters, digits, `_`, `-`, `.` and `/` between words, "
            f"got {name[:60]!r}"
        )
