"""Eager handlers between real hubs: who is refused, what is told when a modulator fails, and what services it has.

What a modulator may do is the same in the process of the source and in a confined one; such tests run in both places.
"""

# ruff: noqa: SLF001 - requests are sent that no honest hub sends

import threading
from contextlib import suppress

import msgspec
import pytest

from echoic import Hub, Modulator, Policy
from echoic.channels import Derive, DerivedAs, Recipe, Step
from echoic.errors import ChannelNotFoundError, ClosedError, FormatError, LocalError, RefusedError
from tests.hub.eager_modulators import (
    KEY,
    SECONDS_MAX,
    Asking,
    Desk,
    Every,
    FailingDequeue,
    FailingPeriod,
    Hanging,
    Listener,
    MakeHub,
    Prying,
    Raising,
    Unshippable,
    Wrong,
    listen,
    publish,
)
from tests.hub.parties import Collector, StartHub, Trade, eventually, trade


def signed(hub: Hub, id: str, modulator: Modulator) -> Recipe:
    """Return what a hub sends to have a modulator entered."""
    return hub.open(id, Trade).modulate(modulator, share=False).endpoints.member.lineage[-1].recipe


def enter(hub: Hub, manager: Hub, recipe: Recipe, *, share: bool = False) -> str:
    """Have a recipe entered that was made up; return the id of its channel."""
    [step] = hub._switchboard.ask(manager.address, Derive(Step("", "", recipe), share), DerivedAs).steps
    return f"echoic://{manager.address}/{step.name}"


# Refusals


