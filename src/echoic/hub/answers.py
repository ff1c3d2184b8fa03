"""What a request to another hub comes to: the reply that was expected, or the error that a refusal stands for.

A link can begin afresh between a request and its answer. Then what may be asked twice is asked again; whatever changes
something is not, since nobody knows whether it was done.
"""

import threading
from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

from echoic.channels import Answer, Ask, Browse, Concentrator, Describe, Gone, Message, Refused, Report, Resolve
from echoic.errors import (
    AddressError,
    ChannelExistsError,
    ChannelNotFoundError,
    DeniedError,
    JournalError,
    RefusedError,
    UnreachableError,
)

__all__ = ["READING", "Request", "answer_of", "reply_to"]

Request: TypeAlias = Callable[[Concentrator, Answer], None]
READING: Final = (Ask, Browse, Describe, Report, Resolve)
"""Requests that change nothing."""
REQUEST_SECONDS: Final = 15.0
AGAIN_MAX: Final = 2

NAMED_ERRORS: Final = {
    kind.__name__: kind
    for kind in (AddressError, ChannelExistsError, ChannelNotFoundError, DeniedError, JournalError, UnreachableError)
}

M = TypeVar("M")


def reply_to(request: Request, do: Callable[[Callable[[Concentrator], None]], None], *, again: bool) -> Message:
    """Make a request and wait for its reply.

    Args:
        request: Asks something, and says who takes the answer.
        do: Lets the concentrator do something.
        again: Whether it may be made once more if the link began afresh.

    Raises:
        UnreachableError: There is no reply in time.
    """
    reply = _one_reply(request, do)
    for _ in range(AGAIN_MAX if again else 0):
        if not isinstance(reply, Gone):
            break
        reply = _one_reply(request, do)
    return reply


def _one_reply(request: Request, do: Callable[[Callable[[Concentrator], None]], None]) -> Message:
    replies: list[Message] = []
    answered = threading.Event()

    def answer(reply: Message) -> None:
        replies.append(reply)
        answered.set()

    do(lambda core: request(core, answer))
    if not answered.wait(REQUEST_SECONDS):
        raise UnreachableError(f"no answer within {REQUEST_SECONDS:.0f} s")
    return replies[0]


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
