"""What tests of terms share."""

import pytest

from echoic.terms import Value
from tests.terms.values import deep, uncollected


@pytest.fixture(scope="module")
def million() -> Value:
    """Return a value of a million levels."""
    with uncollected():
        return deep(1_000_000)
