"""What goes through all channels, between two samples."""

from echoic import Hub, event
from echoic.channels import ChannelCounts, ChannelEntry, DerivationCounts
from echoic.monitor import Pipelines, Sample, load_between, take_sample

ID = "echoic://127.0.0.1:9/trades"


@event
class Trade:
    price: float


def sample(time: float, *, events: int, waiting: int = 0, saved: int = 0, hubs: tuple[str, ...] = ("a",)) -> Sample:
    counts = ChannelCounts("trades", ID, "Trade", 1, 2, 1, events, events * 10, 0, 0, 3, 4, waiting)
    derived = DerivationCounts("cheap", ID, "trades", "source", 1, 0, 0, 0, 0, saved, 0, 1, 0, "")
    return Sample(
        time=time,
        names="127.0.0.1:7400",
        lost="",
        known=[ChannelEntry("trades", ID)],
        counts={(hub, ID): counts for hub in hubs},
        derivations={("a", "127.0.0.1:9", "cheap"): derived},
        pipelines=[],
    )


def test_rates_are_differences_and_hubs_are_added_up() -> None:
    load = load_between(sample(1.0, events=10), sample(3.0, events=30, saved=500, hubs=("a", "b")))
    (trades,) = load.channels
    assert (trades.events_per_second, trades.bytes_per_second) == (25.0, 250.0)
    assert (trades.sources, trades.sinks, trades.missed, trades.dropped, trades.type) == (2, 4, 6, 8, "Trade")
    assert (load.saved_bytes, load.saved_per_second) == (500, 250.0)
    assert (load.names, load.lost) == ("127.0.0.1:7400", "")


def test_a_hub_that_was_started_anew_gives_no_rate_below_zero() -> None:
    (trades,) = load_between(sample(1.0, events=30), sample(2.0, events=5)).channels
    assert trades.events_per_second == 0.0


def test_lag_is_what_waits_over_how_fast_it_goes() -> None:
    (trades,) = load_between(sample(1.0, events=0), sample(2.0, events=10, waiting=50)).channels
    assert trades.lag_seconds == 0.5
    (trades,) = load_between(sample(1.0, events=0), sample(2.0, events=0, waiting=50)).channels
    assert trades.lag_seconds is None
    (trades,) = load_between(sample(1.0, events=0), sample(2.0, events=0)).channels
    assert trades.lag_seconds == 0.0


def test_channels_stay_while_the_name_server_is_lost() -> None:
    with Hub("127.0.0.1:0") as names, Hub("127.0.0.1:0", names=names.address) as hub:
        hub.create("trades", Trade)
        pipelines = Pipelines(hub)
        before = take_sample(hub, pipelines)
        assert before.lost == ""
        names.close()
        after = take_sample(hub, pipelines, before)
        assert "nobody serves names" in after.lost
        assert [entry.name for entry in after.known] == ["trades"]
        assert take_sample(hub, pipelines).known == []


def test_a_program_that_looks_at_itself_sees_its_own_sources() -> None:
    with Hub("127.0.0.1:0") as hub:
        trades = hub.create("trades", Trade)
        trades.source()
        found = take_sample(hub, Pipelines(hub))
        assert found.names == ""
        assert found.counts[hub.address, trades.id].sources == 1


def test_a_derived_channel_names_its_parent_though_nobody_listens() -> None:
    with Hub("127.0.0.1:0") as names, Hub("127.0.0.1:0", names=names.address) as hub:
        hub.create("trades", Trade).derive("{ return input.price < 75.0; }", name="cheap")
        found = take_sample(hub, Pipelines(hub))
        parents = {channel.name: channel.parent for channel in load_between(found, found).channels}
        assert parents == {"trades": "", "cheap": "trades"}
