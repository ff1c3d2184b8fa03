"""Tokens: the bus's word that a tool may have a value. This module is pure.

A tool that serves values directly is asked by programs that it does not know. Whoever asks shows a token, which the bus
made with a key that only it and the owner have, and which the bus gave to the tool that was told the reference:

    token = HMAC-SHA256(key of the owner, owner, epoch, variable, asker, path)

So a token is for one part of one value and for one tool; it cannot be made from another, and it is worth nothing when
the value is gone. The owner keeps no list of tokens: it computes what the right one would be and compares, in a time
that does not depend on where they differ. Every field has a fixed length and the path comes last, so that no two
requests are the same bytes.
"""

import hmac
import struct
from typing import Final

__all__ = ["KEY_BYTES", "is_token_for", "resumption_token", "token_for"]

KEY_BYTES: Final = 32
FIELDS: Final = struct.Struct("<QQQQ")


def token_for(key: bytes, *, owner: int, variable: int, path: tuple[int, ...], asker: int, epoch: int) -> bytes:
    """Return what `asker` has to show to the owner for the part of a variable at a path."""
    request = FIELDS.pack(owner, epoch, variable, asker) + struct.pack(f"<{len(path)}Q", *path)
    return hmac.digest(key, request, "sha256")


def is_token_for(
    token: bytes, key: bytes, *, owner: int, variable: int, path: tuple[int, ...], asker: int, epoch: int
) -> bool:
    """Whether a token is the one that the bus gives for this."""
    right = token_for(key, owner=owner, variable=variable, path=path, asker=asker, epoch=epoch)
    return hmac.compare_digest(token, right)


def resumption_token(key: bytes, *, number: int, epoch: int) -> str:
    """Return what a tool has to show to the bus to be the one whose connection broke."""
    return hmac.digest(key, b"resume" + struct.pack("<QQ", number, epoch), "sha256").hex()
