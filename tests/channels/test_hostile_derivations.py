"""Derivations that are meant to do harm, in the core: code, steps and troubles that nobody honest would send."""

import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from echoic import Array, event, int64
from echoic.channels import Derivation, Directory, Policy, Recipe, Refused, SinkHub, Step, Troubled, Workshop
from echoic.channels import derivation as derivation_module
from echoic.channels import directory as directory_module
from echoic.channels import installing as installing_module
from echoic.channels import portions as portions_module
from echoic.channels.derivation import STATICS_BYTES_MAX
from echoic.channels.installing import build, install, review, troubled
from echoic.channels.manager import Manager
from echoic.channels.messages import Message, Trouble, Tune
from echoic.channels.portions import MADE_BYTES_MAX, RECORD_BYTES_MAX, allowance, portions, split
from echoic.channels.workshop import FORMATS_MAX
from echoic.errors import LimitExceededError
from echoic.formats import NATIVE, Field, Format, Kind
from echoic.wire import Batch
from tests.channels.recipes import LIMITS, LOW, SECOND, TRADE, Trade, wish
from tests.channels.test_derivations import Victim

SLOW = "{ int i; double s = 0; for (i = 0; i < 90000; i++) s += i * input.price; return s >= 0; }"


@event
class Numbers:
    """What one trade may become."""

    n: int64
    values: Array[int64, "n"]


TORRENT = "{ output.n = 10000; output.values[9999] = input.number; return 1; }"
CAPACITIES = (("values", 10_000),)


def trades(count: int) -> Batch:
    return Batch.of([Trade(number, 1.0) for number in range(count)], Trade)


def derivation_of(victim: Victim) -> Derivation:
    [derivation] = victim.core.derivations.values()
    return derivation


def slow_clock(step_ns: int) -> Iterator[int]:
    now = 0
    while True:
        now += step_ns
        yield now


# How much one batch may take


