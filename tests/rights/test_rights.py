"""Rules of rights: patterns, what adds up, what wins, and texts that are none."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import LocalError
from echoic.rights import RIGHTS, Pattern, Rights, Rule, check_right, parse_rights
from echoic.rights.rights import HOLDINGS_MAX, NAME_CHARACTERS_MAX, REMEMBERED_MAX, RULES_MAX

letters = st.text("ab.*/", max_size=12)
few = st.sampled_from(["alice", "bob", "desk-7", "anonymous"])
channels = st.sampled_from(["trades", "trades.eu", "weather", "lab/wind"])
rules = st.builds(
    Rule,
    st.booleans(),
    st.sampled_from(["alice", "bob", "desk-*", "*"]).map(Pattern),
    st.lists(st.sampled_from(RIGHTS), min_size=1, unique=True).map(tuple),
    st.sampled_from(["trades", "trades*", "*", "lab/*"]).map(Pattern),
)


@given(letters, st.text("ab./", max_size=12))
def test_a_pattern_matches_what_the_shell_would(pattern: str, name: str) -> None:
    assert Pattern(pattern).matches(name) == fnmatchcase(name, pattern)


def test_a_hostile_pattern_takes_no_more_than_a_glance() -> None:
    assert not Pattern("a*" * 99 + "b").matches("a" * 200)


@given(st.lists(rules, max_size=8), few, st.sampled_from(RIGHTS), channels)
def test_a_denial_wins_a_grant_adds_and_nothing_said_is_a_no(
    given_rules: list[Rule], who: str, right: str, channel: str
) -> None:
    matching = [
        rule
        for rule in given_rules
        if right in rule.rights and fnmatchcase(who, rule.who.text) and fnmatchcase(channel, rule.channels.text)
    ]
    expected = bool(matching) and all(rule.allow for rule in matching)
    assert bool(Rights(given_rules).decide(who, check_right(right), channel)) == expected
    assert bool(Rights(reversed(given_rules)).decide(who, check_right(right), channel)) == expected


def test_a_derived_channel_has_the_rights_of_its_parents_beside_its_own() -> None:
    rights = parse_rights("allow alice subscribe trades\nallow bob subscribe trades.daily\ndeny alice * trades.secret")
    assert rights.decide("alice", "subscribe", "trades.daily", ["trades"])
    assert rights.decide("bob", "subscribe", "trades.daily", ["trades"])
    assert not rights.decide("bob", "subscribe", "trades")
    assert not rights.decide("alice", "subscribe", "trades.secret", ["trades"])
    assert "derived from `trades`" in str(rights.decide("alice", "subscribe", "trades.daily", ["trades"]))


def test_who_shows_no_name_is_anonymous() -> None:
    rights = parse_rights("allow anonymous subscribe weather")
    assert rights.decide("", "subscribe", "weather")
    assert not rights.decide("alice", "subscribe", "weather")


def test_a_decision_names_the_rule_and_its_place() -> None:
    rights = parse_rights("# ours\nallow desk-* subscribe,derive trades*  # all desks\ndeny desk-7 * *\n", "file")
    assert str(rights.decide("desk-1", "derive", "trades")) == (
        "desk-1 may derive `trades`: allowed by `allow desk-* subscribe,derive trades*` - at file:2"
    )
    assert str(rights.decide("desk-7", "derive", "trades")).endswith("denied by `deny desk-7 * *` - at file:3")
    assert str(rights.decide("eve", "admin", "trades")) == "eve may not admin `trades`: no rule allows it"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("allow alice publish", "expected `allow|deny WHO RIGHT,... CHANNEL`"),
        ("permit alice publish trades", "expected `allow|deny"),
        ("allow alice read trades", "expected a right, one of publish"),
        ("allow alice publish, trades", "expected a right"),
        ("allow al?ce publish trades", "a pattern has"),
        ("allow alice publish tra[d]es", "a pattern has"),
    ],
)
def test_a_line_that_is_no_rule_is_named(line: str, told: str) -> None:
    with pytest.raises(LocalError) as refused:
        parse_rights(f"\n{line}", "file")
    assert told in str(refused.value)
    assert str(refused.value).endswith("- at file:2")


@given(st.text(max_size=200))
def test_any_text_is_rules_or_refused(text: str) -> None:
    try:
        parsed = parse_rights(text)
    except LocalError:
        return
    assert len(parsed) <= len(text.splitlines())


def test_what_is_remembered_is_bounded_and_so_are_rules() -> None:
    rights = parse_rights("allow * publish *")
    for number in range(REMEMBERED_MAX + 10):
        assert rights.knows("alice", f"c{number}")
    for number in range(HOLDINGS_MAX + 10):
        assert rights.decide(f"alice{number}", "publish", "c")
    assert len(rights._verdicts) <= REMEMBERED_MAX  # noqa: SLF001 - what the limit is about
    assert len(rights._holdings) <= HOLDINGS_MAX  # noqa: SLF001
    with pytest.raises(LocalError, match="limit is"):
        Rights([rights.rules[0]] * (RULES_MAX + 1))


def test_a_name_longer_than_any_is_neither_granted_nor_kept() -> None:
    """Peers make names up: thousands of 16 MiB each must not stay in memory, nor in a trail."""
    rights = parse_rights("allow * * *")
    long = "c" * (NAME_CHARACTERS_MAX + 1)
    decision = rights.decide("alice", "publish", long)
    assert not decision
    assert len(decision.channel) <= NAME_CHARACTERS_MAX
    assert not rights.knows("alice", long)
    assert not rights._verdicts  # noqa: SLF001 - what the limit is about


@given(st.lists(rules, max_size=8), few, channels, st.lists(channels, max_size=2))
def test_somebody_knows_a_channel_if_he_has_any_right_to_it(
    given_rules: list[Rule], who: str, channel: str, ancestors: list[str]
) -> None:
    rights = Rights(given_rules)
    any_right = any(rights.decide(who, right, channel, ancestors) for right in RIGHTS)
    assert rights.knows(who, channel, ancestors) == any_right


def test_a_listing_of_many_channels_is_not_paid_for_by_the_rules_about_others() -> None:
    """Beside ten thousand rules about others, asking costs what it does beside none."""
    looked: list[str] = []

    class Counting(Pattern):
        def matches(self, name: str) -> bool:
            looked.append(name)
            return super().matches(name)

    others = [Rule(True, Counting(f"desk{n}"), ("publish",), Counting(f"lab{n}*")) for n in range(RULES_MAX - 1)]
    rights = Rights([*others, Rule(True, Counting("bob"), ("subscribe",), Counting("trades*"))])
    for number in range(1000):
        assert rights.knows("bob", f"trades{number}")
    assert len(looked) <= RULES_MAX + 1000
