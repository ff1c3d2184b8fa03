"""Edge: touches sockets and threads. Answers WHAT people see: a page in the browser, fed by a WebSocket.

The browser is a sink like any other: what it draws is derived at the sources, so that only what fits on a screen ever
leaves them. `Viewer` serves the page; `guard` decides who may have it.
"""

from echoic.viewer.server import Viewer, ViewerStatistics, kept_token

__all__ = ["Viewer", "ViewerStatistics", "kept_token"]
