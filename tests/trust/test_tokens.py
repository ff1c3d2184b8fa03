"""Tokens: read as signed, refused when a letter differs, and no text makes the reader fail otherwise."""

import base64

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import LocalError, RefusedError
from echoic.trust import ALL_RIGHTS, Claims, SigningKey, new_token_id, read_token, sign_token
from echoic.trust.tokens import TOKEN_LETTERS_MAX, VERSION

ALICE, BOB = (SigningKey(Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)) for number in (1, 2))
NOW = 1_700_000_000
CLAIMS = Claims("alice", ("subscribe",), ("trades/*",), NOW - 10, NOW + 10, "1234")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \0é"

names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.@\-]{0,63}", fullmatch=True, alphabet=st.characters(codec="ascii"))
patterns = st.text(st.characters(codec="utf-8").filter(str.isprintable), min_size=1, max_size=30)
claims = st.builds(
    Claims,
    who=names,
    rights=st.lists(st.sampled_from(ALL_RIGHTS), min_size=1, unique=True).map(tuple),
    channels=st.lists(patterns, min_size=1, max_size=5).map(tuple),
    not_before=st.integers(0, NOW),
    expires=st.integers(NOW + 1, 2**40 - 1),
    id=names,
)


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(payload: bytes, key: SigningKey = ALICE) -> str:
    """Any bytes as the claims of a token that is otherwise in order."""
    body = f"{VERSION}.{b64(payload)}"
    return f"{body}.{b64(key.sign(body.encode()))}"


@given(claims)
def test_what_was_signed_is_read(said: Claims) -> None:
    token = sign_token(ALICE, said)
    assert read_token(token, [BOB.public, ALICE.public], NOW) == said
    assert read_token(token, [ALICE.public], NOW, revoked={"another"}) == said


@given(claims, st.data())
def test_a_token_with_any_letter_changed_is_refused(said: Claims, data: st.DataObject) -> None:
    token = sign_token(ALICE, said)
    place = data.draw(st.integers(0, len(token)))
    other = data.draw(
        st.sampled_from(
            [
                *(token[:place] + letter + token[place + 1 :] for letter in LETTERS),
                *(token[:place] + letter + token[place:] for letter in LETTERS),
                token[:place],
                token[place:],
                token[:place] + token[place + 1 :],
            ]
        )
    )
    if other != token:
        with pytest.raises(RefusedError, match=r"^the token is refused: "):
            read_token(other, [ALICE.public], NOW)


@given(claims, claims)
def test_the_parts_of_two_tokens_make_no_third(one: Claims, other: Claims) -> None:
    if one == other:
        return
    spliced = ".".join(sign_token(ALICE, one).split(".")[:2] + sign_token(ALICE, other).split(".")[2:])
    with pytest.raises(RefusedError, match="none of the keys"):
        read_token(spliced, [ALICE.public], NOW)


@given(st.one_of(st.text(), st.text(LETTERS), st.text(LETTERS).map(lambda text: f"{VERSION}.{text}.{b64(bytes(64))}")))
def test_no_text_makes_the_reader_fail_otherwise(text: str) -> None:
    with pytest.raises(RefusedError, match=r"^the token is refused: "):
        read_token(text, [ALICE.public, "no key at all"], NOW)


@given(
    st.one_of(
        st.binary(min_size=1, max_size=2000),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*Claims.__struct_fields__, "x"]), inner),
            max_leaves=8,
        ).map(msgspec.json.encode),
        claims.map(lambda said: msgspec.json.encode(said) + b" "),
    )
)
def test_an_issuer_can_sign_nothing_that_makes_the_reader_fail_otherwise(payload: bytes) -> None:
    with pytest.raises(RefusedError, match=r"^the token is refused: "):
        read_token(signed(payload), [ALICE.public], NOW)


@pytest.mark.parametrize("payload", [b"[" * 5000, b'{"x":' * 1200, b'{"who":"' + b"a" * 5000, b"1" * 5000])
def test_deep_and_long_claims_are_refused(payload: bytes) -> None:
    with pytest.raises(RefusedError):
        read_token(signed(payload), [ALICE.public], NOW)


def test_size_is_checked_before_anything_is_decoded() -> None:
    with pytest.raises(RefusedError, match=f"limit is {TOKEN_LETTERS_MAX}"):
        read_token(signed(bytes(TOKEN_LETTERS_MAX)), [ALICE.public], NOW)


@pytest.mark.parametrize(
    ("now", "issuers", "revoked", "why"),
    [
        (NOW - 11, [ALICE.public], (), "it holds from"),
        (NOW + 10, [ALICE.public], (), "it has expired at"),
        (NOW, [BOB.public], (), "none of the keys"),
        (NOW, [], (), "none of the keys"),
        (NOW, [ALICE.public], ("1234",), "it is revoked, its id is 1234"),
    ],
)
def test_a_token_holds_for_a_time_by_an_issuer_until_it_is_revoked(
    now: float, issuers: list[str], revoked: tuple[str, ...], why: str
) -> None:
    token = sign_token(ALICE, CLAIMS)
    assert read_token(token, [ALICE.public], NOW) == CLAIMS
    with pytest.raises(RefusedError, match=why):
        read_token(token, issuers, now, revoked)


@pytest.mark.parametrize(
    "change",
    [
        {"who": "a b"},
        {"who": ""},
        {"id": "../x"},
        {"rights": ()},
        {"rights": ("fly",)},
        {"rights": ("admin", "admin")},
        {"channels": ()},
        {"channels": ("a",) * 65},
        {"channels": ("a\nb",)},
        {"channels": ("a" * 257,)},
        {"not_before": -1},
        {"expires": CLAIMS.not_before},
        {"expires": 2**40},
    ],
)
def test_claims_that_nobody_would_believe_are_neither_signed_nor_read(change: dict[str, object]) -> None:
    said = msgspec.structs.replace(CLAIMS, **change)
    with pytest.raises(LocalError, match="cannot sign a token"):
        sign_token(ALICE, said)
    with pytest.raises(RefusedError, match=r"^the token is refused: "):
        read_token(signed(msgspec.json.encode(said)), [ALICE.public], NOW)


def test_what_else_the_key_has_signed_is_no_token() -> None:
    """The version is part of what is signed."""
    payload = msgspec.json.encode(CLAIMS)
    text = f"{VERSION}.{b64(payload)}.{b64(ALICE.sign(payload))}"
    with pytest.raises(RefusedError, match="none of the keys"):
        read_token(text, [ALICE.public], NOW)


def test_every_token_has_an_id_of_its_own() -> None:
    assert len({new_token_id() for _ in range(100)}) == 100
