import gc
import socket
import struct
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import numpy
import pytest

import echoic
from echoic import Hub
from echoic.errors import (
    AddressError,
    ChannelExistsError,
    ChannelNotFoundError,
    FormatError,
    IncompatibleTypesError,
    InsecureError,
    LocalError,
    UnreachableError,
)
from tests.hub.parties import Collector, Quote, StartHub, Tick, Trade, WideTrade, eventually, trade

BEHIND, IN_FRONT = "127.0.0.2", "127.0.0.3"


@echoic.event
class Text:
    number: str


def test_a_channel_is_opened_by_its_id(start_hub: StartHub, any_link: str) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("lab/trades", Trade)
    opened = there.open(created.id, Trade)
    seen = Collector()
    opened.subscribe(seen)
    created.source().submit(trade(1))
    seen.has(1)
    assert seen.events == [trade(1)]
    assert (opened.id, opened.name) == (created.id, "lab/trades")


def test_a_channel_is_opened_by_its_name_in_its_own_hub(start_hub: StartHub) -> None:
    hub = start_hub()
    created = hub.create("trades", Trade)
    assert hub.open("trades", Trade).id == created.id


def test_a_channel_is_opened_by_its_name_at_a_name_server(start_hub: StartHub, any_link: str) -> None:
    server = start_hub()
    here, there = start_hub(names=server.address), start_hub(names=server.address)
    created = here.create("trades", Trade)
    assert there.open("trades").id == created.id
    assert [entry.id for entry in there.channels(server.address)] == [created.id]


