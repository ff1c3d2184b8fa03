"""A moment in which nothing is being derived, and who waits for it."""

from echoic.channels import ChannelId, Member
from echoic.channels.quiet import Quiet


def members(count: int) -> list[Member]:
    return [Member(ChannelId("here:1", f"channel{n}"), n, None) for n in range(count)]


def test_it_is_quiet_at_once_where_nothing_is_under_way() -> None:
    (one, other), quiet, done = members(2), Quiet(), list[str]()
    quiet.begin(other)
    quiet.when_quiet([one], lambda: done.append("quiet"))
    assert done == ["quiet"]
    assert not quiet.paused(one)


def test_whoever_waits_acts_when_the_last_is_done_and_nothing_begins_meanwhile() -> None:
    (one, other), quiet, done = members(2), Quiet(), list[str]()
    for member in (one, one, other):
        quiet.begin(member)
    quiet.when_quiet([one, other], lambda: done.append("quiet"))
    assert quiet.paused(one)
    assert quiet.paused(other)
    quiet.end(one)
    quiet.end(other)
    assert not done
    quiet.end(one)
    assert done == ["quiet"]
    assert not quiet.paused(one)


def test_who_waits_for_other_channels_does_not_hinder() -> None:
    (one, other), quiet = members(2), Quiet()
    quiet.begin(one)
    quiet.when_quiet([one], lambda: None)
    assert not quiet.paused(other)


def test_a_hold_lasts_until_it_is_released() -> None:
    (one,), quiet = members(1), Quiet()
    first, second = quiet.hold([one]), quiet.hold([one])
    first()
    first()
    assert quiet.paused(one), "the other hold is still there"
    second()
    assert not quiet.paused(one)


def test_a_hold_for_some_time_ends_by_itself() -> None:
    (one, other), quiet = members(2), Quiet()
    release = quiet.hold([one], 7)
    lasting = quiet.hold([other])
    quiet.expire(6)
    assert quiet.paused(one)
    quiet.expire(7)
    assert not quiet.paused(one)
    assert quiet.paused(other), "this one waits for as long as it takes"
    release()
    lasting()


def test_what_is_to_be_done_when_it_is_late_is_done_once() -> None:
    quiet, done = Quiet(), list[str]()
    quiet.after(7, lambda: done.append("late"))
    quiet.expire(6)
    assert not done
    quiet.expire(7)
    quiet.expire(8)
    assert done == ["late"]


def test_whoever_acts_may_wait_again() -> None:
    (one,), quiet, done = members(1), Quiet(), list[int]()

    def act() -> None:
        done.append(len(done))
        if len(done) < 3:
            quiet.begin(one)
            quiet.when_quiet([one], act)
            quiet.end(one)

    quiet.begin(one)
    quiet.when_quiet([one], act)
    quiet.end(one)
    assert done == [0, 1, 2]


def test_all_who_wait_act_in_the_order_in_which_they_came() -> None:
    (one, other), quiet, done = members(2), Quiet(), list[str]()
    quiet.begin(one)
    quiet.begin(other)
    quiet.when_quiet([one], lambda: done.append("first"))
    quiet.when_quiet([one, other], lambda: done.append("both"))
    quiet.when_quiet([one], lambda: done.append("last"))
    quiet.end(one)
    assert done == ["first", "last"]
    quiet.end(other)
    assert done == ["first", "last", "both"]
