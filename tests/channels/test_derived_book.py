"""Derived channels in the manager's book, and the messages about them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.channels import (
    Directory,
    Message,
    Recipe,
    SinkHub,
    Step,
    messages,
)
from echoic.channels import directory as directory_module
from echoic.channels.messages import decode_message, encode_message
from echoic.errors import (
    ChannelExistsError,
    ChannelNotFoundError,
    EchoicError,
    FormatError,
    LimitExceededError,
    MalformedFrameError,
    RefusedError,
)
from tests.channels.recipes import HIGH, LIMITS, LOW, MEAN, TRADE, wish


@pytest.fixture
def book() -> Directory:
    directory = Directory()
    directory.create("trades", TRADE)
    return directory


# The manager's book


def test_the_same_recipe_is_entered_once(book: Directory) -> None:
    [first] = book.derive(wish())
    assert book.derive(wish()) == (first,)
    assert first.name == first.group
    assert first.name.startswith("trades.")
    assert first.input == TRADE.descriptor
    [apart] = book.derive(wish(), share=False)
    [further] = book.derive(wish(), share=False)
    assert len({first.name, apart.name, further.name}) == 3
    assert book.derive(wish()) == (first,), "those that are not shared do not take its place"


def test_a_router_is_entered_with_all_its_ports(book: Directory) -> None:
    steps = book.derive(wish(ports=3, name="routed"))
    assert [(step.name, step.group, step.port) for step in steps] == [
        (f"routed.{port}", "routed", port) for port in range(3)
    ]
    assert book.derive(wish(ports=3, name="routed")) == steps
    assert book.derive(wish(ports=3)) == steps, "what has a name can be shared by those who name nothing"


def test_a_name_that_is_taken_leaves_nothing_behind(book: Directory) -> None:
    book.create("routed.1", TRADE)
    with pytest.raises(ChannelExistsError, match=r"routed\.1"):
        book.derive(wish(ports=3, name="routed"))
    assert [entry.name for entry in book.entries("a:1")] == ["routed.1", "trades"]


def test_two_groups_of_one_name_do_not_go_together(book: Directory) -> None:
    book.create("quotes", TRADE)
    book.derive(wish(ports=2, name="mine"))
    with pytest.raises(ChannelExistsError, match="mine"):
        book.derive(wish("quotes", name="mine"))
    book.derive(wish(name="yours"))
    with pytest.raises(ChannelExistsError, match="yours"):
        book.derive(wish("quotes", ports=2, name="yours"))


def test_a_lineage_goes_from_the_first_derivation_to_the_last(book: Directory) -> None:
    book.derive(wish(name="one"))
    book.derive(wish("one", output=MEAN.descriptor, name="two"))
    book.derive(wish("two", "input.mean > 1", name="three"))
    assert book.lineage("trades") == ()
    assert [step.name for step in book.lineage("three")] == ["one", "two", "three"]
    assert book.get("one").format == TRADE
    assert book.get("three").format == MEAN
    assert book.lineage("three")[2].input == MEAN.descriptor


def test_only_what_leads_to_sinks_is_heard(book: Directory) -> None:
    for name, parent in (("one", "trades"), ("two", "one"), ("three", "two"), ("silent", "two"), ("other", "trades")):
        book.derive(wish(parent, name=name))
    assert book.heard("trades") == ()
    book.join_sink("three", SinkHub("s:1"))
    assert [step.name for step in book.heard("trades")] == ["one", "two", "three"]
    assert [step.name for step in book.heard("two")] == ["three"]
    book.join_sink("one", SinkHub("s:1"))
    book.leave_sink("three", "s:1")
    assert [step.name for step in book.heard("trades")] == ["one"]


def test_those_with_sources_of_a_parent_are_origins(book: Directory) -> None:
    book.derive(wish(name="one"))
    book.derive(wish("one", name="two"))
    book.join_source("trades", "a:1")
    book.join_source("one", "b:1")
    book.join_source("two", "c:1")
    assert book.origins("trades") == {"a:1"}
    assert book.origins("two") == {"a:1", "b:1", "c:1"}
    assert book.join_sink("two", SinkHub("s:1")) == ["a:1", "b:1", "c:1"]
    book.strike("two", "a:1")
    assert book.origins("trades") == set()
    assert book.origins("two") == {"b:1", "c:1"}
    [entry] = [entry for entry in book.entries("m:1") if entry.name == "two"]
    assert (entry.parent, entry.sources, entry.sinks) == ("one", 2, 1)


def test_parameters_have_versions_and_the_channel_is_found_under_them(book: Directory) -> None:
    parametrised = {"params": LIMITS.descriptor, "code": "input.price < param.low"}
    [step] = book.derive(wish(**parametrised, values=LOW))
    [tuned] = book.tune(step.name, HIGH)
    assert (tuned.name, tuned.version, tuned.values) == (step.name, 1, HIGH)
    assert book.derive(wish(**parametrised, values=HIGH)) == (tuned,)
    [other] = book.derive(wish(**parametrised, values=LOW))
    assert other.name != step.name
    book.tune(other.name, HIGH)
    assert book.derive(wish(**parametrised, values=HIGH)) == (tuned,), "the first one stays"
    assert book.derive(wish(**parametrised, values=LOW))[0].name not in (step.name, other.name)
    ports = book.derive(wish(**parametrised, values=LOW, ports=2))
    assert [one.version for one in book.tune(ports[1].name, HIGH)] == [1, 1]
    with pytest.raises(RefusedError, match="`trades` has no parameters"):
        book.tune("trades", HIGH)


def test_what_is_derived_goes_with_its_parent(book: Directory) -> None:
    book.derive(wish(name="one"))
    book.derive(wish("one", name="two"))
    book.remove("one")
    assert [entry.name for entry in book.entries("a:1")] == ["trades"]
    [again] = book.derive(wish())
    assert again.name.startswith("trades."), "nobody is led to what is gone"
    book.remove("trades")
    assert book.entries("a:1") == []


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (wish("nowhere"), ChannelNotFoundError),
        (wish("untyped"), FormatError),
        (wish(ports=65), RefusedError),
        (wish(ports=-1), RefusedError),
        (wish(ports=2**62), RefusedError),
        (wish(code="1" * 70_000), RefusedError),
        (wish(params=LIMITS.descriptor, values=bytes(2 * 1024 * 1024)), EchoicError),
        (wish(output=b"no descriptor"), EchoicError),
        (wish(name="no name"), EchoicError),
        (wish(name="n" * 300), EchoicError),
        (msgspec.structs.replace(wish(), version=2**64 - 1), EchoicError),
        (msgspec.structs.replace(wish(), version=-1), EchoicError),
    ],
)
def test_what_cannot_be_derived_is_refused_and_not_entered(
    book: Directory, step: Step, error: type[EchoicError]
) -> None:
    book.create("untyped", None)
    with pytest.raises(error):
        book.derive(step)
    assert [entry.name for entry in book.entries("a:1")] == ["trades", "untyped"]


def test_a_lineage_has_a_limit(book: Directory) -> None:
    parent = "trades"
    for depth in range(directory_module.LINEAGE_MAX):
        [step] = book.derive(wish(parent, name=f"depth-{depth}"))
        parent = step.name
    with pytest.raises(LimitExceededError, match=str(directory_module.LINEAGE_MAX)):
        book.derive(wish(parent))


def test_idle_channels_make_room_and_busy_ones_do_not(book: Directory) -> None:
    names = [book.derive(wish(code=f"{number}"))[0].name for number in range(directory_module.DERIVED_MAX)]
    book.join_sink(names[0], SinkHub("s:1"))
    book.derive(wish(names[1], name="child-of-second"))
    book.derive(wish(code="one more"))
    left = {entry.name for entry in book.entries("m:1")}
    assert names[0] in left
    assert names[1] in left
    assert names[2] not in left
    for entry in book.entries("m:1"):
        if entry.parent == "trades":
            book.join_sink(entry.name, SinkHub("s:1"))
    with pytest.raises(LimitExceededError, match=str(directory_module.DERIVED_MAX)):
        book.derive(wish(code="too many"))


def test_a_router_that_makes_room_goes_as_a_whole(book: Directory) -> None:
    book.derive(wish(ports=2, name="routed"))
    book.derive(wish(ports=2, name="used"))
    book.join_sink("used.1", SinkHub("s:1"))
    for number in range(directory_module.DERIVED_MAX - 3):
        book.derive(wish(code=f"{number}"))
    left = {entry.name for entry in book.entries("m:1")}
    assert {"used.0", "used.1"} <= left
    assert not {"routed.0", "routed.1"} & left
    assert len(book.derive(wish(ports=2, name="routed"))) == 2


def test_a_book_begun_anew_takes_over_what_others_know(book: Directory) -> None:
    lineage = [*book.derive(wish(name="one")), *book.derive(wish("one", ports=2, name="two"))[1:]]
    again = Directory()
    again.create("trades", TRADE)
    again.adopt(lineage)
    assert [entry.name for entry in again.entries("m:1")] == ["one", "trades", "two.0", "two.1"]
    assert again.lineage("two.1") == tuple(lineage)
    again.adopt(lineage)
    assert again.lineage("two.1") == tuple(lineage)
    with pytest.raises(ChannelNotFoundError):
        Directory().adopt(lineage)


def test_a_book_begun_anew_ends_up_with_the_latest_parameters() -> None:
    parametrised = {"params": LIMITS.descriptor, "code": "input.price < param.low", "name": "low"}
    [stale] = book_of_trades().derive(wish(**parametrised, values=LOW))
    latest = msgspec.structs.replace(stale, values=HIGH, version=7)
    for order in ((stale, latest), (latest, stale)):
        again = book_of_trades()
        for step in order:
            again.adopt([step])
        [tuned] = again.lineage("low")
        assert (tuned.values, tuned.version) == (HIGH, 7)
        assert again.tune("low", LOW)[0].version == 8


def book_of_trades() -> Directory:
    directory = Directory()
    directory.create("trades", TRADE)
    return directory


# Messages

binaries, texts, numbers = st.binary(max_size=9), st.text(max_size=9), st.integers(0, 2**64 - 1)
recipes = st.builds(
    Recipe,
    texts,
    texts,
    st.sampled_from(["ecode", "python"]),
    binaries,
    binaries,
    numbers,
    st.lists(st.tuples(texts, numbers), max_size=2).map(tuple),
    st.sampled_from(["source", "sink", "auto"]),
)
steps = st.builds(Step, texts, texts, recipes, binaries, numbers, numbers, binaries)
lineages = st.lists(steps, max_size=3).map(tuple)
states = st.dictionaries(numbers, binaries, max_size=3)


@given(
    st.one_of(
        st.builds(messages.Derive, steps, st.booleans()),
        st.builds(messages.DerivedAs, lineages),
        st.builds(messages.Tune, texts, binaries, numbers),
        st.builds(messages.Save, texts),
        st.builds(messages.Saved, states, binaries),
        st.builds(messages.Restore, texts, states),
        st.builds(messages.Placed, numbers, numbers, numbers, st.booleans()),
        st.builds(messages.Trouble, texts, texts, texts, numbers, st.booleans()),
        st.builds(messages.Attach, texts, st.just(SinkHub("a:1")), lineages),
        st.builds(messages.Join, texts, st.just("sink"), st.just(SinkHub("a:1")), lineages),
        st.builds(messages.Described, texts, binaries, st.just([]), st.just([]), lineages),
    )
)
def test_messages_about_derivations_survive_their_way(message: Message) -> None:
    assert decode_message(encode_message(3, message)).message == message


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "Tune", "channel": 3, "values": b"", "version": 1},
        {"type": "Placed", "number": 1, "source": "one", "first": 0, "here": True},
        {"type": "Derive", "step": {"name": "n", "group": "g", "recipe": {"parent": "p"}}},
        {"type": "Derive", "step": {"name": "n", "group": "g", "recipe": {"parent": "p", "code": "", "spelling": "x"}}},
        {"type": "Restore", "channel": "c", "states": {"zero": b""}},
    ],
)
def test_messages_that_are_none_are_refused(broken: dict[str, object]) -> None:
    with pytest.raises(MalformedFrameError):
        decode_message(msgspec.msgpack.encode((1, False, broken)))
