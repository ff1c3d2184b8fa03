"""Tokens are for one part of one value and for one tool."""

import itertools

from echoic.toolbus.references.tokens import KEY_BYTES, is_token_for, token_for

KEY = bytes(range(KEY_BYTES))


def test_a_token_has_the_documented_bytes() -> None:
    token = token_for(KEY, owner=3, variable=17, path=(0, 2), asker=4, epoch=9)
    assert token.hex() == "1babdcab030e9e4dc0c61b6369f55774f2c0be786d3c10a38a8afed2733b6e13"
    assert len(token) == 32


def test_t22_a_token_is_good_for_nothing_else() -> None:
    keys = (KEY, bytes(KEY_BYTES))
    paths = ((), (0,), (0, 0), (1, 0))
    requests = [
        (key, owner, variable, path, asker, epoch)
        for key, owner, variable, path, asker, epoch in itertools.product(keys, (1, 2), (1, 2), paths, (1, 2), (0, 1))
    ]
    tokens = [
        token_for(key, owner=owner, variable=variable, path=path, asker=asker, epoch=epoch)
        for key, owner, variable, path, asker, epoch in requests
    ]
    for made, token in enumerate(tokens):
        for checked, (key, owner, variable, path, asker, epoch) in enumerate(requests):
            good = is_token_for(token, key, owner=owner, variable=variable, path=path, asker=asker, epoch=epoch)
            assert good is (made == checked)


def test_what_is_no_token_is_not_taken_for_one() -> None:
    for wrong in (b"", b"x", bytes(32), bytes(1000)):
        assert not is_token_for(wrong, KEY, owner=3, variable=17, path=(), asker=4, epoch=9)
