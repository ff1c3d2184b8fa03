"""Each sort of finding, where it is due and where it is not."""

from echoic.scripts.exploring import ExplorationLimits, FindingKind
from tests.scripts.exploring.explored import TOOL, explored, found, kinds

DEADLOCK, LIVELOCK, UNREACHABLE = FindingKind.DEADLOCK, FindingKind.LIVELOCK, FindingKind.UNREACHABLE


def test_a_process_that_waits_for_nobody_is_a_deadlock() -> None:
    (deadlock,) = found("process P is tau . rec-msg(a)\nprocess Q is snd-msg(b)\ntoolbus(P)", DEADLOCK)
    assert deadlock.text == "P(1) waits for rec-msg(a)"
    assert (deadlock.span.line, deadlock.span.column) == (1, 20)
    assert [str(step) for step in deadlock.trace] == ["P(1): tau"]


def test_a_script_that_ends_has_no_deadlock() -> None:
    assert found("process P is snd-msg(a)\nprocess Q is rec-msg(a)\ntoolbus(P, Q)", DEADLOCK) == []
    assert found("process P is tau . delta\ntoolbus(P)", DEADLOCK) == []


def test_a_shutdown_ends_those_who_wait() -> None:
    text = 'process P is rec-msg(a)\nprocess Q is shutdown("bye") + snd-msg(a) . shutdown("bye")\ntoolbus(P, Q)'
    exploration = explored(text)
    assert exploration.findings == ()
    assert exploration.states == 3


def test_a_process_does_not_talk_to_itself() -> None:
    assert len(found("process P is snd-msg(a) || rec-msg(a)\ntoolbus(P)", DEADLOCK)) == 1


def test_a_guard_that_is_never_true_is_a_deadlock() -> None:
    (deadlock,) = found("process P is if false then tau fi\ntoolbus(P)", DEADLOCK)
    assert deadlock.text == "P(1) can do nothing"


def test_a_process_that_spins_is_a_livelock() -> None:
    (livelock,) = found("process P is rec-msg(a) . (tau * delta)\nprocess Q is snd-msg(a)\ntoolbus(P, Q)", LIVELOCK)
    assert livelock.text == "process `P` can only do internal steps any more, and no end"
    assert [str(step) for step in livelock.trace] == ["Q(2) -> P(1): snd-msg(a)"]


def test_a_process_that_spins_is_found_while_others_talk() -> None:
    text = """
process P is let X : int in X := 1 . (X := sub(1,X)) * delta endlet
process Q is snd-msg(a) * delta
process R is rec-msg(a) * delta
toolbus(P, Q, R)"""
    assert [finding.span.line for finding in found(text, LIVELOCK)] == [2]


def test_waiting_busily_for_what_never_comes_is_a_livelock() -> None:
    text = "process P is tau * rec-msg(stop)\nprocess Q is tau . snd-msg(stop)\ntoolbus(P)"
    (livelock,) = found(text, LIVELOCK)
    assert livelock.text == "only internal steps are possible any more, and no end"


def test_waiting_busily_for_what_may_come_is_no_livelock() -> None:
    assert found("process P is tau * rec-msg(stop)\nprocess Q is snd-msg(stop)\ntoolbus(P, Q)", LIVELOCK) == []
    assert (
        found("process P is (tau . snd-msg(a)) * delta\nprocess Q is rec-msg(a) * delta\ntoolbus(P, Q)", LIVELOCK) == []
    )
    assert found("process P is tau * tau\ntoolbus(P)", LIVELOCK) == []


def test_atoms_that_are_never_done_are_told() -> None:
    text = """
process P is let X : int in X := 1 . (if equal(X,2) then printf("two") . tau else printf("one") fi) endlet
process Q is tau
toolbus(P)"""
    assert [(each.text, each.span.line, each.span.column) for each in found(text, UNREACHABLE)] == [
        ("this is never enabled", 2, 58),
        ("this is never reached", 2, 74),
        ("process `Q` is never started", 3, 9),
    ]


def test_a_process_that_is_called_or_created_is_started() -> None:
    text = """
process P is Q . let N : str, I : int in N := "R" . N . create(S, I?) endlet
process Q is tau
process R is tau
process S is tau
toolbus(P)"""
    assert explored(text).findings == ()


def test_an_atom_without_a_partner_is_told_once() -> None:
    exploration = explored(
        "process P is snd-msg(a(1)) + tau\nprocess Q is rec-msg(a(X)) + tau\ntoolbus(P)".replace("X", '"s"')
    )
    assert [(each.kind, each.span.line) for each in exploration.findings if each.span.column == 14] == [
        (FindingKind.PARTNERLESS, 1),
        (FindingKind.PARTNERLESS, 2),
    ]


def test_events_that_are_never_acknowledged_are_told() -> None:
    text = (
        TOOL
        + 'process P is let T : t, X : int in execute(t, T?) . (rec-event(T, e(X?)) . printf("")) * delta endlet\n'
        + "toolbus(P)"
    )
    findings = found(text, FindingKind.UNACKNOWLEDGED)
    assert [each.text for each in findings] == [
        "event `e(0)` of t(1) is never acknowledged",
        "event `e(1)` of t(1) is never acknowledged",
    ]
    assert findings[0].trace[-1].text == "rec-event(t(1),e(0))"


def test_events_that_are_acknowledged_are_not_told() -> None:
    text = (
        TOOL
        + "process P is let T : t, X : int in\n"
        + "execute(t, T?) . (rec-event(T, e(X?)) . snd-ack-event(T, e(X))) * delta endlet\n"
        + "toolbus(P)"
    )
    assert explored(text).findings == ()


