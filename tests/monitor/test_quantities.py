"""How much, as people say it."""

import pytest

from echoic.monitor import bytes_text, percentage


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.50 KB"), (-2e6, "-2.00 MB"), (5e15, "5000.00 TB")],
)
def test_bytes_are_said_with_a_unit(count: float, text: str) -> None:
    assert bytes_text(count) == text


def test_a_share_is_said_in_percent_and_none_is_nothing() -> None:
    assert (percentage(0.125), percentage(None)) == ("12.5 %", "")
