"""Channels that play the part of tools: what is on them are the tool's events.

tool feed is { kind = "channel" channel = "trades" derive = "{ return input.price < 75.0; }" }

rec-event(F, trade(S?, P?))          an event of the channel, or of the one that is derived from it
snd-do(F, trade("IBM", 74.5))        an event for the channel
"""

from typing import TYPE_CHECKING, Final

from echoic.errors import EchoicError, EncodeError
from echoic.scripts.running.messages import FromTool, ToTool
from echoic.terms import Term, Value
from echoic.toolbus.channel_terms import EventMaker, symbol_of, term_of_event
from echoic.toolbus.line import Audience
from echoic.toolbus.publisher import Publisher
from echoic.toolbus.service import ERROR_NAME

if TYPE_CHECKING:
    from echoic.hub import Channel, Sink
    from echoic.hub.eager_sink import EagerSink

__all__ = ["ChannelLine"]


class ChannelLine:
    """A conversation with a channel."""

    def __init__(self, name: str, channel: "Channel", derive: str, audience: Audience, publisher: Publisher) -> None:
        """Begin; nothing is heard before the tool has a number.

        Args:
            name: What the script calls the tool.
            channel: Where its events come from, and go to.
            derive: E-Code; the tool then hears the channel that is derived with it.
            audience: The bus.
            publisher: Submits events.

        Raises:
            ECodeError: The code is wrong.
            EncodeError: The channel has no type.
        """
        self.name: Final = name
        self._audience = audience
        self._publisher = publisher
        self._channel = channel
        self._heard = channel.derive(derive) if derive else channel
        format = channel.format
        if format is None or self._heard.format is None:
            raise EncodeError(f"channel `{channel.name}` has no type, so tool `{name}` cannot be of it")
        self._symbol = symbol_of(self._heard.format)
        self._maker = EventMaker(format)
        self._source = channel.source()
        self._sink: Sink | EagerSink | None = None
        self._closed = False

    def welcome(self, number: int) -> None:  # noqa: ARG002 - nobody asks a channel for its number
        """Begin to hear, in the publisher's thread, since subscribing may wait."""
        self._publisher.do(self._subscribe)

    def tell(self, kind: ToTool, transaction: int, values: tuple[Value, ...]) -> None:
        """Submit what is to be done; a channel can do nothing else."""
        if kind is ToTool.DO:
            self._publisher.do(lambda: self._submit(transaction, values))
        elif kind is ToTool.EVAL:
            text = "a channel has no values: use snd-do to submit an event"
            self._audience.heard(self, FromTool.VALUE, transaction, (Term(ERROR_NAME, self.name, text),))

    def close(self) -> None:
        """Hear no more."""
        if not self._closed:
            self._closed = True
            self._publisher.do(self._unsubscribe)

    def _subscribe(self) -> None:
        try:
            self._sink = self._heard.subscribe(self._take, thread=True)
        except EchoicError as error:
            self._audience.gone(self, f"its channel cannot be heard: {error}")

    def _unsubscribe(self) -> None:
        if self._sink is not None:
            self._sink.close()
        self._source.close()

    def _take(self, event: object) -> None:
        try:
            term = term_of_event(event, self._symbol)
        except EchoicError as error:
            self._audience.trouble(self, f"an event cannot be a term: {error}")
            return
        if not self._closed:
            self._audience.heard(self, FromTool.EVENT, 0, (term,))

    def _submit(self, transaction: int, values: tuple[Value, ...]) -> None:
        try:
            for value in values[:1]:
                self._source.submit(self._maker.event(value))
        except EchoicError as error:
            self._audience.trouble(self, f"an event was not submitted: {error}")
        self._audience.heard(self, FromTool.VOID, transaction, ())
