"""The widget: an anywidget whose picture is drawn by `live.mjs`, and fed by `Feed`.

    kernel                              comm                                  page
    Feed -> send(content, buffers)  ->  custom messages, binary buffers   ->  live.mjs draws on a canvas
    Feed.pause                      <-  {"type": "seen", view, seen}      <-  a view scrolls out of sight, or is closed

A kernel that is busy with a cell hears nothing from the page. So the feed runs from the start, and pauses when a view
has told that it is out of sight, or gone, and no other is in sight; what is heard late only makes it pause late.
"""

from pathlib import Path
from typing import Any, Final, Self

import anywidget
import ipywidgets  # type: ignore[import-untyped] # ships no types
import traitlets

from echoic.errors import LocalError
from echoic.formats import Kind
from echoic.hub import Channel
from echoic.notebook.feed import Feed
from echoic.notebook.views import View

__all__ = ["LiveWidget"]

VIEWS_MAX: Final = 64
VIEW_CHARACTERS_MAX: Final = 64
SLIDER_STEPS: Final = 200


class LiveWidget(anywidget.AnyWidget):
    """Shows a channel while its events come. Made by `Channel.live`."""

    _esm = Path(__file__).with_name("live.mjs")
    kind = traitlets.Unicode().tag(sync=True)
    channel = traitlets.Unicode().tag(sync=True)
    fields = traitlets.List(traitlets.Unicode()).tag(sync=True)
    seconds = traitlets.Float().tag(sync=True)
    ended = traitlets.Bool(False).tag(sync=True)

    def __init__(self, channel: Channel, view: View, seconds: float, points_per_second: float) -> None:
        super().__init__(kind=view.kind, channel=channel.name, fields=list(view.fields), seconds=seconds)
        self._channel = channel
        self._view = view
        self._views: set[str] = set()
        self.on_msg(lambda _, content, __: self.hear(content))
        self._feed = Feed(channel, view, points_per_second, self.send)

    @property
    def code(self) -> str:
        """The E-Code that runs inside the sources for what is shown; "" if events come as they are."""
        return self._view.reduction.code if self._view.reduction is not None else ""

    @property
    def running(self) -> bool:
        """Whether events are subscribed to: not while all views are out of sight, and not when it was stopped."""
        return self._feed.running

    @property
    def feed(self) -> Feed:
        """What the pictures come from."""
        return self._feed

    @property
    def trouble(self) -> str:
        """What is wrong; "" if nothing is."""
        return self._feed.trouble

    @property
    def stopped(self) -> bool:
        """Whether it has ended."""
        return bool(self.ended)

    def stop(self) -> None:
        """End it; what was drawn stays."""
        self._feed.close()
        self.ended = True

    @property
    def params(self) -> ipywidgets.VBox:
        """A slider for each number among the parameters of the channel, if that is a derived one.

        Raises:
            LocalError: It has no parameters.
        """
        block = self._channel.params
        values: Any = block.values
        sliders = []
        for field in block.format.fields:
            value = values[field.name] if isinstance(values, dict) else getattr(values, field.name)
            if field.kind in (Kind.INT, Kind.UINT, Kind.FLOAT) and not field.dimensions:
                sliders.append(_slider(self._channel, field.name, value))
        if not sliders:
            raise LocalError(f"channel `{self._channel.name}` has no parameter that is a number")
        return ipywidgets.VBox(sliders)

    def close(self) -> None:
        """End it, and take it off the page."""
        self.stop()
        super().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        what = ", ".join(self.fields) or "events"
        return f"<Live view of {self._channel.name}: {what}>"

    def hear(self, content: object) -> None:
        """Hear from a page whether a view of it is in sight."""
        match content:
            case {"type": "seen", "view": str(view), "seen": True} if len(view) <= VIEW_CHARACTERS_MAX:
                if len(self._views) < VIEWS_MAX:
                    self._views.add(view)
            case {"type": "seen", "view": str(view), "seen": False}:
                self._views.discard(view)
            case _:
                return
        self._feed.pause(not self._views)


def _slider(channel: Channel, name: str, value: float) -> ipywidgets.Widget:
    """Return a slider from nothing to twice the value, which changes the parameter at every source."""
    low, high = min(0, 2 * value), max(0, 2 * value) or 1
    kind = ipywidgets.IntSlider if isinstance(value, int) else ipywidgets.FloatSlider
    step = max((high - low) // SLIDER_STEPS, 1) if isinstance(value, int) else (high - low) / SLIDER_STEPS
    slider = kind(value=value, min=low, max=high, step=step, description=name)
    slider.observe(lambda change: channel.params.update(**{name: change["new"]}), "value")
    return slider
