"""What a widget shows of a channel, and what the sources have to send for it. Pure.

a 2-D array                  a heat map       `reduction.window`     one Window for each picture
numbers                      a chart          `reduction.chart`      one Envelope for each point
anything else                the last events  `reduction.thinning`   a few events a second
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from echoic.errors import FormatError
from echoic.formats import Format
from echoic.monitor.reduction import FieldShape, Reduction, chart, shapes, thinning, window

__all__ = ["View", "view_of"]

SERIES_DEFAULT: Final = 6
COLUMNS_MAX: Final = 400
ROWS_MAX: Final = 200


class View(msgspec.Struct, frozen=True):
    """What is shown, and how sources reduce their events for it; without a reduction these come as they are."""

    kind: Literal["chart", "field", "events"]
    fields: tuple[str, ...]
    reduction: Reduction | None


def view_of(format: Format | None, fields: str | Sequence[str] | None) -> View:
    """Return how to show events of a type.

    Args:
        format: The type; None for events of any.
        fields: Paths of what to show; `Channel.live` says what is chosen without any.

    Raises:
        FormatError: A field is not there, or can be drawn neither as a line nor as a heat map.
    """
    if format is None:
        if fields:
            raise FormatError("the channel has no type, so its events can only be shown as they are")
        return View("events", (), None)
    known = shapes(format)
    if fields is None:
        return _chosen(format, known)
    wanted = (fields,) if isinstance(fields, str) else tuple(fields)
    planes = {shape.path for shape in known if shape.plane}
    if len(wanted) == 1 and wanted[0] in planes:
        return _field(format, wanted[0])
    return View("chart", wanted, chart(format, wanted))


def _chosen(format: Format, known: Sequence[FieldShape]) -> View:
    """Return what is shown when nobody has said what."""
    planes = [shape for shape in known if shape.plane]
    series = [shape.path for shape in known if shape.series][:SERIES_DEFAULT]
    for plane in planes:
        if len(plane.shape) == 2:
            return _field(format, plane.path)
    if series:
        return View("chart", tuple(series), chart(format, series))
    if planes:
        return _field(format, planes[0].path)
    return View("events", (), thinning())


def _field(format: Format, path: str) -> View:
    return View("field", (path,), window(format, path, COLUMNS_MAX, ROWS_MAX))
