"""Derivations in the core: installing in a hub that has sources, what hostile peers ask for, placement, load."""

from random import Random
from typing import Any

import msgspec
import pytest

from echoic.channels import (
    ChannelId,
    Compile,
    Concentrator,
    Derivation,
    Message,
    Policy,
    Refused,
    Share,
    SinkHub,
    Step,
    Troubled,
    Workshop,
    build,
    compiled,
    derive,
    ignore,
    messages,
    send_share,
)
from echoic.channels import derivation as derivation_module
from echoic.channels.installing import install, remove, review
from echoic.errors import (
    RefusedError,
)
from echoic.wire import Batch
from tests.channels.recipes import HIGH, LIMITS, LOW, MEAN, SECOND, TRADE, Trade, recipe, wish

# Installing


class Victim:
    """A hub with a source, and a book of its own; compiling is done when a test says so."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.core = Concentrator("v", "v:1", "victim", policy=policy)
        self.core.tick(SECOND // 2)
        self.core.manager.directory.create("trades", TRADE)
        self.id = ChannelId("v:1", "trades")
        self.parent = self.core.open(self.id, TRADE)
        self.parent.sources[5] = 0
        self.core.join(self.parent, "source", ignore)
        self.now = SECOND

    def step(self, **options: object) -> Step:
        [step] = self.core.manager.directory.derive(wish(**options))
        return step

    def install(self, *lineage: Step, manager: str = "v:1") -> Refused | None:
        replies: list[Refused | None] = []
        install(self.core, manager, lineage, replies.append)
        self.compile()
        [reply] = replies
        return reply

    def compile(self) -> None:
        while any(isinstance(effect, Compile) for effect in self.core.effects):
            effects = self.core.effects[:]
            self.core.effects.clear()
            for effect in effects:
                if isinstance(effect, Compile):
                    compiled(self.core, effect.derivation, build(effect.derivation))

    def ask(self, message: Message) -> Message:
        replies: list[Message] = []
        self.core.ask("v:1", message, replies.append)
        self.compile()
        [reply] = replies
        return reply

    def listen(self, step: Step) -> None:
        member = self.core.open(ChannelId("v:1", step.name), None)
        member.lineage = self.core.manager.directory.lineage(step.name)
        member.sink = SinkHub("v:1", "block", ("sink",))
        replies: list[Message] = []
        self.core.join(member, "sink", replies.append)
        self.compile()
        assert isinstance(replies[0], messages.Joined), replies

    def submit(self, *prices: float) -> list[Share]:
        batch = Batch.of([Trade(number, price) for number, price in enumerate(prices)], Trade)
        shares = derive(self.parent, 5, batch, self.clock)
        self.core.submit(self.parent, 5, batch)
        for share in shares:
            send_share(self.core, share)
        return shares

    def clock(self) -> int:
        self.now += 1000
        return self.now


def test_a_derivation_is_at_work_once_it_is_compiled_and_heard() -> None:
    victim = Victim()
    step = victim.step()
    assert victim.install(step) is None
    assert victim.parent.derivations == (), "nobody listens"
    victim.listen(step)
    [share] = victim.submit(1.0, 7.0, 3.0)
    assert [item.price for item in share.batch.to(Trade).events()] == [1.0, 3.0]
    [derivation] = victim.core.derivations.values()
    assert (derivation.counts().events_in, derivation.counts().events_out) == (3, 2)


def test_code_that_is_wrong_is_refused_and_leaves_nothing() -> None:
    victim = Victim()
    refused = victim.install(victim.step(code="input.prise < 3"))
    assert refused is not None
    assert "prise" in refused.reason
    assert not victim.core.derivations
    member = victim.core.members.get(str(ChannelId("v:1", "trades.x")))
    assert member is None


def test_what_waits_for_a_compilation_goes_on_together() -> None:
    victim = Victim()
    step = victim.step()
    replies: list[Refused | None] = []
    for _ in range(3):
        install(victim.core, "v:1", [step], replies.append)
    assert replies == []
    assert sum(isinstance(effect, Compile) for effect in victim.core.effects) == 1
    victim.compile()
    assert replies == [None] * 3


def test_a_derivation_that_is_removed_leaves_the_source_alone() -> None:
    victim = Victim()
    step = victim.step()
    victim.listen(step)
    victim.submit(1.0)
    [key] = victim.core.derivations
    remove(victim.core, key)
    assert victim.submit(1.0) == []
    assert victim.parent.sources == {5: 2}
    assert victim.install(step) is None
    assert len(victim.submit(1.0)) == 1


def test_without_sources_there_is_nothing_to_install() -> None:
    victim = Victim()
    assert victim.install(wish("elsewhere", name="x")) is None
    assert not victim.core.derivations


def test_hostile_steps_are_refused_without_harm() -> None:
    victim = Victim()
    good = victim.step()
    victim.listen(good)
    cases = [
        msgspec.structs.replace(good, group="a", name="a", input=b"\xff" * 40),
        msgspec.structs.replace(good, group="b", name="b", input=MEAN.descriptor),
        msgspec.structs.replace(good, group="c", name="c", recipe=recipe(output=b"\x00")),
        msgspec.structs.replace(good, group="d", name="d", recipe=recipe(params=b"\x01" * 9)),
        msgspec.structs.replace(good, group="e", name="e", recipe=recipe(params=LIMITS.descriptor), values=b"1"),
        msgspec.structs.replace(good, group="f", name="f", recipe=recipe(ports=2**60), port=2**60),
        msgspec.structs.replace(good, group="g", name="g", recipe=recipe(capacities=(("x", 2**60),))),
        msgspec.structs.replace(good, group="h", name="h", recipe=recipe(code="")),
        msgspec.structs.replace(good, group="i", name="i", recipe=recipe(code="(" * 60_000)),
        msgspec.structs.replace(good, group="", name="", recipe=recipe()),
        msgspec.structs.replace(good, group="j", name="\x00" * 900, recipe=recipe()),
        msgspec.structs.replace(good, group="k", name="k", version=2**64 - 1),
    ]
    for case in cases:
        sink = SinkHub("v:1", "block", (), "v", 1)
        victim.ask(messages.Attach(str(ChannelId("v:1", case.name or "x")), sink, (case,)))
        for member in list(victim.core.members.values()):
            if member.id != str(victim.id) and member.origin is not None:
                member.sink = member.sink or SinkHub("v:1")
                member.origin.arrange()
        victim.submit(1.0, 2.0)
    assert [share.batch.count for share in victim.submit(1.0) if share.member.name == good.name] == [1]


def test_a_lineage_that_is_too_long_or_bites_its_tail_ends() -> None:
    victim = Victim()
    first = victim.step(name="one")
    long = [msgspec.structs.replace(first, name=f"n{n}", group=f"n{n}", recipe=recipe(f"n{n - 1}")) for n in range(500)]
    refused = victim.install(*long)
    assert refused is not None
    assert "500" in refused.reason
    tail = [
        msgspec.structs.replace(first, name="a", group="a", recipe=recipe("b")),
        msgspec.structs.replace(first, name="b", group="b", recipe=recipe("a")),
    ]
    assert victim.install(*tail) is None
    assert victim.install(*[msgspec.structs.replace(first, recipe=recipe("one"))] * 3) is None
    itself = msgspec.structs.replace(first, name="trades", group="trades")
    victim.install(itself, msgspec.structs.replace(first, recipe=recipe("trades")))
    victim.listen(first)
    assert [share.member.name for share in victim.submit(1.0)].count("one") >= 1


def test_requests_about_what_is_not_there_are_refused() -> None:
    victim = Victim()
    step = victim.step(params=LIMITS.descriptor, code="input.price < param.low", values=LOW)
    victim.listen(step)
    id = str(ChannelId("v:1", step.name))
    for message in (
        messages.Tune("nowhere", b""),
        messages.Tune("trades", b""),
        messages.Tune(step.name, bytes(2 * 1024 * 1024)),
        messages.Tune("echoic://v:1/nowhere", b"", 3),
        messages.Restore(id, {0: b"too long"}),
        messages.Derive(wish("nowhere")),
    ):
        assert isinstance(victim.ask(message), Refused), message
    assert victim.ask(messages.Save("echoic://v:1/nowhere")) == messages.Saved({})
    assert len(victim.submit(1.0, 7.0)) == 1


def test_parameters_of_a_wrong_size_suspend_and_right_ones_mend() -> None:
    victim = Victim()
    step = victim.step(params=LIMITS.descriptor, code="input.price < param.low", values=LOW)
    victim.listen(step)
    for values in (b"", b"1234", bytes(99)):
        reply = victim.ask(messages.Tune(step.name, values))
        shares = victim.submit(1.0, 7.0)
        assert isinstance(reply, Refused) or shares == []
    victim.ask(messages.Tune(step.name, HIGH))
    [share] = victim.submit(1.0, 7.0, 11.0)
    assert share.batch.count == 2


def test_an_old_version_of_parameters_is_not_taken() -> None:
    victim = Victim()
    step = victim.step(params=LIMITS.descriptor, code="input.price < param.low", values=LOW)
    victim.listen(step)
    id = str(ChannelId("v:1", step.name))
    for version, values in ((3, HIGH), (2, LOW), (3, LOW)):
        victim.ask(messages.Tune(id, values, version))
    [share] = victim.submit(7.0)
    assert share.batch.count == 1


def test_hostile_steps_do_not_fill_the_memory() -> None:
    victim = Victim(Policy(derivations_max=8))
    good = victim.step()
    draw = Random(7)
    for number in range(2000):
        step = msgspec.structs.replace(
            good,
            name=f"x{number}",
            group=draw.choice([f"x{number}", "same"]),
            port=draw.choice([0, number]),
            recipe=recipe(ports=draw.choice([0, 64])),
        )
        message = messages.Attach(str(ChannelId("v:1", step.name)), SinkHub("v:1", "block", (), "v", 1), (step,))
        victim.core.ask("v:1", message, ignore)
        victim.compile()
    assert len(victim.core.derivations) <= 8
    assert sum(len(derivation.outlets) for derivation in victim.core.derivations.values()) <= 8 * 64
    assert len(victim.core.members) < 200


# Lone events


def test_a_lone_event_is_rejected_by_the_parameters_of_the_day() -> None:
    victim = Victim()
    step = victim.step(params=LIMITS.descriptor, code="input.price < param.low", values=LOW)
    victim.listen(step)
    [derivation] = victim.core.derivations.values()
    lone = bytes(Batch.of([Trade(1, 7.0)], Trade).records)
    assert derivation.rejects(TRADE, lone, 1)
    victim.ask(messages.Tune(step.name, HIGH))
    assert not derivation.rejects(TRADE, lone, 1)
    derivation.suspend("for a test")
    assert not derivation.rejects(TRADE, lone, 1), "that is for the batch to find out"


@pytest.mark.parametrize("passing", [0, 299, 300, 599, None])
def test_a_batch_is_turned_away_if_no_event_of_it_passes(passing: int | None) -> None:
    victim = Victim()
    victim.listen(victim.step(code="input.price < 3"))
    [derivation] = victim.core.derivations.values()
    trades = [Trade(number, 1.0 if number == passing else 7.0) for number in range(600)]
    assert derivation.rejects(TRADE, Batch.of(trades, Trade).records, 600) == (passing is None)


@pytest.mark.parametrize(
    "code",
    [
        "{ static int n; n++; return 0; }",
        "{ long i; double s = 0; for (i = 0; i < 5000; i++) s += sqrt(i + input.price); return s < 0; }",
        "{ while (input.number > 5) { } return 0; }",
    ],
    ids=["with state", "heavy", "without a bound"],
)
def test_a_lone_event_is_not_turned_away_by_code_that_must_be_counted(code: str) -> None:
    victim = Victim()
    victim.listen(victim.step(code=code))
    [derivation] = victim.core.derivations.values()
    assert not derivation.rejects(TRADE, bytes(Batch.of([Trade(1, 7.0)], Trade).records), 1)
    assert victim.submit(7.0) == []
    assert derivation.counts().busy_ns > 0


# Placement and review


class Load:
    """A derivation whose clock stands still unless a test says how long the code takes."""

    def __init__(self, placement: str, **policy: object) -> None:
        self.victim = Victim(Policy(**policy))
        self.step = self.victim.step(placement=placement)
        self.victim.listen(self.step)
        self.member = self.victim.core.members[str(ChannelId("v:1", self.step.name))]
        [self.derivation] = self.victim.core.derivations.values()
        review(self.victim.core, SECOND)

    def run(self, busy_ns: int, *, rejected: float, events: int = 1000) -> None:
        prices = [9.0 if place < rejected * events else 1.0 for place in range(events)]
        batch = Batch.of([Trade(number, price) for number, price in enumerate(prices)], Trade)
        times = iter([0, busy_ns])
        derive(self.victim.parent, 5, batch, lambda: next(times))


def attach(member_of: Load, hubs: int) -> None:
    for number in range(hubs):
        member_of.member.fanout.attach(f"h{number}", SinkHub(f"h{number}:1", subscription=1))


def test_auto_runs_where_it_costs_the_source_less() -> None:
    load = Load("auto", load_max=100.0)
    attach(load, 1)
    load.run(10_000_000, rejected=0.0)
    load.derivation.review(2 * SECOND)
    assert load.derivation.counts().placement == "sink", "it rejects nothing"
    load.run(1000, rejected=1.0)
    load.derivation.review(3 * SECOND)
    assert load.derivation.counts().placement == "source", "it rejects everything at once"
    load.run(1000, rejected=1.0)
    load.derivation.review(4 * SECOND)
    assert load.derivation.counts().placement == "source"


def test_what_has_hardly_run_is_not_moved() -> None:
    load = Load("auto", load_max=100.0)
    attach(load, 1)
    load.run(10_000_000, rejected=0.0, events=10)
    load.derivation.review(2 * SECOND)
    assert load.derivation.counts().placement == "source"


def test_a_load_above_the_limit_suspends_the_busiest_and_tells() -> None:
    load = Load("source", load_max=0.25)
    load.run(SECOND // 2, rejected=1.0)
    review(load.victim.core, 2 * SECOND)
    assert "0.50 of a processor" in load.derivation.suspended
    assert "0.25" in load.derivation.suspended
    troubles = [effect for effect in load.victim.core.effects if isinstance(effect, Troubled)]
    assert [effect.trouble.suspended for effect in troubles] == [True]
    refused = load.victim.install(load.victim.step(code="input.price < 1.0"))
    assert refused is not None
    assert "0.50 of a processor" in refused.reason
    assert "0.25" in refused.reason
    review(load.victim.core, 3 * SECOND)
    assert load.victim.install(load.victim.step(code="input.price < 1.0")) is None


def test_a_load_below_the_limit_is_left_alone() -> None:
    load = Load("source", load_max=0.25)
    load.run(SECOND // 5, rejected=1.0)
    review(load.victim.core, 2 * SECOND)
    assert load.derivation.suspended == ""
    assert load.derivation.review(2 * SECOND) == 0.0


def test_an_auto_derivation_that_is_too_busy_goes_to_the_sinks() -> None:
    load = Load("auto", load_max=0.25)
    attach(load, 1)
    load.run(SECOND // 2, rejected=1.0)
    review(load.victim.core, 2 * SECOND)
    assert load.derivation.suspended == ""
    assert load.derivation.counts().placement == "sink"


def test_a_peer_says_where_events_are_derived_as_it_likes_and_nothing_breaks() -> None:
    draw = Random(3)
    member = Victim().parent
    member.lineage = (wish(),)
    for _ in range(3000):
        numbers = [draw.choice((0, 1, 5, 2**63, 2**64 - 1)) for _ in range(3)]
        member.place(messages.Placed(1, numbers[0], numbers[1], draw.random() < 0.5))
        assert member.is_raw(numbers[0], numbers[2]) in (True, False)


def test_a_compiled_derivation_belongs_to_its_step() -> None:
    step = msgspec.structs.replace(wish(name="x"), input=TRADE.descriptor)
    workshop = Workshop(step, Policy())
    assert workshop.statics == b""
    with pytest.raises(RefusedError, match=r"may cost \d+ units, the limit here is 1 "):
        Workshop(step, Policy(cost_max=1))
    derivation = Derivation("v:1", step, None, Policy(derive=False))
    refused = build(derivation)
    assert isinstance(refused, Refused)
    assert "runs no code of others" in refused.reason


def test_the_time_it_takes_to_compile_code_for_sinks_of_its_own_is_not_that_of_the_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    victim = Victim(Policy(derive=False))

    def compiled_slowly(*arguments: Any) -> Workshop:
        victim.now += 100 * SECOND
        return Workshop(*arguments)

    monkeypatch.setattr(derivation_module, "Workshop", compiled_slowly)
    victim.listen(victim.step(placement="auto"))
    assert len(victim.submit(1.0)) == 1
    [derivation] = victim.core.derivations.values()
    assert victim.now > 100 * SECOND
    assert derivation.counts().busy_ns < SECOND
