"""What the tests of values share: how many descriptors there are, and what lies in folders."""

from pathlib import Path

import pytest

from echoic.values import ValueStore

BUDGET_BYTES = 1000


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def encode_text(text: str) -> list[bytes]:
    """Return a text in two pieces, so that nobody can rely on one."""
    encoded = text.encode()
    return [encoded[:3], encoded[3:]]


def decode_text(pieces: object) -> str:
    assert isinstance(pieces, list | tuple)
    return b"".join(pieces).decode()


@pytest.fixture
def store(tmp_path: Path) -> ValueStore[str]:
    """Return a store of texts with a very small memory."""
    return ValueStore(encode=encode_text, decode=decode_text, budget_bytes=BUDGET_BYTES, spill=tmp_path)