def test_events_may_be_acknowledged_by_their_name_or_end_with_the_tool() -> None:
    for rest in ("snd-ack-event(T, e)", "snd-terminate(T, bye)", "shutdown(0)"):
        text = (
            TOOL
            + f"process P is let T : t, X : int in execute(t, T?) . rec-event(T, e(X?)) . {rest} endlet\ntoolbus(P)"
        )
        assert found(text, FindingKind.UNACKNOWLEDGED) == []


def test_requests_without_a_response_are_told() -> None:
    text = TOOL + "process P is let T : t in execute(t, T?) . rec-request(T, r) . REST * delta endlet\ntoolbus(P)"
    assert len(found(text.replace("REST", "tau"), FindingKind.UNACKNOWLEDGED)) == 1
    assert found(text.replace("REST", "snd-response(T, r)"), FindingKind.UNACKNOWLEDGED) == []


def test_notes_that_are_never_taken_are_told() -> None:
    text = "process P is subscribe(n(<int>)) . TAKE\nprocess Q is snd-note(n(1))\ntoolbus(P, Q)"
    (untaken,) = found(text.replace("TAKE", "rec-msg(a)"), FindingKind.UNTAKEN_NOTE)
    assert untaken.text == "process `P` gets notes like `n(<int>)`, and never takes one"
    assert (untaken.span.line, untaken.span.column) == (1, 14)
    assert found(text.replace("TAKE", "(rec-note(n(1)) + tau)"), FindingKind.UNTAKEN_NOTE) == []


def test_a_queue_that_grows_is_told_and_the_rest_is_explored() -> None:
    text = "process P is subscribe(n) . rec-note(n) * delta\nprocess Q is snd-note(n) * delta\ntoolbus(P, Q)"
    (growing,) = found(text, FindingKind.GROWING_QUEUE)
    assert growing.text == "process `P` may have more than 4 notes that it has not taken"
    assert growing.span.line == 2
    assert [step.text for step in growing.trace] == ["subscribe(n)"] + 5 * ["snd-note(n)"]
    exploration = explored(text)
    assert exploration.left_out == ("queues of more than 4 notes",)
    assert exploration.of_kind(DEADLOCK) == ()


def test_notes_to_oneself_grow_too() -> None:
    assert (
        len(found("process P is subscribe(n) . snd-note(n) * rec-note(n)\ntoolbus(P)", FindingKind.GROWING_QUEUE)) == 1
    )


def test_a_queue_that_is_emptied_does_not_grow() -> None:
    text = "process P is subscribe(n) . (snd-note(n) . rec-note(n)) * delta\ntoolbus(P)"
    assert explored(text).findings == ()


def test_variables_without_a_value_are_told_where_they_are_used() -> None:
    text = """
process P is let X : int, Y : int in snd-msg(a(X)) . Y := X . printf("%d", Y) . create(Q(Y), Y?) endlet
process Q(I : int) is rec-msg(a(<term>))
toolbus(P, Q(1))"""
    told = found(text.replace("<term>", "<int>"), FindingKind.UNDEFINED)
    assert [(each.text, each.span.column) for each in told] == [
        ("`X` is used and has no value", 38),
        ("`X` is used and has no value", 54),
        ("`Y` is used and has no value", 63),
        ("`Y` is used and has no value", 81),
    ]
    assert [step.text for step in told[1].trace] == ["snd-msg(a(undefined))", "Y := undefined"]


def test_variables_with_a_value_are_not_told() -> None:
    text = """
process P is let X : int, Y : int in rec-msg(a(X?)) . Y := X . printf("%d", Y)
    . if equal(X, undefined) then tau fi endlet
process Q is snd-msg(a(1))
toolbus(P, Q)"""
    assert found(text, FindingKind.UNDEFINED) == []


def test_an_expression_without_a_value_is_told() -> None:
    (told,) = found("process P is let X : int in X := div(1,0) + tau endlet\ntoolbus(P)", FindingKind.WITHOUT_VALUE)
    assert told.text.startswith("not enabled: ")
    assert found("process P is let X : int in X := div(1,1) endlet\ntoolbus(P)", FindingKind.WITHOUT_VALUE) == []


def test_a_timeout_without_another_way_is_a_deadlock() -> None:
    text = TOOL + "process P is let T : t in execute(t, T?) . (rec-event(T, e) timeout(sec(5)) MORE) endlet\ntoolbus(P)"
    (deadlock,) = found(text.replace("MORE", ""), DEADLOCK)
    assert deadlock.trace[-1].text == "the time of rec-event at 2:45 is over"
    assert found(text.replace("MORE", "+ tau delay(sec(5))"), DEADLOCK) == []


def test_findings_are_limited_for_each_kind() -> None:
    text = "process P is " + " + ".join(f"snd-msg(a({number}))" for number in range(30)) + " + tau\ntoolbus(P)"
    limits = ExplorationLimits(findings_per_kind_max=7)
    assert len(explored(text, limits=limits).of_kind(FindingKind.PARTNERLESS)) == 7


def test_a_script_without_faults_has_no_findings() -> None:
    text = """
process CLIENT is let X : int in snd-msg(ask) . rec-msg(told(X?)) . printf("%d", X) . snd-msg(stop) endlet
process SERVER is (rec-msg(ask) . snd-msg(told(1))) * rec-msg(stop)
toolbus(CLIENT, SERVER)"""
    exploration = explored(text)
    assert kinds(exploration) == set()
    assert exploration.complete
