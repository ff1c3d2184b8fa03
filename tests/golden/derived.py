"""The part of the golden vectors that is about derived channels: every message of theirs, and a conversation.

In the conversation the acceptor manages a channel and has its source; the dialler derives a channel from it, hears it,
turns its parameter, and is told of trouble. In between the derivation moves to the dialler and back, so that `Placed`
and events that have yet to be derived are seen.
"""

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from echoic.channels import ChannelId, Compile, Member, Message, SinkHub, build, compiled, derive, messages
from echoic.channels.installing import report_trouble, send_share
from echoic.channels.messages import DerivationCounts, Recipe, Step
from echoic.ecode import parameter_format
from echoic.formats import NATIVE, Field, Format, Kind
from echoic.wire import Batch, FrameKind
from tests.golden import hubs

__all__ = ["derived_conversation", "derived_messages", "malformed_messages"]

CODE: Final = "input.size / param.step < 0"
STEP: Final = struct.Struct("<q")
PARAMETERS: Final = parameter_format({"step": 1})
MEAN: Final = Format("Mean", (Field("price", Kind.FLOAT, 8, 0),), byte_order=NATIVE.byte_order, alignment=8, size=8)
STATES: Final = {hubs.SOURCE: bytes(8), 0: STEP.pack(-1)}


class DerivedConversation(hubs.Conversation):
    """Two hubs, one of which derives from a channel of the other."""

    def run(self) -> list[tuple[str, str, bytes]]:
        """Let one derive, hear, turn the parameter, meet trouble and leave; return who said what."""
        self._greet()
        parent, outlet, heard = self._derive()
        (derivation,) = self._manager.derivations.values()
        self._submit(parent)
        for here in (False, True):
            derivation.move(here=here)
            self._submit(parent)
        for order in (
            messages.Tune(outlet.name, STEP.pack(0), base=0),
            messages.Save(outlet.id),
            messages.Restore(outlet.id, {0: b""}),
            messages.Describe(outlet.name),
        ):
            self._other.ask(hubs.MANAGER.address, order, hubs.ignore)
            self._carry()
        self._submit(parent)
        self._other.leave(heard, "sink")
        self._carry()
        return self._said

    def _derive(self) -> tuple[Member, Member, Member]:
        """Return the parent, and the derived channel in both hubs."""
        manager, other, format = self._manager, self._other, self._batch.format
        manager.manager.directory.create(hubs.ID.name, format)
        parent = manager.open(hubs.ID, format)
        parent.sources[hubs.SOURCE] = 0
        manager.join(parent, "source", hubs.ignore)
        recipe = Recipe(hubs.ID.name, CODE, params=PARAMETERS.descriptor, placement="auto")
        replies: list[Message] = []
        other.ask(hubs.MANAGER.address, messages.Derive(Step("", "", recipe, STEP.pack(100))), replies.append)
        self._carry()
        (reply,) = replies
        assert isinstance(reply, messages.DerivedAs)
        id = ChannelId(hubs.MANAGER.address, reply.steps[0].name)
        heard = other.open(id, format)
        heard.lineage, heard.sink = reply.steps, SinkHub(hubs.SINK.address, "block", ("printer",))
        other.join(heard, "sink", hubs.ignore)
        self._carry()
        return parent, manager.members[str(id)], heard

    def _submit(self, parent: Member) -> None:
        manager = self._manager
        shares = derive(parent, hubs.SOURCE, self._batch, lambda: 0)
        manager.submit(parent, hubs.SOURCE, self._batch)
        for share in shares:
            send_share(manager, share)
        report_trouble(manager, parent)
        self._carry()

    def _carry(self) -> None:
        super()._carry()
        while self._manager.effects:
            effect = self._manager.effects.pop()
            if isinstance(effect, Compile):
                compiled(self._manager, effect.derivation, build(effect.derivation))
        super()._carry()


def derived_conversation(batch: Batch, events: hubs.Events) -> list[hubs.Vector]:
    """Return what two hubs say to each other about a derived channel, in order."""
    return hubs.vectors_of(DerivedConversation(batch), events)


