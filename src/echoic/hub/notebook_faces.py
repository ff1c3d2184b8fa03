"""How hubs and channels look in a notebook: as small tables, and as a widget that another package has.

The widget needs anywidget, and stands above the hub (`echoic.notebook`). So nothing here imports it: `live_widget`
finds it by name when somebody asks for the first time, as the root package does with its names. All that the hub knows
of it is `Live`, which is what programs need of it too.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, Self

from echoic.channels import ChannelCounts
from echoic.formats import Format, html_table

if TYPE_CHECKING:
    from echoic.hub.channel import Channel

__all__ = ["Live", "channel_as_html", "hub_as_html", "live_widget"]

ROWS_MAX: Final = 50


class Live(Protocol):
    """What `Channel.live` returns: a widget, and how to end it."""

    @property
    def code(self) -> str:
        """The E-Code that runs inside the sources for what is shown; "" if events come as they are."""

    @property
    def stopped(self) -> bool:
        """Whether it has ended."""

    def stop(self) -> None:
        """End it; what was drawn stays."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...


def live_widget(
    channel: "Channel", fields: str | Sequence[str] | None, seconds: float, points_per_second: float
) -> Live:
    """Return the widget for a channel, from the package that has it.

    Raises:
        EchoicError: As `Channel.live` does.
    """
    made: Live = import_module("echoic.notebook").live(channel, fields, seconds, points_per_second)
    return made


def channel_as_html(caption: str, format: Format | None) -> str:
    """Return the type of a channel as a table."""
    if format is None:
        return html_table(caption, (), ())
    rows = [(path, field.spelling) for path, field in format.walk()]
    return html_table(caption, ("field", "type"), rows[:ROWS_MAX])


def hub_as_html(caption: str, channels: Sequence[ChannelCounts]) -> str:
    """Return what went through the channels of a hub as a table."""
    head = ("channel", "type", "sources", "sinks", "events out", "events in")
    rows = [
        (each.name, each.type, each.sources, each.sinks, each.events_out, each.events_in)
        for each in sorted(channels, key=lambda each: each.name)
    ]
    return html_table(caption, head, rows[:ROWS_MAX])
