"""Tokens that must be refused, and what reads tokens.

Whoever adds something that takes tokens adds a row to `READERS`.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from echoic.errors import RefusedError
from echoic.trust import Claims, Issuers, SigningKey, new_token_id, sign_token
from echoic.trust.authority import Authority

__all__ = ["READERS", "Reader", "bad_tokens", "token_problems"]

WHO: Final = "hidden-person"
CHANNEL: Final = "hidden-channel"

Reader: TypeAlias = Callable[[Path], Callable[[str], Claims]]
"""Takes the folder of an authority, and returns what takes a token: it returns its claims or raises RefusedError."""


def issuers(folder: Path) -> Callable[[str], Claims]:
    """Return what every door uses to read tokens."""
    known = Issuers(folder)
    return lambda text: known.read(text, time.time())


READERS: Final[dict[str, Reader]] = {"issuers": issuers}


def bad_tokens(authority: Authority) -> dict[str, str]:
    """Return tokens that nobody may take, by what is wrong with them."""
    key, now = SigningKey.load(authority.folder / "tokens.key"), int(time.time())
    revoked = authority.issue_token(WHO, ["subscribe"], [CHANNEL], 600)
    authority.revoke(WHO)
    good = sign_token(key, _claims(now - 60, now + 600))
    head, claims, signature = good.split(".")
    wider = sign_token(SigningKey.generate(), _claims(now - 60, now + 600)).split(".")[1]
    return {
        "revoked": revoked,
        "expired": sign_token(key, _claims(now - 600, now - 1)),
        "not yet valid": sign_token(key, _claims(now + 60, now + 600)),
        "forged": sign_token(SigningKey.generate(), _claims(now - 60, now + 600)),
        "other claims": f"{head}.{wider}.{signature}",
        "altered": f"{head}.{claims}.{signature[:-2]}{'AA' if signature[-2:] != 'AA' else 'BA'}",
        "of another version": good.replace("echoic1", "echoic2"),
        "unsigned": f"{head}.{claims}.",
        "none": "",
    }


def token_problems(authority: Authority, readers: Mapping[str, Reader] = READERS) -> Iterator[tuple[str, str]]:
    """Yield every cell with what is wrong in it, "" if nothing is."""
    tokens = bad_tokens(authority)
    for name, open_reader in readers.items():
        read = open_reader(authority.folder)
        for kind, text in tokens.items():
            yield f"{kind} token at {name}", _refusal_problem(read, text)
        yield f"token with a scope at {name}", _scope_problem(read, authority)


def _refusal_problem(read: Callable[[str], Claims], text: str) -> str:
    try:
        read(text)
    except RefusedError as error:
        told = [word for word in (WHO, CHANNEL) if word in str(error)]
        return f"the refusal tells {told}" if told else ""
    return "it was taken"


def _scope_problem(read: Callable[[str], Claims], authority: Authority) -> str:
    """Return what is wrong with a good token: it holds, and for no more than what it was signed for."""
    try:
        claims = read(authority.issue_token(WHO, ["subscribe"], [CHANNEL], 600))
    except RefusedError as error:
        return f"a good one was refused: {error}"
    said = (claims.who, claims.rights, claims.channels)
    return "" if said == (WHO, ("subscribe",), (CHANNEL,)) else f"it was read as {said}"


def _claims(begins: int, ends: int) -> Claims:
    return Claims(WHO, ("subscribe",), (CHANNEL,), begins, ends, new_token_id())