def lineage() -> tuple[Step, ...]:
    """Return two derivations, one of the other, with all their fields set."""
    first = Recipe("lab/ticks", "input.price < param.least", params=PARAMETERS.descriptor, placement="auto")
    code = "def f(input, output):\n    output.price = input.price\n    return 1\n"
    second = Recipe("lab/cheap", code, "python", MEAN.descriptor, b"", 2, (("prices", 500), ("sizes", 7)), "sink")
    return (
        Step("lab/cheap", "lab/cheap", first, STEP.pack(70), 5, 0, b"\x94\x01", b"\x94\x02"),
        Step("lab/means.1", "lab/means", second, b"", 0, 1, b"\x94\x01", b"\x94\x02"),
    )


def derived_messages() -> Iterator[tuple[int, bool, Message]]:
    """Yield the messages of derived channels, and those that have fields for them, with all fields set."""
    id, steps, sink = "echoic://127.0.0.1:7401/lab/means.1", lineage(), hubs.PLOTTER
    counts = DerivationCounts(
        "lab/means", id, "lab/cheap", "source", 1, 2, 3, 4, 5, 2**33, 7, 8, 9, "9 events have faulted", "by zero"
    )
    yield 10, True, messages.Described("lab/means.1", MEAN.descriptor, ["127.0.0.1:7401"], [sink], steps, b"\x94\x02")
    yield 11, False, messages.Join("lab/means.1", "sink", sink, steps)
    yield 11, True, messages.Joined([sink], steps)
    yield 12, False, messages.Attach(id, sink, steps)
    yield 13, True, messages.Reported("manager", [], [counts])
    yield 14, False, messages.Derive(Step("", "", steps[1].recipe), share=False)
    yield 14, True, messages.DerivedAs(steps)
    yield 15, False, messages.Tune("lab/cheap", STEP.pack(71), base=5)
    yield 16, False, messages.Tune("echoic://127.0.0.1:7401/lab/cheap", STEP.pack(71), 6)
    yield 17, False, messages.Save(id)
    yield 17, True, messages.Saved(STATES, MEAN.descriptor)
    yield 18, False, messages.Restore(id, STATES)
    yield 0, False, messages.Placed(7, hubs.SOURCE, 2**40, here=False)
    yield 0, False, messages.Trouble(id, "127.0.0.1:7401", "there is no such output port", 3, suspended=True)


def malformed_messages() -> list[hubs.Vector]:
    """Say about derived channels what none may say."""
    found = [*malformed_steps(), *malformed_orders()]
    return [{"why": why, "kind": int(FrameKind.CONTROL), "payload": payload.hex()} for why, payload in found]


def envelope(kind: str, **fields: object) -> bytes:
    return msgspec.msgpack.encode([1, False, {"type": kind, **fields}])


def malformed_steps() -> Iterator[tuple[str, bytes]]:
    recipe = {"parent": "lab/ticks", "code": CODE}

    def derive(**changes: object) -> bytes:
        return envelope("Derive", step={"name": "", "group": "", "recipe": {**recipe, **changes}})

    yield "an unknown spelling", derive(spelling="perl")
    yield "an unknown placement", derive(placement="moon")
    yield "a type that is a text", derive(output="Mean")
    yield "a capacity without a number", derive(capacities=[["prices"]])
    yield "a capacity of three", derive(capacities=[["prices", 1, 2]])
    yield "a step without a recipe", envelope("Derive", step={"name": "", "group": ""})
    yield (
        "a context that is a text",
        envelope("Derive", step={"name": "", "group": "", "recipe": recipe, "context": "c"}),
    )


def malformed_orders() -> Iterator[tuple[str, bytes]]:
    yield "a lineage that is a step", envelope("Attach", channel="c", sink={"address": "a:1"}, lineage={})
    yield "parameters that are a text", envelope("Tune", channel="c", values="7")
    yield "a source that is a text", envelope("Restore", channel="c", states={"7": b""})
    yield "a state that is a text", envelope("Restore", channel="c", states={7: ""})
    yield "a place that is neither here nor there", envelope("Placed", number=1, source=2, first=3, here=None)