def test_a_portion_is_as_much_as_the_worst_case_allows() -> None:
    batch = trades(1000)
    assert list(portions(batch, 10, 0)) == [batch], "most code gets a batch whole"
    parts = list(portions(batch, portions_module.PORTION_UNITS // 300, 0))
    assert [part.count for part in parts] == [300, 300, 300, 100]
    assert [item.number for part in parts for item in part.events()] == list(range(1000))
    assert [part.count for part in portions(batch, 1, portions_module.PORTION_BYTES // 600)] == [600, 400]
    assert [part.count for part in portions(trades(3), 2**62, 2**40)] == [1, 1, 1]


def test_those_who_come_late_still_have_a_small_allowance() -> None:
    assert allowance(0.5, 0.0) == 0.5
    assert allowance(0.5, 0.4) == pytest.approx(0.1)
    assert allowance(0.5, 100.0) == 0.5 / 16


def test_a_batch_that_takes_too_long_is_given_up_in_its_middle_and_the_source_goes_on() -> None:
    victim = Victim()
    victim.parent.sink = SinkHub("v:1", "block", ("another",))
    step = victim.step(code=SLOW)
    victim.listen(step)
    clock = slow_clock(SECOND // 3)
    shares = installing_module.derive(victim.parent, 5, trades(5000), clock.__next__)
    derivation = derivation_of(victim)
    assert "a batch of 5000 events takes more than 0.5 s" in derivation.suspended
    assert 0 < derivation.counts().events_in < 5000
    assert sum(share.batch.count for share in shares) == derivation.counts().events_out
    assert installing_module.derive(victim.parent, 5, trades(10), clock.__next__) == []


def test_a_source_that_nobody_else_listens_to_is_not_held_up_without_end_either() -> None:
    victim = Victim()
    victim.listen(victim.step(code=SLOW))
    clock = slow_clock(SECOND)
    installing_module.derive(victim.parent, 5, trades(5000), clock.__next__)
    assert "a batch of 5000 events takes more than 5 s" in derivation_of(victim).suspended


def test_a_batch_that_takes_too_long_goes_to_the_sinks_if_they_may_run_it() -> None:
    victim = Victim()
    victim.parent.sink = SinkHub("v:1", "block", ("another",))
    step = victim.step(code=SLOW, placement="auto")
    assert victim.install(step) is None
    derivation = derivation_of(victim)
    [outlet] = derivation.outlets.values()
    outlet.fanout.attach("elsewhere", SinkHub("elsewhere:1"), {})
    derivation.arrange()
    clock = slow_clock(SECOND // 3)
    shares = installing_module.derive(victim.parent, 5, trades(5000), clock.__next__)
    assert derivation.suspended == ""
    assert sum(share.batch.count for share in shares) == 5000, "all pass, derived or not"
    told = [place for place, share in enumerate(shares) if share.placed is not None]
    assert len(told) == 1, "once, in the middle"
    assert told[0] > 0


def test_a_batch_that_becomes_too_large_is_given_up_and_every_frame_fits() -> None:
    victim = Victim(Policy(load_max=1000.0))
    step = victim.step(code=TORRENT, output=Format.of(Numbers).descriptor, capacities=CAPACITIES)
    victim.listen(step)
    shares = victim.submit(*[1.0] * 2000)
    derivation = derivation_of(victim)
    assert "a batch of 2000 events becomes more than" in derivation.suspended
    sizes = [len(share.batch.records) for share in shares]
    assert max(sizes) <= RECORD_BYTES_MAX
    assert sum(sizes) <= MADE_BYTES_MAX + 2 * portions_module.PORTION_BYTES


def test_an_event_that_becomes_larger_than_any_frame_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivation_module, "RECORD_BYTES_MAX", 1000)
    victim = Victim()
    code = "{ output.n = (long) input.price; return 1; }"
    step = victim.step(code=code, output=Format.of(Numbers).descriptor, capacities=CAPACITIES)
    victim.listen(step)
    shares = victim.submit(1.0, 2.0, 500.0, 3.0)
    assert [item.n for share in shares for item in share.batch.to(Numbers).events()] == [1, 2, 3]
    counts = derivation_of(victim).counts()
    assert (counts.faults, counts.suspended) == (1, "")
    assert "bytes, limit is 1000" in counts.fault
    assert victim.submit(500.0) == [], "of nothing but such events nothing is sent"


def test_all_derivations_together_share_the_limits_of_a_batch() -> None:
    victim = Victim()
    steps = [victim.step(code=f"{SLOW[:-1]} /* {number} */ }}") for number in range(3)]
    for step in steps:
        victim.listen(step)
    installing_module.derive(victim.parent, 5, trades(5000), slow_clock(SECOND // 10).__next__)
    spent = [derivation.counts().busy_ns / SECOND for derivation in victim.core.derivations.values()]
    assert spent[0] > 0.5
    assert max(spent[1:]) < 0.3, "what the first has spent is not there for the others"


def test_memory_that_is_not_there_suspends_and_hurts_nobody() -> None:
    format = Format.place(
        "Huge", [Field("n", Kind.INT, 8), Field("v", Kind.INT, 8, dimensions=("n", 1_000_000))], NATIVE
    )
    recipe = Recipe("t", "{ output.n = 0; return 1; }", output=format.descriptor, capacities=(("v", 1_000_000),))
    step = Step("d", "d", recipe, input=TRADE.descriptor)
    policy = Policy(cost_max=2**62)
    derivation = Derivation("v:1", step, None, policy)
    derivation.equip(Workshop(step, policy))
    assert derivation.apply(derivation.instance(1), trades(3)) == {}
    assert "no memory" in derivation.suspended


def test_a_review_relieves_the_hub_of_all_that_are_too_much() -> None:
    victim = Victim(Policy(load_max=0.25))
    steps = [victim.step(code=f"input.price < {number}.0") for number in range(4)]
    for step in steps:
        victim.listen(step)
    victim.submit(1.0)
    review(victim.core, SECOND)
    for derivation, share in zip(victim.core.derivations.values(), (0.9, 0.05, 0.8, 0.1), strict=True):
        [instance] = derivation.instances.values()
        instance.busy_ns += int(share * SECOND)
    review(victim.core, 2 * SECOND)
    assert [bool(derivation.suspended) for derivation in victim.core.derivations.values()] == [
        True,
        False,
        True,
        False,
    ]


def test_parts_for_frames_hold_every_event_once() -> None:
    assert list(split(trades(0))) == []
    assert [part.count for part in split(trades(10))] == [10]


# What a peer can make a hub keep, or do


def test_copies_for_the_sources_of_a_peer_have_a_limit_in_bytes() -> None:
    step = Step("d", "d", Recipe("t", "{ static long s[8000]; s[0]++; return 1; }"), input=TRADE.descriptor)
    derivation = Derivation("v:1", step, None, Policy())
    derivation.equip(Workshop(step, Policy()))
    most = STATICS_BYTES_MAX // len(derivation.instance(0).statics)
    for source in range(most + 100):
        derivation.instance(source)
    assert len(derivation.instances) == most
    assert most + 99 in derivation.instances


def test_ever_more_types_are_converted_and_not_compiled_for() -> None:
    step = Step("d", "d", Recipe("t", "input.price < 5.0"), input=TRADE.descriptor)
    workshop = Workshop(step, Policy())
    kernels = []
    for number in range(3 * FORMATS_MAX):
        fields = [*TRADE.fields, Field(f"extra{number}", Kind.INT, 8)]
        wider = Format.place(f"Trade{number}", fields, NATIVE)
        kernels.append(workshop.kernel_for(wider))
    assert sum(kernel is not None for kernel in kernels) == FORMATS_MAX - 1
    assert workshop.kernel_for(TRADE) is workshop.main


def test_a_mistake_of_the_compiler_is_told_to_whoever_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a case that nobody thought of")

    monkeypatch.setattr(installing_module, "Workshop", broken)
    victim = Victim()
    refused = victim.install(victim.step())
    assert isinstance(refused, Refused)
    assert "a case that nobody thought of" in refused.reason
    assert victim.core.derivations == {}


def test_what_was_removed_meanwhile_is_not_compiled() -> None:
    victim = Victim()
    replies: list[Refused | None] = []
    for number in range(20):
        changed = Recipe("trades", f"input.price < {number}.0")
        step = Step("d", "d", changed, input=TRADE.descriptor)
        install(victim.core, "v:1", (step,), replies.append)
    waiting = [effect.derivation for effect in victim.core.effects]
    assert len(waiting) == 20
    assert [isinstance(build(derivation), Refused) for derivation in waiting] == [True] * 19 + [False]
    victim.compile()
    assert [reply is None for reply in replies] == [False] * 19 + [True]


def test_two_channels_cannot_stand_at_one_port() -> None:
    victim = Victim()
    recipe = Recipe("trades", "input.price < 5.0")
    first, second = (Step(name, "g", recipe, input=TRADE.descriptor) for name in ("first", "second"))
    assert victim.install(first) is None
    refused = victim.install(second)
    assert refused is not None
    assert "derived in another way" in refused.reason
    assert [outlet.name for outlet in derivation_of(victim).outlets.values()] == ["first"]


def test_a_channel_that_is_open_here_cannot_be_made_a_derived_one_from_outside() -> None:
    victim = Victim()
    victim.core.manager.directory.create("orders", TRADE)
    orders = victim.core.open(type(victim.id)("v:1", "orders"), TRADE)
    refused = victim.install(Step("orders", "orders", Recipe("trades", "1"), input=TRADE.descriptor))
    assert refused is not None
    assert "not derived" in refused.reason
    assert orders.origin is None


def test_long_troubles_are_cut() -> None:
    victim = Victim()
    step = victim.step()
    victim.listen(step)
    victim.core.effects.clear()
    troubled(victim.core, Trouble(f"echoic://v:1/{step.name}", "h" * 10**6, "x" * 10**6))
    [effect] = victim.core.effects
    assert isinstance(effect, Troubled)
    assert len(effect.trouble.text) + len(effect.trouble.hub) < 5000


def test_a_manager_that_tells_of_a_lineage_without_end_does_not_hold_a_source_up() -> None:
    victim = Victim()
    names = ["trades", *(f"d{number}" for number in range(20_000))]
    heard = [Step(name, name, Recipe(parent, "1"), input=TRADE.descriptor) for parent, name in pairwise(names)]
    began, done = time.process_time(), list[bool]()
    installing_module.install_heard(victim.core, victim.parent, heard, lambda *_: done.append(True))
    victim.compile()
    assert time.process_time() - began < 5.0
    assert len(victim.core.derivations) <= directory_module.LINEAGE_MAX


# The manager's book


def test_a_hub_that_always_has_later_parameters_is_not_asked_for_ever() -> None:
    manager = Manager("m:1")
    manager.directory.create("trades", TRADE)
    manager.directory.derive(wish(code="(int) param.low", name="d", params=LIMITS.descriptor, values=LOW))
    manager.directory.join_source("trades", "liar:1")
    asked: list[Tune] = []
    answers: list[object] = []

    def ask(_: str, message: Message, answer: Callable[[Message], None]) -> None:
        assert isinstance(message, Tune)
        assert len(asked) < 100
        asked.append(message)
        answer(Tune(message.channel, LOW, message.version + 5))

    manager.tune(Tune("d", LOW), ask, answers.append)
    assert len(answers) == 1
    assert len(asked) == len({message.version for message in asked}) <= 10


def test_a_channel_is_never_forgotten_to_make_room_for_what_is_derived_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    book = Directory()
    book.create("trades", TRADE)
    book.derive(wish(code="1 /* parent */", name="parent"))
    book.derive(wish(code="1 /* idle */", name="idle"))
    monkeypatch.setattr(directory_module, "DERIVED_BYTES_MAX", book.derived_bytes)
    [child] = book.derive(wish("parent", "1", name="child"))
    assert [one.name for one in book.lineage(child.name)] == ["parent", "child"]
    assert "idle" not in book
    with pytest.raises(LimitExceededError):
        book.derive(wish("child", "1", name="grandchild"))
    assert book.remove("child").name == "child"


def test_the_bytes_of_recipes_are_counted_whatever_is_done_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    book = Directory()
    book.create("trades", TRADE)
    options = {"params": LIMITS.descriptor, "values": LOW}
    steps = book.derive(wish(code="(int) param.low", name="routed", ports=3, **options))
    for step in steps:
        book.join_sink(step.name, SinkHub("s:1"))
    before = book.derived_bytes
    book.tune("routed.1", LOW)
    assert book.derived_bytes == before
    monkeypatch.setattr(directory_module, "DERIVED_BYTES_MAX", before)
    with pytest.raises(LimitExceededError):
        book.derive(wish(code="1"))
    for step in steps:
        book.remove(step.name)
    assert book.derived_bytes == 0


def test_small_recipes_are_not_for_nothing() -> None:
    book = Directory()
    book.create("trades", TRADE)
    book.derive(wish(code="1"))
    assert book.derived_bytes >= directory_module.CHANNEL_BYTES
