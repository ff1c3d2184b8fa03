"""Tokens: who may do what on which channels, and until when, signed; for those who have no certificate.

A browser cannot be asked for a certificate without a dialogue that nobody understands, and a tool may be a shell
script. They show a token, which is a line of text:

    echoic1.eyJ3aG8iOiJhbGljZSIs...fQ.9Yl3bQ...Cg
    ------- ------------------------ ------------
    version claims, JSON             signature, Ed25519

Both parts are base64url without padding, and each token has one spelling: a text that differs in a single letter is
another token, and nobody has signed it. The signature is over the version and the claims, so that no other thing this
key has signed can be taken for a token.

A JSON Web Token would do the same, and has a header that says which algorithm to check it by. That has been its
weakness since the beginning: whoever forges the token chooses the algorithm. Here there is one.

Whoever reads a token knows the keys that may issue one. Nothing of a token is believed, nor decoded, before its
signature was checked; its size is checked first of all.
"""

import base64
import binascii
import secrets
from collections.abc import Collection
from typing import Final

import msgspec

from echoic.errors import LocalError, RefusedError
from echoic.trust.keys import SIGNATURE_BYTES, SigningKey, verify
from echoic.trust.names import check_bearer, is_name

__all__ = ["ALL_RIGHTS", "TOKEN_LETTERS_MAX", "Claims", "is_signed", "new_token_id", "read_token", "sign_token"]

VERSION: Final = "echoic1"
TOKEN_LETTERS_MAX: Final = 8192
ALL_RIGHTS: Final = ("publish", "subscribe", "derive", "steer", "modulate", "admin")
CHANNELS_MAX: Final = 64
PATTERN_LETTERS_MAX: Final = 256
SECONDS_MAX: Final = 2**40


class Claims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a token says of whoever shows it."""

    who: str
    """Its name, as in a certificate (`trust.names`)."""
    rights: tuple[str, ...]
    """What it may do, of `ALL_RIGHTS`."""
    channels: tuple[str, ...]
    """On which channels, as patterns."""
    not_before: int
    """From when on, in seconds of the Unix clock."""
    expires: int
    """From when on no longer."""
    id: str
    """Tells this token from others, so that it can be revoked."""


def is_signed(text: str) -> bool:
    """Return whether a text says that it is a token which somebody has signed, other than a secret of one program."""
    return text.startswith(f"{VERSION}.")


def new_token_id() -> str:
    """Return an id that no other token has."""
    return secrets.token_hex(12)


def sign_token(key: SigningKey, claims: Claims) -> str:
    """Return the token that says this.

    Raises:
        LocalError: The claims are none that anybody would believe, or too many.
    """
    try:
        check_bearer(claims.who, "its")
    except LocalError as error:
        raise LocalError(f"cannot sign a token: {error}") from error
    wrong = _wrong_with(claims)
    if wrong:
        raise LocalError(f"cannot sign a token: {wrong}")
    body = f"{VERSION}.{_letters(msgspec.json.encode(claims))}"
    token = f"{body}.{_letters(key.sign(body.encode('ascii')))}"
    if len(token) > TOKEN_LETTERS_MAX:
        raise LocalError(f"cannot sign a token of {len(token)} letters, limit is {TOKEN_LETTERS_MAX}")
    return token


def read_token(text: str, issuers: Collection[str], now: float, revoked: Collection[str] = ()) -> Claims:
    """Return what a token says, if one of the issuers has signed it and it holds at this time.

    Args:
        text: What was shown.
        issuers: The public keys that may sign tokens.
        now: Seconds of the Unix clock.
        revoked: The ids of tokens that hold no more.

    Raises:
        RefusedError: It does not, and why: `the token is refused: ...`. Nothing of the token is in the message but the
            times and the id that its issuer has signed.
    """
    body, payload, signature = _parts(text)
    if not any(_signed(issuer, body, signature) for issuer in issuers):
        raise _refused("none of the keys that may issue one has signed it")
    try:
        claims = msgspec.json.decode(payload, type=Claims)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _refused("what was signed are no claims") from error
    if msgspec.json.encode(claims) != payload:
        raise _refused("what was signed is another spelling of its claims")
    wrong = _wrong_with(claims)
    if wrong:
        raise _refused(wrong)
    if now < claims.not_before:
        raise _refused(f"it holds from {claims.not_before} on, and it is {int(now)}")
    if now >= claims.expires:
        raise _refused(f"it has expired at {claims.expires}, and it is {int(now)}")
    if claims.id in revoked:
        raise _refused(f"it is revoked, its id is {claims.id}")
    return claims


def _parts(text: str) -> tuple[bytes, bytes, bytes]:
    """Return of a text what is signed, the claims in it, and the signature.

    Raises:
        RefusedError: It does not look like a token.
    """
    if len(text) > TOKEN_LETTERS_MAX:
        raise _refused(f"it has {len(text)} letters, limit is {TOKEN_LETTERS_MAX}")
    parts = text.split(".") if text.isascii() else []
    if len(parts) != 3 or parts[0] != VERSION:
        raise _refused(f"expected {VERSION}.CLAIMS.SIGNATURE, got something else")
    payload, signature = _bytes(parts[1]), _bytes(parts[2])
    if len(signature) != SIGNATURE_BYTES:
        raise _refused(f"its signature has {len(signature)} bytes, expected {SIGNATURE_BYTES}")
    return f"{parts[0]}.{parts[1]}".encode("ascii"), payload, signature


def _signed(issuer: str, body: bytes, signature: bytes) -> bool:
    try:
        verify(issuer, body, signature)
    except RefusedError:
        return False
    return True


def _wrong_with(claims: Claims) -> str:
    """Return what is wrong with claims, "" if nothing is."""
    if not is_name(claims.who) or not is_name(claims.id):
        return "`who` and `id` must be names"
    if not claims.rights or len(set(claims.rights)) != len(claims.rights) or set(claims.rights) - set(ALL_RIGHTS):
        return f"its rights must be some of {', '.join(ALL_RIGHTS)}, each once"
    if not 1 <= len(claims.channels) <= CHANNELS_MAX:
        return f"it has {len(claims.channels)} patterns of channels, expected 1 to {CHANNELS_MAX}"
    if not all(0 < len(each) <= PATTERN_LETTERS_MAX and each.isprintable() for each in claims.channels):
        return f"a pattern of channels has 1 to {PATTERN_LETTERS_MAX} letters that can be printed"
    if not 0 <= claims.not_before < claims.expires < SECONDS_MAX:
        return "it must expire after it begins to hold"
    return ""


def _letters(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _bytes(letters: str) -> bytes:
    """Return the bytes that letters of base64url stand for; each has one spelling.

    Raises:
        RefusedError: They stand for none.
    """
    try:
        data = base64.b64decode(letters + "=" * (-len(letters) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        data = b""
    if not data or _letters(data) != letters:
        raise _refused("it is not written in base64url")
    return data


def _refused(why: str) -> RefusedError:
    return RefusedError(f"the token is refused: {why}")
