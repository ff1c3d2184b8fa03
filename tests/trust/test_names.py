"""Names: one rule for keys, certificates, tokens and lists of rights."""

import pytest

from echoic.errors import LocalError
from echoic.trust import check_name, is_name


@pytest.mark.parametrize("name", ["a", "alice", "alice@lab.example.org", "A-1_b", "_x", "9", "a" * 64])
def test_a_name_is_taken(name: str) -> None:
    check_name(name)
    assert is_name(name)


@pytest.mark.parametrize("name", ["", ".a", "-a", "@a", "a/b", "a b", "a:b", "a\n", "a\0", "é", "*", "a" * 65, "٣"])
def test_what_is_no_name_is_refused(name: str) -> None:
    assert not is_name(name)
    with pytest.raises(LocalError, match="a key's name has at most 64 letters"):
        check_name(name, "a key's")