def test_a_key_that_is_not_listed_is_refused_and_the_message_says_what_to_do(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub(key=KEY)
    channel = here.create("trades", Trade)
    source = channel.source()
    message = f"the hub at {here.address} runs no modulators signed by {KEY.public}; its operator can list the key"
    with pytest.raises(RefusedError) as raised:
        there.open(channel.id, Trade).subscribe(Collector(), modulator=Every(1))
    assert message in str(raised.value)
    assert "echoic keys trust" in str(raised.value)
    source.submit_sync(trade(1))


def test_a_hub_runs_its_own_modulators_without_any_list(start_hub: StartHub) -> None:
    channel = start_hub().create("trades", Trade)
    seen = listen(channel, Every(2))
    publish(channel.source(), 0, 5)
    assert seen.numbers == [0, 2, 4]


def test_a_hub_that_runs_no_code_of_others_runs_no_listed_ones_either(trusting: MakeHub, viewing: MakeHub) -> None:
    channel = trusting(derive=False).create("trades", Trade)
    _source = channel.source()
    with pytest.raises(RefusedError, match="runs no code of others"):
        viewing().open(channel.id, Trade).subscribe(Collector(), modulator=Every(1))


def test_a_refused_handler_can_be_tried_again_elsewhere(start_hub: StartHub, trusting: MakeHub) -> None:
    """What was refused leaves no channel behind that others would stumble over."""
    channel = trusting().create("trades", Trade)
    source = channel.source()
    for _ in range(3):
        with pytest.raises(RefusedError, match="signed by"):
            start_hub().open(channel.id, Trade).subscribe(Collector(), modulator=Every(3))
    seen = listen(start_hub(key=KEY).open(channel.id, Trade), Every(3))
    publish(source, 0, 7)
    assert seen.numbers == [0, 3, 6]


def test_only_channels_with_a_type_can_be_modulated(start_hub: StartHub) -> None:
    channel = start_hub().create("anything")
    with pytest.raises(FormatError, match="has no type"):
        channel.subscribe(Collector(), modulator=Every(1))


def test_a_channel_that_nobody_knows_is_told(start_hub: StartHub) -> None:
    hub = start_hub()
    channel = hub.create("trades", Trade)
    hub.remove("trades")
    with pytest.raises(ChannelNotFoundError):
        channel.subscribe(Collector(), modulator=Every(1))


def test_a_modulator_that_cannot_be_shipped_is_a_mistake_of_who_sends_it(start_hub: StartHub) -> None:
    channel = start_hub().create("trades", Trade)
    _source = channel.source()
    with pytest.raises(LocalError, match="LOCK"):
        channel.subscribe(Collector(), modulator=Unshippable())


def test_an_eager_handler_takes_events_one_by_one(start_hub: StartHub) -> None:
    channel = start_hub().create("trades", Trade)
    with pytest.raises(LocalError, match="one by one"):
        channel.subscribe(Collector().batch, batch=True, modulator=Every(1))


def test_a_parcel_runs_at_no_other_channel_than_it_was_signed_for(trusting: MakeHub, viewing: MakeHub) -> None:
    """Somebody who is not trusted has a copy of what somebody else has signed."""
    hub, thief = trusting(), trusting()
    prices, secrets = hub.create("prices", Trade), hub.create("secrets", Trade)
    _sources = prices.source(), secrets.source()
    stolen = msgspec.structs.replace(signed(viewing(), prices.id, Every(1)), parent="secrets")
    with pytest.raises(RefusedError, match="was signed for prices, not for secrets"):
        thief.open(enter(thief, hub, stolen), Trade).subscribe(Collector())


def test_a_parcel_that_was_changed_on_its_way_is_refused(trusting: MakeHub, viewing: MakeHub) -> None:
    hub, thief = trusting(), trusting()
    channel = hub.create("prices", Trade)
    _source = channel.source()
    recipe = signed(viewing(), channel.id, Every(1))
    changed = msgspec.structs.replace(recipe, parcel=recipe.parcel.replace(b"event.number", b"event.secret"))
    assert changed != recipe
    with pytest.raises(RefusedError, match="signature"):
        thief.open(enter(thief, hub, changed), Trade).subscribe(Collector())


def test_nobody_gets_the_stream_of_another_modulator_that_is_said_to_be_equal(
    start_hub: StartHub, viewing: MakeHub
) -> None:
    """What is shared is found by a digest; somebody claims that of a modulator that others are about to use."""
    rogue, viewer = start_hub(), viewing()
    hub = start_hub(policy=Policy(trusted_keys=(KEY.public, rogue._operating.key.public)))
    channel = hub.create("prices", Trade)
    source = channel.source()
    wanted = signed(viewer, channel.id, Every(2)).identity
    enter(rogue, hub, msgspec.structs.replace(signed(rogue, channel.id, Every(5)), identity=wanted), share=True)
    seen = listen(viewer.open(channel.id, Trade), Every(2))
    publish(source, 0, 7)
    assert seen.numbers == [0, 2, 4, 6]


# Trouble


def test_an_event_that_raises_is_told_with_its_line_and_the_others_go_on(running: MakeHub, viewing: MakeHub) -> None:
    hub = running()
    channel = hub.create("trades", Trade)
    seen = listen(viewing().open(channel.id, Trade), Raising(10))
    source = channel.source()
    for number in range(1, 15):
        source.submit_sync(trade(number), timeout=30)
    assert seen.numbers == [number for number in range(1, 15) if number != 10]
    trouble = seen.told("event 10 is not liked")
    assert (trouble.hub, trouble.suspended) == (hub.address, False)
    assert "`Raising.enqueue` raised ValueError" in trouble.text
    assert "line" in trouble.text


def test_too_many_events_that_raise_suspend_the_modulator_and_not_the_source(
    running: MakeHub, viewing: MakeHub
) -> None:
    hub = running(faults_max=4)
    channel = hub.create("trades", Trade)
    opened = viewing().open(channel.id, Trade)
    seen, other = listen(opened, Raising(1)), listen(opened, None)
    publish(channel.source(), 0, 20)
    eventually(lambda: any(trouble.suspended for trouble in seen.troubles), str(seen.troubles))
    assert (seen.numbers, other.numbers) == ([], list(range(20)))
    [counts] = hub.report(hub.address).derivations
    assert counts.suspended
    assert "is not liked" in counts.fault


def test_a_modulator_that_hangs_is_stopped_and_nobody_else_is_harmed(running: MakeHub, viewing: MakeHub) -> None:
    hub = running(modulator_seconds_max=SECONDS_MAX)
    channel = hub.create("trades", Trade)
    opened = viewing().open(channel.id, Trade)
    seen, other, honest = listen(opened, Hanging(3)), listen(opened, None), listen(opened, Every(2))
    source = channel.source()
    for number in range(10):
        source.submit_sync(trade(number), timeout=30)
    assert (seen.numbers, other.numbers, honest.numbers) == ([0, 1, 2], list(range(10)), [0, 2, 4, 6, 8])
    trouble = seen.told("Hanging")
    assert trouble.suspended
    assert f"{SECONDS_MAX}" in trouble.text
    assert not other.troubles
    assert not honest.troubles


def test_a_hub_is_closed_while_a_modulator_hangs(running: MakeHub, viewing: MakeHub) -> None:
    """Neither it nor the thread that submits waits for the code of others beyond the limit."""
    hub = running(modulator_seconds_max=2.0)
    channel = hub.create("trades", Trade)
    source, _seen = channel.source(), listen(viewing().open(channel.id, Trade), Hanging(0))
    began = threading.Event()

    def submit() -> None:
        began.set()
        with suppress(ClosedError):
            source.submit_batch([trade(0)])

    thread = threading.Thread(target=submit)
    thread.start()
    began.wait()
    hub.close()
    thread.join(30)
    assert not thread.is_alive()


def test_a_handler_whose_modulator_was_stopped_goes_on_with_another(running: MakeHub, viewing: MakeHub) -> None:
    channel = running(modulator_seconds_max=SECONDS_MAX).create("trades", Trade)
    source, seen = channel.source(), Listener()
    handle = viewing().open(channel.id, Trade).subscribe(seen, modulator=Hanging(0), on_trouble=seen.troubles.append)
    source.submit_sync(trade(0), timeout=30)
    assert seen.told("Hanging").suspended
    handle.reset(Every(2))
    publish(source, 1, 6)
    assert seen.numbers == [2, 4]
    handle.reset(Hanging(0))
    publish(source, 6, 9)
    assert seen.numbers == [2, 4, 6, 7, 8], "the same one is begun anew, and meets no event that it cannot take"


@pytest.mark.parametrize("modulator", [FailingDequeue(), FailingPeriod()], ids=["dequeue", "period"])
def test_an_error_that_is_no_events_fault_stops_the_modulator(
    running: MakeHub, viewing: MakeHub, modulator: Modulator
) -> None:
    channel = running().create("trades", Trade)
    opened = viewing().open(channel.id, Trade)
    seen, other = listen(opened, modulator), listen(opened, None)
    publish(channel.source(), 0, 5)
    assert seen.told("RuntimeError").suspended
    assert other.numbers == [0, 1, 2, 3, 4]


def test_trouble_is_told_once_however_often_the_pair_was_reset(trusting: MakeHub, viewing: MakeHub) -> None:
    channel = trusting().create("trades", Trade)
    source, seen = channel.source(), Listener()
    handle = viewing().open(channel.id, Trade).subscribe(seen, modulator=Raising(10), on_trouble=seen.troubles.append)
    for _ in range(5):
        handle.reset(Every(2))
        handle.reset(Raising(10))
    source.submit_sync(trade(10), timeout=30)
    seen.told("event 10 is not liked")
    source.drain(30)
    assert len(seen.troubles) == 1


def test_trouble_is_told_once_though_pairs_that_were_left_have_yet_to_end(trusting: MakeHub, viewing: MakeHub) -> None:
    channel = trusting().create("trades", Trade)
    source, seen = channel.source(), Listener()
    entered, leave = threading.Event(), threading.Event()

    def handle_slowly(_: Trade) -> None:
        entered.set()
        leave.wait(30)

    opened = viewing().open(channel.id, Trade)
    handle = opened.subscribe(handle_slowly, modulator=Raising(10), on_trouble=seen.troubles.append)
    source.submit(trade(1))
    assert entered.wait(30)
    for _ in range(3):
        handle.reset(Every(2))
        handle.reset(Raising(10))
    source.submit(trade(10))
    seen.told("event 10 is not liked")
    leave.set()
    source.drain(30)
    assert len(seen.troubles) == 1


def test_a_handler_that_was_closed_is_told_of_no_trouble(trusting: MakeHub, viewing: MakeHub) -> None:
    channel = trusting().create("trades", Trade)
    source, closed = channel.source(), Listener()
    opened = viewing().open(channel.id, Trade)
    handle = opened.subscribe(closed, modulator=Raising(10), on_trouble=closed.troubles.append)
    seen = listen(opened, Raising(10))
    handle.close()
    source.submit_sync(trade(10), timeout=30)
    seen.told("event 10 is not liked")
    assert not closed.troubles


def test_what_is_not_of_the_declared_type_is_a_fault(running: MakeHub, viewing: MakeHub) -> None:
    channel = running().create("trades", Trade)
    seen, source = listen(viewing().open(channel.id, Trade), Wrong()), channel.source()
    source.submit_sync(trade(1), timeout=30)
    assert "`Wrong.dequeue` gave a `Quote`, expected a `Note`" in seen.told("Wrong").text
    assert not seen.events


# Services


def test_services_are_called_where_the_modulator_runs(running: MakeHub, viewing: MakeHub) -> None:
    channel = running({"desk": Desk()}).create("trades", Trade)
    seen = listen(viewing().open(channel.id, Trade), Asking())
    publish(channel.source(), 0, 10)
    assert [(item.number, item.symbol) for item in seen.events] == [(1, "desk 1"), (3, "desk 1"), (8, "desk 1")]


def test_what_a_service_does_not_offer_or_cannot_do_is_a_fault_of_the_event(running: MakeHub, viewing: MakeHub) -> None:
    hub = running({"desk": Desk(), "other": Desk()})
    channel = hub.create("trades", Trade)
    seen = listen(viewing().open(channel.id, Trade), Prying())
    source = channel.source()
    for number, reason in enumerate(("not public", "missing", "`other` was not granted", "the desk is closed")):
        source.submit_sync(trade(number), timeout=30)
        [counts] = hub.report(hub.address).derivations
        assert reason in counts.fault
        assert counts.faults == number + 1
    source.submit_sync(trade(4), timeout=30)
    assert seen.numbers == [4]


def test_a_source_that_comes_later_and_grants_less_is_told_of_and_the_others_go_on(
    running: MakeHub, viewing: MakeHub
) -> None:
    channel = running().create("trades", Trade)
    generous = channel.source(delegate={"desk": Desk()}.get)
    seen = listen(viewing().open(channel.id, Trade), Asking())
    publish(generous, 0, 4)
    mean = channel.source()
    publish(mean, 0, 4)
    seen.told("requires the service `desk`")
    publish(generous, 8, 9)
    assert seen.numbers == [1, 3, 8]


def test_a_hub_that_comes_later_and_grants_nothing_is_told_of(running: MakeHub, viewing: MakeHub) -> None:
    first, second = running({"desk": Desk()}), running()
    id = first.create("trades", Trade).id
    source = first.open(id, Trade).source()
    seen = listen(viewing().open(id, Trade), Asking())
    late = second.open(id, Trade).source()
    assert seen.told("requires the service `desk`").hub == second.address
    publish(late, 0, 4)
    publish(source, 0, 4)
    assert seen.numbers == [1, 3]
