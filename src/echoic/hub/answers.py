"""What a request to another hub comes to: the reply that was expected, or the error that a refusal stands for."""

from typing import Final, TypeVar

from echoic.channels import Message, Refused
from echoic.errors import (
    AddressError,
    ChannelExistsError,
    ChannelNotFoundError,
    DeniedError,
    JournalError,
    RefusedError,
    UnreachableError,
)

__all__ = ["answer_of"]

NAMED_ERRORS: Final = {
    kind.__name__: kind
    for kind in (AddressError, ChannelExistsError, ChannelNotFoundError, DeniedError, JournalError, UnreachableError)
}

M = TypeVar("M")


def answer_of(reply: Message, expected: type[M]) -> M:
    """Return a reply if it is what was expected.

    Raises:
        AddressError, ChannelExistsError, ChannelNotFoundError, DeniedError, JournalError, RefusedError,
            UnreachableError: The peer did not do what it was asked, and says why.
    """
    if isinstance(reply, Refused):
        raise NAMED_ERRORS.get(reply.kind, RefusedError)(reply.reason)
    if not isinstance(reply, expected):
        raise RefusedError(f"expected {expected.__name__}, got {type(reply).__name__}")
    return reply