def test_a_hub_can_be_called_localhost(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("trades", Trade)
    seen = Collector()
    there.open(created.id.replace("127.0.0.1", "localhost"), Trade).subscribe(seen)
    created.source().submit_sync(trade(1))
    assert seen.numbers == [1]


def test_the_name_server_may_be_called_localhost(start_hub: StartHub) -> None:
    server = start_hub()
    here = start_hub(names=server.address.replace("127.0.0.1", "localhost"))
    created = here.create("trades", Trade)
    assert start_hub(names=server.address).open("trades").id == created.id


def test_an_untyped_open_reflects_the_type(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("trades", Trade)
    opened = there.open(created.id)
    assert opened.format is not None
    assert opened.format.name == "Trade"
    assert [field.name for field in opened.format.fields] == ["number", "price", "symbol"]
    seen = Collector()
    opened.subscribe(seen)
    created.source().submit_sync(trade(4))
    assert (seen.events[0].number, seen.events[0].price, seen.events[0].symbol) == (4, 2.0, "S4")


def test_a_source_takes_the_type_that_reflection_found(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("trades", Trade)
    seen = Collector()
    created.subscribe(seen)
    there.open(created.id).source().submit_sync({"number": 3, "price": 1.5, "symbol": "A"})
    assert seen.events == [Trade(3, 1.5, "A")]


def test_a_quote_is_received_from_a_channel_of_trades(start_hub: StartHub, any_link: str) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("trades", Trade)
    quotes, local_quotes = Collector(), Collector()
    there.open(created.id, Quote).subscribe(quotes)
    here.open(created.id, Quote).subscribe(local_quotes)
    created.source().submit_sync(trade(8))
    assert quotes.events == local_quotes.events == [Quote(4.0, 8)]


def test_a_sink_may_declare_less_than_its_channel_does(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("trades", Trade)
    trades, quotes, batches = Collector(), Collector(), Collector()
    opened = there.open(created.id, Trade)
    opened.subscribe(trades)
    opened.subscribe(quotes, Quote)
    opened.subscribe(batches.batch, Quote, batch=True)
    created.source().submit_sync(trade(2))
    assert (trades.events, quotes.events, batches.events) == ([trade(2)], [Quote(1.0, 2)], [Quote(1.0, 2)])


def test_a_source_may_have_more_fields_than_the_channel(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("trades", Trade)
    seen, wide = Collector(), Collector()
    created.subscribe(seen)
    there.open(created.id).subscribe(wide)
    source = there.open(created.id).source(WideTrade)
    source.submit_sync(WideTrade("XETRA", 1, 2.0, "A", 9))
    assert seen.events == [Trade(1, 2.0, "A")]
    assert wide.events[0].venue == "XETRA"


def test_an_untyped_channel_takes_what_its_sources_declare(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("anything")
    seen = Collector()
    there.open(created.id).subscribe(seen)
    with pytest.raises(FormatError, match="must declare theirs"):
        created.source()
    created.source(Tick).submit_sync(Tick(1, 2))
    created.source(Quote).submit_sync(Quote(0.5, 3))
    assert [type(item).__name__ for item in seen.events] == ["Tick", "Quote"]
    assert seen.numbers == [2, 3]


def test_a_channel_may_be_declared_by_a_dtype(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    dtype = numpy.dtype([("number", "i8"), ("level", "f4")], align=True)
    created = here.create("levels", dtype)
    seen: list[numpy.ndarray] = []
    there.open(created.id).subscribe(lambda batch: seen.append(batch.array.copy()), batch=True)
    sent = numpy.array([(1, 0.5), (2, 0.25)], dtype)
    source = created.source()
    source.submit_batch(sent)
    eventually(lambda: seen)
    assert (seen[0]["number"] == sent["number"]).all()
    assert source.freeze().position == 2


@pytest.mark.parametrize("where", ["here", "there"])
def test_types_that_do_not_match_are_refused(start_hub: StartHub, where: str) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("trades", Trade)
    hub = here if where == "here" else there
    with pytest.raises(IncompatibleTypesError, match="number"):
        hub.open(created.id, Text)
    opened = hub.open(created.id)
    with pytest.raises(IncompatibleTypesError, match="number"):
        opened.source(Text)
    with pytest.raises(IncompatibleTypesError, match="price"):
        opened.source(Tick)
    with pytest.raises(IncompatibleTypesError, match="number"):
        opened.subscribe(print, Text)
    assert here.describe("trades").sources == []
    assert here.describe("trades").sinks == []


def test_a_type_that_no_event_can_have_is_refused_and_leaves_nothing_behind(start_hub: StartHub) -> None:
    hub = start_hub()
    with pytest.raises(FormatError):
        hub.create("trades", object())
    assert hub.channels() == []


@pytest.mark.parametrize("name", ["", "/", "a//b", "a b", "ä", "a/", "-a", "x" * 201, "a\n", "../a"])
def test_wrong_names_are_refused(start_hub: StartHub, name: str) -> None:
    with pytest.raises(AddressError, match="a channel name has at most 200"):
        start_hub().create(name, Trade)


@pytest.mark.parametrize(
    "id", ["echoic://", "echoic:///x", "echoic://127.0.0.1/x", "http://127.0.0.1:80/x", "echoic://127.0.0.1:1"]
)
def test_wrong_ids_are_refused(start_hub: StartHub, id: str) -> None:
    with pytest.raises(AddressError):
        start_hub().open(id)


def test_a_port_that_cannot_be_is_refused(start_hub: StartHub) -> None:
    with pytest.raises((AddressError, UnreachableError)):
        start_hub().open("echoic://127.0.0.1:99999/x")


def test_a_name_that_nobody_knows_brings_the_nearest_ones(start_hub: StartHub) -> None:
    server = start_hub()
    here, there = start_hub(names=server.address), start_hub(names=server.address)
    created = here.create("trades", Trade)
    with pytest.raises(ChannelNotFoundError, match="did you mean `trades`"):
        there.open("trade")
    with pytest.raises(ChannelNotFoundError, match="did you mean `trades`"):
        there.open(created.id + "s")
    with pytest.raises(ChannelNotFoundError, match="`x` not found"):
        start_hub().open("x")


def test_a_name_is_given_once(start_hub: StartHub) -> None:
    server = start_hub()
    here, there = start_hub(names=server.address), start_hub(names=server.address)
    here.create("trades", Trade)
    with pytest.raises(ChannelExistsError):
        here.create("trades", Quote)
    with pytest.raises(ChannelExistsError):
        there.create("trades", Quote)
    assert there.channels() == []
    there.create("quotes", Quote)
    assert here.open("trades").format == echoic.Format.of(Trade)


def test_two_name_servers_are_two_name_spaces(start_hub: StartHub) -> None:
    east, west = start_hub(), start_hub()
    in_east = start_hub(names=east.address).create("trades", Trade)
    in_west = start_hub(names=west.address).create("trades", Quote)
    assert start_hub(names=east.address).open("trades").id == in_east.id
    assert start_hub(names=west.address).open("trades").id == in_west.id


def test_a_channel_can_be_known_at_two_name_servers(start_hub: StartHub) -> None:
    first, second = start_hub(), start_hub()
    both = [first.address, second.address]
    created = start_hub(names=both).create("trades", Trade)
    assert start_hub(names=second.address).open("trades").id == created.id
    first.close()
    assert start_hub(names=both).open("trades").id == created.id


def test_a_name_server_that_comes_back_learns_the_names_again(start_hub: StartHub) -> None:
    server = start_hub()
    here, there = start_hub(names=server.address), start_hub(names=server.address)
    created = here.create("trades", Trade)
    server.close()
    again = start_hub(server.address)
    eventually(again.channels, "the name server is told again")
    assert there.open("trades").id == created.id


def test_without_a_name_server_open_channels_go_on_and_new_ones_say_what_to_do(start_hub: StartHub) -> None:
    server = start_hub()
    here, there = start_hub(names=server.address), start_hub(names=server.address)
    created = here.create("trades", Trade)
    seen = Collector()
    there.open("trades", Trade).subscribe(seen)
    server.close()
    source = created.source()
    source.submit_sync(trade(1))
    with pytest.raises(UnreachableError, match=r"echoic names serve.* or open the channel by its id"):
        there.open("trades")
    with pytest.raises(UnreachableError, match="echoic names serve"):
        here.create("more", Trade)
    assert [entry.name for entry in here.channels()] == ["trades"]
    assert there.open(created.id).name == "trades"
    source.submit_sync(trade(2))
    assert seen.numbers == [1, 2]


def test_the_names_of_a_hub_that_closes_are_free_again(start_hub: StartHub) -> None:
    server = start_hub()
    here, there = start_hub(names=server.address), start_hub(names=server.address)
    here.create("trades", Trade)
    here.close()
    eventually(lambda: not server.channels(), "the name is struck")
    there.create("trades", Quote)


def test_a_removed_channel_can_be_created_anew_with_another_type(start_hub: StartHub) -> None:
    hub = start_hub()
    hub.create("trades", Trade)
    hub.remove("trades")
    with pytest.raises(ChannelNotFoundError):
        hub.remove("trades")
    again = hub.create("trades", Tick)
    assert again.format == echoic.Format.of(Tick)
    seen = Collector()
    start_hub().open(again.id, Tick).subscribe(seen)
    again.source().submit_sync(Tick(1, 2))
    assert seen.events == [Tick(1, 2)]


def test_listening_to_other_machines_needs_an_identity_or_a_decision(start_hub: StartHub) -> None:
    for listen in ("0.0.0.0:0", "[::]:0"):
        with pytest.raises(InsecureError, match=r"pass identity=..., or insecure=True"):
            Hub(listen)
    start_hub("0.0.0.0:0", insecure=True)


def test_a_hub_that_listens_everywhere_can_be_used(start_hub: StartHub) -> None:
    everywhere, there = start_hub("0.0.0.0:0", insecure=True), start_hub()
    created = everywhere.create("trades", Trade)
    seen = Collector()
    there.open(created.id.replace("0.0.0.0", "127.0.0.1"), Trade).subscribe(seen)
    created.source().submit_sync(trade(1))
    assert seen.numbers == [1]


@pytest.mark.parametrize("listen", ["nonsense", "127.0.0.1", "127.0.0.1:99999", ":", "127.0.0.1:-1"])
def test_what_is_no_address_cannot_be_listened_at(listen: str) -> None:
    with pytest.raises(AddressError):
        Hub(listen)


def test_an_address_is_listened_at_once(start_hub: StartHub) -> None:
    with pytest.raises(UnreachableError, match="cannot listen at"):
        Hub(start_hub().address)


def test_a_rule_for_slow_sinks_that_does_not_exist_is_refused(start_hub: StartHub) -> None:
    channel = start_hub().create("trades", Trade)
    with pytest.raises(LocalError, match="expected `slow` to be one of block"):
        channel.subscribe(print, slow="sometimes")
    with pytest.raises(LocalError, match="expected `slow` to be one of block"):
        channel.events(slow="sometimes")


def test_who_takes_part_is_known(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub(name="desk")
    created = here.create("trades", Trade)
    opened = there.open(created.id, Trade)
    sink = opened.subscribe(Collector())
    source = created.source()
    source.submit_sync(trade(1))
    described = there.describe(created.id)
    assert (described.sources, [sink.address for sink in described.sinks]) == ([here.address], [there.address])
    (entry,) = there.channels(here.address)
    assert (entry.name, entry.type, entry.sources, entry.sinks) == ("trades", "Trade", 1, 1)
    (counts,) = there.report(here.address).channels
    assert (counts.sources, counts.targets, counts.events_out) == (1, 1, 1)
    assert opened.statistics().events_in == 1
    (link,) = here.statistics().links
    assert (link.address, link.name, link.connected) == (there.address, "desk", True)
    sink.close()
    source.close()
    eventually(lambda: not here.describe("trades").sinks and not here.describe("trades").sources)


def test_sources_that_were_closed_are_forgotten(start_hub: StartHub) -> None:
    channel = start_hub().create("trades", Trade)
    sources = [channel.source() for _ in range(10)]
    remembered = [weakref.ref(source) for source in sources]
    for source in sources:
        source.submit(trade(1))
        source.close()
    del sources, source
    eventually(lambda: gc.collect() is not None and not any(ref() for ref in remembered), "they are garbage")


@contextmanager
def losing_the_end_of_greetings(here: Hub, times: int) -> Iterator[None]:
    """Stand where a hub says it is; of the first connections its dialler's last word does not arrive."""
    host, _, port = here.address.partition(":")
    with socket.create_server((host, int(port))) as door:
        threading.Thread(target=lambda: forward(door, (BEHIND, int(port)), times), daemon=True).start()
        yield


def forward(door: socket.socket, target: tuple[str, int], times: int) -> None:
    for turn in range(100):
        try:
            near = door.accept()[0]
        except OSError:  # it was closed
            return
        far = socket.create_connection(target)
        if turn >= times:
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=pump, args=(one, other), daemon=True).start()
            continue
        far.sendall(near.recv(65536))
        near.sendall(far.recv(65536))
        near.recv(65536)  # the dialler's last word, and what it asks
        near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        near.close()
        far.close()


def pump(one: socket.socket, other: socket.socket) -> None:
    with one, other:
        try:
            while data := one.recv(65536):
                other.sendall(data)
        except OSError:
            return


@pytest.mark.parametrize("times", [1, 2])
def test_who_is_asked_over_a_link_that_begins_afresh_is_asked_again(
    start_hub: StartHub, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ECHOIC_LINKS", "tcp")
    here, there = start_hub(f"{BEHIND}:0", advertise=IN_FRONT), start_hub()
    id = here.create("trades", Trade).id
    with losing_the_end_of_greetings(here, times):
        assert there.open(id, Trade).name == "trades"


def test_who_always_begins_afresh_is_not_asked_for_ever(start_hub: StartHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECHOIC_LINKS", "tcp")
    here, there = start_hub(f"{BEHIND}:0", advertise=IN_FRONT), start_hub()
    id = here.create("trades", Trade).id
    with losing_the_end_of_greetings(here, 50), pytest.raises(UnreachableError, match="afresh"):
        there.open(id, Trade)
