"""How much, as people say it: `1.50 MB`, `12.5 %`."""

from typing import Final

__all__ = ["bytes_text", "percentage"]

UNITS: Final = ("B", "KB", "MB", "GB", "TB")


def bytes_text(count: float) -> str:
    """Return a number of bytes as people say it."""
    unit = 0
    while abs(count) >= 1000 and unit < len(UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.0f} B" if unit == 0 else f"{count:.2f} {UNITS[unit]}"


def percentage(share: float | None) -> str:
    """Return a share as people say it."""
    return "" if share is None else f"{100 * share:.1f} %"
