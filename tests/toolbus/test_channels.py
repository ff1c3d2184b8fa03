"""Scripts and event channels: notes on channels, channels as tools, steps as events."""

import time
from collections.abc import Callable

import pytest

from echoic import event
from echoic.errors import EncodeError
from echoic.formats import Format
from echoic.terms import Term, TermList, parse_text
from echoic.toolbus.channel_binding import StepTaken
from echoic.toolbus.channel_terms import EventMaker, format_of_pattern, symbol_of, term_of_event
from tests.conftest import StartHub
from tests.toolbus.conftest import MakeBus


@event
class Trade:
    symbol: str
    price: float


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_events_are_terms_and_terms_are_events() -> None:
    maker = EventMaker(Format.of(Trade))
    assert term_of_event(Trade("IBM", 74.5), "trade") is Term("trade", "IBM", 74.5)
    made = maker.event(Term("price", "IBM", 74))
    assert (made["symbol"], made["price"]) == ("IBM", 74.0)
    with pytest.raises(EncodeError, match="2 fields"):
        maker.event(Term("price", "IBM"))
    with pytest.raises(EncodeError, match="kind float"):
        maker.event(Term("price", "IBM", Term("x")))


def test_a_pattern_makes_a_type_and_terms_travel_as_text_in_it() -> None:
    pattern = parse_text("price-of(<str>,<real>,<int>,<bool>,<f(int)>,<list>)")
    format = format_of_pattern(pattern)
    assert (format.name, symbol_of(format), len(format.fields)) == ("PriceOf", "price-of", 6)
    value = Term("price-of", "x", 1.5, 2, True, Term("f", 1), TermList(1, "a"))
    assert term_of_event(EventMaker(format).event(value), "price-of", pattern) is value


def test_notes_go_to_a_channel_and_come_from_it(make_bus: MakeBus, start_hub: StartHub, printed: list[str]) -> None:
    hub = start_hub()
    elsewhere = start_hub()
    bus = make_bus(
        """
        note channel "prices" as price(<str>,<real>)
        process P is let S: str, R: real in
            subscribe(price(<str>,<real>)) . snd-note(price("own", 1.0)) . rec-note(price(S?, R?)) . printf("%s ", S)
            . rec-note(price(S?, R?)) . printf("%s ", S) . no-note(price(<str>,<real>)) . shutdown(S)
        endlet
        toolbus(P)
        """,
        hub=hub,
    )
    prices = hub.create("prices", Trade)
    heard: list[object] = []
    opened = elsewhere.open(prices.id, Trade)
    opened.subscribe(heard.append)
    bus.start()
    wait_until(lambda: len(heard) == 1)
    assert (heard[0].symbol, heard[0].price) == ("own", 1.0)
    with opened.source() as source:
        source.submit(Trade("IBM", 74.5))
        source.flush()
        assert bus.wait(60)
    assert bus.value == "IBM"
    assert "".join(printed) == "own IBM "


def test_a_channel_that_nobody_has_created_is_created(make_bus: MakeBus, start_hub: StartHub) -> None:
    hub = start_hub()
    bus = make_bus(
        'note channel "news" as item(<str>,<int>)\n'
        'process P is snd-note(item("a", 1)) delay(msec(300)) . shutdown(done) delay(msec(200))\ntoolbus(P)',
        hub=hub,
    )
    bus.start()
    heard: list[object] = []
    hub.open("news").subscribe(heard.append)
    assert bus.wait(60)
    assert [tuple(value for _, value in each.items()) for each in heard] == [("a", 1)]


def test_a_derived_channel_feeds_rec_event_and_snd_do_submits(
    make_bus: MakeBus, start_hub: StartHub, printed: list[str]
) -> None:
    hub = start_hub()
    trades = hub.create("trades", Trade)
    bus = make_bus(
        """
        tool cheap is { kind = "channel" channel = "trades" derive = "{ return input.price < 75.0; }" }
        process P is let T: cheap, S: str, R: real in
            execute(cheap, T?) . printf("ready") . rec-event(T, trade(S?, R?)) . snd-ack-event(T, trade(S, R))
            . snd-do(T, trade("back", 1.5)) . rec-event(T, trade("back", R?)) . shutdown(S)
        endlet
        toolbus(P)
        """,
        hub=hub,
    )
    heard: list[str] = []
    trades.subscribe(lambda trade: heard.append(trade.symbol))
    bus.start()
    wait_until(lambda: printed == ["ready"])
    with trades.source() as source:
        for _ in range(200):
            source.submit(Trade("dear", 80.0))
            source.submit(Trade("IBM", 74.5))
            source.flush()
            if bus.wait(0.05):
                break
    assert bus.value == "IBM"
    assert "back" in heard


def test_a_channel_that_is_not_executed_is_there_at_once(make_bus: MakeBus, start_hub: StartHub) -> None:
    hub = start_hub()
    trades = hub.create("trades", Trade)
    bus = make_bus(
        """
        tool feed is { kind = "channel" channel = "trades" }
        process P is let T: feed, S: str in rec-connect(T?) . rec-event(T, trade(S?, <real>)) . shutdown(S) endlet
        toolbus(P)
        """,
        hub=hub,
    )
    bus.start()
    with trades.source() as source:
        while not bus.wait(0.05):
            source.submit(Trade("IBM", 74.5))
            source.flush()
    assert bus.value == "IBM"


def test_a_channel_that_is_not_there_is_a_lost_tool(make_bus: MakeBus, start_hub: StartHub) -> None:
    bus = make_bus(
        """
        tool feed is { kind = "channel" channel = "nowhere" }
        process P is let T: feed in execute(feed, T?) endlet
        process Q is let T: feed in rec-disconnect(T?) . shutdown(lost) endlet
        toolbus(P, Q)
        """,
        hub=start_hub(),
    )
    assert bus.run(10) is Term("lost")
    assert any("nowhere" in text for text in bus.warnings())


def test_every_atom_is_an_event_of_the_bus_channel(make_bus: MakeBus, start_hub: StartHub) -> None:
    hub = start_hub()
    bus = make_bus(
        "process P is\n  snd-msg(a(1))\n"
        "process Q is\n  rec-msg(a(<int>)) delay(msec(300)) .\n  shutdown(done)\ntoolbus(P, Q)",
        hub=hub,
        name="demo",
    )
    bus.start()
    steps: list[StepTaken] = []
    hub.open("bus.demo", StepTaken).subscribe(steps.append)
    assert bus.wait(60)
    wait_until(lambda: len(steps) == 2)
    meeting, ending = steps
    assert {meeting.atom, meeting.arguments} <= {"snd-msg", "rec-msg", "a(1)", "a(<int>)"}
    assert {meeting.process, meeting.partner} == {1, 2}
    assert {meeting.line, meeting.partner_line} == {2, 4}
    assert (ending.atom, ending.arguments, ending.line, ending.name) == ("shutdown", "done", 5, "Q")
    assert abs(ending.at - time.time()) < 60
