"""Uniform, primary, up to date: by hand, case by case, and by seeds."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from echoic.errors import LocalError, MalformedFrameError
from echoic.groups.agreement import Agreement
from echoic.groups.agreement.messages import (
    CONTROL,
    VERSION,
    Admitted,
    Caught,
    Control,
    Missed,
    Outgoing,
    Pack,
    Place,
    State,
    decode_ack,
    decode_control,
    decode_pack,
    encode_ack,
    encode_control,
    encode_pack,
)
from echoic.groups.agreement.primary import decide
from echoic.groups.engine import Delivered, Ended, EngineEvent, Restored, StateWanted, Suspended, Viewed
from echoic.testing.planted_agreement import BUGS
from echoic.testing.simulated_agreement import EpochBook, run_agreement

NAMES = ("a", "b", "c")
SECOND_NS = 1_000_000_000


class Process:
    """A member, where it is, and what it was given."""

    def __init__(
        self, name: str, life: int, applied: int = 0, kept_bytes_max: int = 1_000_000, members: tuple[str, ...] = NAMES
    ) -> None:
        self.name = name
        self.place: Place = ("abcd".index(name[0]) + 1, life)
        self.agreement = Agreement(name, members, life=life, applied=applied, kept_bytes_max=kept_bytes_max)
        self.events: list[EngineEvent] = []

    def turn(self, now_ns: int = 0) -> list[Outgoing]:
        self.events += self.agreement.flush(now_ns)
        for event in self.events:
            if isinstance(event, StateWanted):
                self.agreement.give_state(event.ticket, self.position, b"of " + self.name.encode(), [b"one", b"two"])
        self.events = [event for event in self.events if not isinstance(event, StateWanted)]
        self.events += self.agreement.flush(now_ns)
        out = list(self.agreement.outgoing)
        self.agreement.outgoing.clear()
        return out

    @property
    def position(self) -> int:
        return self.agreement.statistics().delivered

    @property
    def packs(self) -> list[tuple[int, str, int]]:
        return [(e.position, e.sender, e.number) for e in self.events if isinstance(e, Delivered)]

    @property
    def views(self) -> list[tuple[int, str]]:
        return [(e.view.position, "".join(e.view.members)) for e in self.events if isinstance(e, Viewed)]

    def had(self, kind: type) -> bool:
        return any(isinstance(event, kind) for event in self.events)


def ring(*processes: Process) -> None:
    """Tell processes that they are a view of the engine below."""
    for process in processes:
        process.agreement.changed([other.place for other in processes], process.place, 0)


def pass_on(sender: Process, out: list[Outgoing], *receivers: Process) -> None:
    for one in out:
        for receiver in receivers:
            receiver.agreement.received(sender.place, one.header + bytes(one.payload))


def settle(*processes: Process) -> None:
    """Let everything that is sent arrive, until nothing is."""
    for _ in range(100):
        sent = [(process, process.turn()) for process in processes]
        if not any(out for _, out in sent):
            return
        for sender, out in sent:
            pass_on(sender, out, *processes)
    raise AssertionError("it never becomes quiet")


def settle_until(kind: type[Control], *processes: Process) -> list[Outgoing]:
    """Let everything arrive, until somebody sends a message of a kind; return it, and what else is in its turn."""
    for _ in range(100):
        for process in processes:
            out = process.turn()
            if any(one.header[0] == CONTROL and isinstance(decode_control(one.header), kind) for one in out):
                return out
            pass_on(process, out, *processes)
    raise AssertionError(f"nobody sends {kind}")


def started(**options: int) -> tuple[Process, Process, Process]:
    a, b, c = (Process(name, 1, **options) for name in NAMES)
    ring(a, b, c)
    settle(a, b, c)
    return a, b, c


def test_the_first_start_needs_all_configured_members() -> None:
    a, b, c = (Process(name, 1) for name in NAMES)
    ring(a, b)
    settle(a, b)
    assert a.had(Suspended)
    assert not a.views
    ring(a, b, c)
    settle(a, b, c)
    assert a.views == b.views == c.views == [(1, "abc")]


def test_a_pack_is_held_until_every_member_has_it() -> None:
    a, b, c = started()
    a.agreement.send(b"hello")
    pack = a.turn()
    pass_on(a, pack, a, b)
    for _ in range(3):
        for sender in (a, b):
            pass_on(sender, sender.turn(), a, b)
    assert a.packs == b.packs == []
    pass_on(a, pack, c)
    acks = c.turn()
    pass_on(c, acks, a, b, c)
    settle(a, b, c)
    assert a.packs == b.packs == [(2, "a", 1)]


def test_what_survivors_all_hold_is_delivered_in_the_next_view() -> None:
    a, b, c = started()
    c.agreement.send(b"last words")
    pass_on(c, c.turn(), a, b)
    ring(a, b)
    settle(a, b)
    assert a.packs == b.packs == [(2, "c", 1)]
    assert a.views[-1] == b.views[-1] == (3, "ab")


def test_what_a_minority_holds_is_not_delivered_there_and_is_sent_again_once() -> None:
    a, b, c = started()
    c.agreement.send(b"into the void")
    pass_on(c, c.turn(), c)
    ring(c)
    settle(c)
    assert c.had(Suspended)
    assert c.packs == []
    ring(a, b)
    settle(a, b)
    a.agreement.send(b"meanwhile")
    settle(a, b)
    ring(a, b, c)
    settle(a, b, c)
    assert a.packs == b.packs == c.packs == [(3, "a", 1), (6, "c", 1)]
    assert a.views == [(1, "abc"), (2, "ab"), (4, "ab"), (5, "abc")]
    assert c.views == [(1, "abc"), (5, "abc")]


def test_a_minority_that_meets_again_has_no_acks_of_before() -> None:
    a, b, c = started()
    for _ in range(5):
        b.agreement.send(b"x")
    pass_on(b, b.turn(), b, c)
    pass_on(b, b.turn(), b)
    pass_on(c, c.turn(), b)  # b has acks of c for its five
    ring(a, c)
    settle(a, c)
    ring(b)
    settle(b)
    ring(a, b, c)
    settle(a, b, c)
    assert a.packs == b.packs == c.packs
    assert [number for _, _, number in a.packs] == [1, 2, 3, 4, 5]


def test_a_process_without_history_has_no_say() -> None:
    _, b, c = started()
    a = Process("a", 2)
    ring(a, c)
    settle(a, c)
    assert c.had(Suspended)
    ring(a, b, c)
    settle(a, b, c)
    assert not c.had(Restored)
    assert a.views[-1] == b.views[-1] == c.views[-1]
    assert a.views[-1][1] == "abc"
    ring(a, c)  # it has caught up, so it counts
    settle(a, c)
    assert c.views[-1][1] == "ac"


def test_a_member_that_was_away_is_given_what_it_missed() -> None:
    a, b, c = started()
    ring(a, b)
    settle(a, b)
    for _ in range(3):
        a.agreement.send(b"missed")
    settle(a, b)
    ring(a, b, c)
    settle(a, b, c)
    assert c.packs == a.packs == [(3, "a", 1), (4, "a", 2), (5, "a", 3)]
    assert c.views == [(1, "abc"), (6 + 1, "abc")]


def test_a_member_that_missed_more_than_is_kept_is_given_a_state() -> None:
    a, b, c = started(kept_bytes_max=0)
    ring(a, b)
    settle(a, b)
    a.agreement.send(b"forgotten")
    settle(a, b)
    ring(a, b, c)
    settle(a, b, c)
    (restored,) = [event for event in c.events if isinstance(event, Restored)]
    assert (restored.position, list(restored.chunks)) == (4, [b"one", b"two"])
    assert c.packs == []
    c.agreement.send(b"and on")
    settle(a, b, c)
    assert c.packs == [(6, "c", 1)]
    assert a.packs[-1] == (6, "c", 1)


def test_what_was_delivered_beside_a_member_that_catches_up_is_not_lost_when_the_view_breaks() -> None:
    """It misses a message then, and is given its own Caught behind it all the same."""
    a, b, c = started()
    ring(a, b)
    settle(a, b)
    ring(a, b, c)
    caught = settle_until(Caught, a, b, c)
    a.agreement.send(b"delivered by two of three")
    settle(a, b)
    assert a.packs == b.packs == [(4, "a", 1)]
    pass_on(c, caught, c)
    ring(a, b, c)
    settle(a, b, c)
    assert a.packs == b.packs == c.packs == [(4, "a", 1)]
    assert a.views[-1] == b.views[-1] == c.views[-1] == (6, "abc")


def test_who_was_admitted_holds_what_it_has_acknowledged_and_nothing_before() -> None:
    a, b, c = started()
    ring(a, b)
    settle(a, b)
    ring(a, b, c)
    admitted = settle_until(Admitted, a, b, c)
    pass_on(b, admitted, a, b)
    a.agreement.send(b"x")
    settle(a, b)
    assert a.packs == a.views[3:] == []
    pass_on(b, admitted, c)
    acknowledged = c.turn()
    pass_on(c, acknowledged, a, b)
    settle(a, b)
    assert a.views[3:] == [(4, "abc")]
    assert a.packs == []  # it is behind the view, and c does not hold it yet


def test_a_view_that_breaks_in_the_middle_of_a_round_leaves_nothing_behind() -> None:
    a, b, c = started()
    a.agreement.send(b"one")
    pass_on(a, a.turn(), a, b, c)
    for steps in range(1, 5):
        ring(a, b)
        for _ in range(steps):
            sent = [(process, process.turn()) for process in (a, b)]
            for sender, out in sent:
                pass_on(sender, out, a)  # b never hears any of it
    ring(b, c)
    settle(b, c)
    ring(a, b, c)
    settle(a, b, c)
    assert a.packs == b.packs == c.packs == [(2, "a", 1)]
    assert a.views[-1] == b.views[-1] == c.views[-1]


def test_a_state_that_comes_a_view_late_does_not_count() -> None:
    a, b, c = started()
    ring(a, b, c)
    late = c.turn()
    ring(a, b, c)
    pass_on(c, late, a, b, c)
    settle(a, b, c)
    a.agreement.send(b"x")
    settle(a, b, c)
    assert a.packs == b.packs == c.packs
    assert len(a.packs) == 1


def test_of_two_processes_with_one_name_the_earlier_ends() -> None:
    a, b, c = started()
    other = Process("c", 2)
    ring(a, b, c, other)
    settle(a, b, c, other)
    assert c.had(Ended)
    ring(a, b, other)
    settle(a, b, other)
    assert other.views[-1][1] == "abc"


def test_a_cold_start_goes_on_from_the_application_that_has_most() -> None:
    a, b, c = Process("a", 7, 10), Process("b", 7, 25), Process("c", 7, 0)
    ring(a, b, c)
    settle(a, b, c)
    assert a.had(Restored)
    assert c.had(Restored)
    assert not b.had(Restored)
    assert a.views == b.views == c.views == [(1, "abc")]


def test_a_cold_start_goes_on_from_who_was_given_most_though_its_application_has_not_said_so_yet() -> None:
    members = ("a", "b", "c", "d", "e")

    def state(name: str, *, accepted: int = 0, end: int = 0, applied: int = 0) -> State:
        return State(VERSION, name, 1, members, 1, accepted > 0, accepted, accepted, end, end, {}, applied)

    given_most, behind = state("a", accepted=9, end=10, applied=5), state("b", accepted=8, end=7, applied=7)
    started = [state(name) for name in "cd"]
    places = {"abcde".index(one.name) + 1: one for one in (given_most, behind, *started, state("e", applied=7))}
    decision = decide(members, {(node, 1): one for node, one in places.items()})
    assert (decision.primary, decision.cold, decision.anew) == (True, True, False)
    assert (decision.chosen, decision.position, decision.same) == ((1, 1), 10, frozenset([(1, 1)]))
    places[5] = state("e", applied=8)
    decision = decide(members, {(node, 1): one for node, one in places.items()})
    assert (decision.chosen, decision.anew, decision.same) == ((5, 1), True, frozenset([(5, 1)]))


@pytest.mark.parametrize("limbo", [False, True])
def test_a_cold_start_begins_though_the_application_of_the_chosen_member_has_less_than_what_others_have_kept(
    limbo: bool,
) -> None:
    four = ("a", "b", "c", "d")
    a, b, c, d = (Process(name, 1, members=four) for name in four)
    ring(a, b, c, d)
    settle(a, b, c, d)
    a.agreement.send(b"x")
    pass_on(a, a.turn(), a, b, c, d)
    for sender, acks in [(process, process.turn()) for process in (a, b, c, d)]:
        pass_on(sender, acks, a, c, d)  # b holds the pack, and is cut off before it learns that all do
    for process in (a, c, d):
        process.turn()
    assert (a.packs, b.packs) == ([(2, "a", 1)], [])
    a.agreement.note_applied(1)
    if limbo:  # then b is the one that holds most, and otherwise it is as good as a
        b.agreement.send(b"y")
        pass_on(b, b.turn(), b)
    c, d = Process("c", 2, 1, members=four), Process("d", 2, 1, members=four)  # a majority is lost; they have kept x
    ring(a, b, c, d)
    settle(a, b, c, d)
    assert a.views[-1] == b.views[-1] == c.views[-1] == d.views[-1]
    assert a.packs[:1] == b.packs[:1] == [(2, "a", 1)]
    assert a.packs == b.packs
    assert not a.had(Restored)


def test_a_cold_start_is_above_every_epoch_that_a_living_member_has_accepted() -> None:
    a, b, c = started()
    for _ in range(5):
        ring(a, b, c)
        settle(a, b, c)
    before = a.agreement.statistics().epoch
    b, c = Process("b", 2), Process("c", 2)  # a majority is lost: what b and c have promised is forgotten
    ring(a, b, c)
    settle(a, b, c)
    assert a.views[-1] == b.views[-1] == c.views[-1]
    epochs = {process.agreement.statistics().epoch for process in (a, b, c)}
    assert len(epochs) == 1
    assert min(epochs) > before


def test_a_cold_start_is_above_an_epoch_that_a_living_member_has_only_caught_up_with() -> None:
    a, b, c = started()
    for _ in range(5):
        ring(a, b)
        settle(a, b)
    ring(a, b, c)
    settle(a, b, c)
    before = c.agreement.statistics().epoch  # a and b have promised it
    a, b = Process("a", 2), Process("b", 2)
    ring(a, b, c)
    settle(a, b, c)
    assert a.views[-1] == b.views[-1] == c.views[-1]
    assert min(process.agreement.statistics().epoch for process in (a, b, c)) > before


def test_who_holds_less_than_an_application_has_kept_ends_before_the_others_go_on_with_that() -> None:
    """Otherwise it went on behind what it holds, if the view breaks when the others have settled and it has not."""
    a, b, c = started()
    ring(a, b)
    settle(a, b)
    a.agreement.send(b"what c has not been given")
    settle(a, b)
    a, b = Process("a", 2, applied=1), Process("b", 2, applied=1)
    ring(a, b, c)
    for receivers in ((a, b, c), (a, b)):  # all decide; c does not hear that all have promised
        for sender, out in [(process, process.turn()) for process in (a, b, c)]:
            pass_on(sender, out, *receivers)
    ring(a, b)
    settle(a, b)
    a.agreement.send(b"further")
    settle(a, b)
    ring(a, b, c)
    settle(a, b, c)
    c.turn()
    assert c.packs == []
    assert c.had(Ended)
    c = Process("c", 2)
    ring(a, b, c)
    settle(a, b, c)
    assert c.had(Restored)
    assert a.packs == b.packs == c.packs == [(2, "a", 1)]


def test_a_member_that_says_nothing_is_reported_after_a_second() -> None:
    a, b, c = started()
    ring(a, b, c)
    a.turn()
    assert a.agreement.wake_ns() == SECOND_NS
    a.turn(SECOND_NS)
    assert "have not said" in next(event.reason for event in a.events if isinstance(event, Suspended))


def test_strangers_and_garbage_are_counted_and_ignored() -> None:
    a, b, c = started()
    for data in (b"\3\xff\xff", b"\1short", b"\2short", b"\x09", b"\3" + b"\x91" * 5000):
        for process in (a, b, c):
            process.agreement.received(b.place, data)
    assert a.agreement.statistics().malformed == 5
    a.agreement.send(b"x")
    settle(a, b, c)
    assert a.packs == c.packs == [(2, "a", 1)]


def test_a_member_must_be_configured_once() -> None:
    with pytest.raises(LocalError, match="to be one of the members"):
        Agreement("d", NAMES, life=1)
    with pytest.raises(LocalError, match="each named once"):
        Agreement("a", ("a", "a"), life=1)


@given(some.binary(max_size=200))
def test_no_bytes_do_more_than_be_refused(data: bytes) -> None:
    for decode in (decode_control, decode_pack, decode_ack):
        try:
            decode(data)
        except MalformedFrameError:
            pass


numbers = some.integers(0, 2**64 - 1)


@given(numbers, numbers, numbers, some.binary(max_size=50))
def test_headers_survive_the_way(epoch: int, number: int, held: int, payload: bytes) -> None:
    assert decode_pack(encode_pack(epoch, number, held) + payload) == (epoch, number, held, memoryview(payload))
    assert decode_ack(encode_ack(epoch, held)) == (epoch, held)
    missed = Missed(epoch, (1, 2), 3, 4, (Pack("a", 5, number, memoryview(payload)),))
    assert decode_control(encode_control(missed)) == missed


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_simulated_groups_keep_their_promises(first: int) -> None:
    for seed in range(first, first + 50):
        run_agreement(seed)


def test_nobody_is_given_a_state_older_than_what_its_application_has_kept() -> None:
    """A member is killed when it alone was given what all hold; another, which is yet to be given it, has the state."""
    run_agreement(91987)


def test_who_was_told_nothing_of_views_without_it_can_give_its_state_all_the_same() -> None:
    """A member that has caught up, and was given no message yet, has delivered views of others, and forgotten them."""
    run_agreement(91578)


def test_epochs_that_only_ended_processes_knew_may_come_again_after_a_cold_start() -> None:
    """All were killed, and forgot their epochs; those who started cold came to the same number, with other members."""
    run_agreement(39936)


def test_an_epoch_is_forgotten_only_if_no_living_process_has_accepted_it() -> None:
    book = EpochBook()
    book.note(24, ["a", "b", "c"])
    book.note(36, ["a", "b"])
    book.forget_above(24)
    book.note(36, ["b", "c"])
    book.note(36, ["a", "b", "c"])
    with pytest.raises(AssertionError, match="epoch 24 has members"):
        book.note(24, ["a", "d"])


def test_an_epoch_has_no_two_sides_that_each_admitted_another_member() -> None:
    book = EpochBook()
    book.note(7, ["a", "b", "c"])
    book.note(7, ["a", "b", "c", "d"])
    book.note(7, ["a", "b", "c"])
    for members in (["a", "b", "c", "e"], ["a", "b", "d"]):
        with pytest.raises(AssertionError, match="epoch 7 has members"):
            book.note(7, members)


def run_seeds(bug: str, seeds: range) -> None:
    for seed in seeds:
        run_agreement(seed, BUGS[bug])


@pytest.mark.parametrize("bug", ["no-ack-wait", "acks-of-earlier-epochs", "minority-delivers-limbo", "fresh-counts"])
def test_planted_bugs_are_found(bug: str) -> None:
    with pytest.raises(AssertionError, match="elsewhere"):
        run_seeds(bug, range(40))


@pytest.mark.parametrize("bug", ["duplicates-stay", "forgets-packs"])
def test_packs_that_come_twice_or_never_are_found(bug: str) -> None:
    with pytest.raises(AssertionError, match=r"comes after|queued_bytes"):
        run_seeds(bug, range(20))


def test_two_sides_of_an_epoch_that_each_let_another_member_in_are_found() -> None:
    """Two catch up, and one is given its own word that it has, behind messages that it misses."""
    run_agreement(86994)
    with pytest.raises(AssertionError, match=r"epoch \d+ has members"):
        run_agreement(86994, BUGS["newcomers-let-themselves-in"])


@pytest.mark.parametrize("seed", [59, 115])
def test_an_order_that_is_accepted_before_all_have_promised_its_epoch_is_found(seed: int) -> None:
    run_agreement(seed)
    with pytest.raises(AssertionError, match="elsewhere"):
        run_agreement(seed, BUGS["one-promise-is-enough"])


def test_limbo_that_is_dropped_early_is_found() -> None:
    with pytest.raises(AssertionError, match="elsewhere"):
        run_seeds("limbo-dropped-early", range(100, 120))


@pytest.mark.parametrize("seed", [97, 934])
def test_epochs_that_come_again_while_a_process_lives_that_knew_them_are_found(seed: int) -> None:
    """In memory, and with applications that keep their data, where a majority may be lost."""
    with pytest.raises(AssertionError, match=r"epoch \d+ has members"):
        run_agreement(seed, BUGS["epochs-come-again"])
