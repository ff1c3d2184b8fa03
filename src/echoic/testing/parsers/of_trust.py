"""Parsers of who is who and may do what: tokens, files of rights."""

import base64
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Final

from echoic.rights import check_right, parse_rights
from echoic.testing.parsers.parser import Target
from echoic.testing.parsers.repairs import twist_json
from echoic.trust.keys import SigningKey
from echoic.trust.tokens import ALL_RIGHTS, Claims, read_token, sign_token

__all__ = ["RIGHTS", "TOKENS"]

NOW: Final = 1000.0


@cache
def _key() -> SigningKey:
    return SigningKey.generate()


def _feed_token(data: bytes) -> None:
    read_token(data.decode("utf-8", "replace"), [_key().public], NOW, ["revoked"])


def _token_seeds() -> Iterator[bytes]:
    for id in ("1", "revoked"):
        claims = Claims("alice", ALL_RIGHTS, ("trades.*", "wind"), 0, 2000, id)
        yield sign_token(_key(), claims).encode()


def _sign_again(data: bytes, draw: Random) -> bytes:
    """Return a token whose claims were changed, signed by who may sign it."""
    version, _, rest = data.partition(b".")
    body = rest.partition(b".")[0]
    try:
        claims = base64.urlsafe_b64decode(body + b"=" * (-len(body) % 4))
    except ValueError:
        claims = body
    if draw.random() < 0.7:
        claims = twist_json(claims, draw)
    signed = (b"echoic1" if draw.random() < 0.9 else version) + b"." + _letters(claims)
    return signed + b"." + _letters(_key().sign(signed))


def _letters(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _feed_rights(data: bytes) -> None:
    rights = parse_rights(data.decode("utf-8", "replace"))
    for right in ALL_RIGHTS:
        rights.decide("alice", check_right(right), "trades.eu", ["trades"])


def _rights_seeds() -> Iterator[bytes]:
    yield b"# ours\nallow alice publish,admin trades\ndeny desk-* * *\n"
    yield b"allow * subscribe,derive,steer,modulate lab/*/wind # all\n"


TOKENS: Final = Target(_feed_token, _token_seeds, _sign_again)
RIGHTS: Final = Target(_feed_rights, _rights_seeds)
