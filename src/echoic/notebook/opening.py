"""How a widget is made, and what is said where that cannot be."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from echoic.errors import LocalError
from echoic.hub import Channel
from echoic.notebook.views import view_of

if TYPE_CHECKING:
    from echoic.notebook.widget import LiveWidget

__all__ = ["live"]

SECONDS_MAX: Final = 3600.0
POINTS_PER_SECOND_MAX: Final = 1000.0


def live(
    channel: Channel, fields: str | Sequence[str] | None, seconds: float, points_per_second: float
) -> "LiveWidget":
    """Return a widget that shows events of a channel; `Channel.live` says what each argument means.

    Raises:
        LocalError: anywidget is not installed, or a number is out of its range.
        FormatError: A field cannot be shown.
    """
    _check("seconds", seconds, SECONDS_MAX)
    _check("points_per_second", points_per_second, POINTS_PER_SECOND_MAX)
    try:
        from echoic.notebook.widget import LiveWidget
    except ModuleNotFoundError as error:
        raise LocalError(f"a live view needs {error.name}, try: pip install 'echoic[jupyter]'") from error
    return LiveWidget(channel, view_of(channel.format, fields), seconds, points_per_second)


def _check(name: str, value: float, most: float) -> None:
    if not (math.isfinite(value) and 0 < value <= most):
        raise LocalError(f"expected `{name}` above 0 and up to {most:g}, got {value:g}")
