"""The forty probes that were run on both original implementations, with what was decided where they differ.

Each is a script and what it prints within three seconds of its own time, whatever the seed.
"""

import pytest

from echoic.errors import ScriptError
from tests.papers.toolbus_driver import Bus, alone, complaints, printed, warnings

LET = "process P is let X:int, Y:int, Z:int, S:str, L:list, T:term, B:bool in {} endlet"
MEETING = """process P is let X:int, Y:int, S:str, T:term, B:bool in {} . printf("match") +
printf("none") delay(sec(1)) endlet process Q is let X:int, Y:int, T:term in {} endlet toolbus(P, Q)"""
NOTES = LET.format(
    "subscribe(m(<int>)) . subscribe(n(<int>)) . snd-note(n(1)) . snd-note(m(2)) . snd-note(n(3)) . rec-note(m(X?)) ."
    ' rec-note(n(Y?)) . rec-note(n(Z?)) . printf("%d %d %d", X, Y, Z)'
)

PROBES = {
    "01 strings in printf": (LET.format('S := "a" . printf("%s|%t", S, S)'), "a|a"),
    "02 a variable nothing was assigned to": (LET.format('printf("%t", X)'), "undefined"),
    "03 another type": (MEETING.format("rec-msg(f(S?))", "snd-msg(f(13))"), "none"),
    "04 notes are selected": (NOTES, "2 1 3"),
    "05 two subscriptions match": (
        LET.format(
            "subscribe(n(<int>)) . subscribe(n(<term>)) . snd-note(n(1)) . rec-note(n(X?)) ."
            ' (rec-note(n(X?)) . printf("two") + printf("one") delay(sec(1)))'
        ),
        "one",
    ),
    "06 unsubscribe with a queued note": (
        LET.format(
            "subscribe(n(<int>)) . snd-note(n(1)) . unsubscribe(n(<int>)) ."
            ' (rec-note(n(X?)) . printf("kept") + printf("dropped") delay(sec(1)))'
        ),
        "dropped",
    ),
    "07 a note to oneself": (LET.format('subscribe(n) . snd-note(n) . rec-note(n) . printf("delivered")'), "delivered"),
    "08 both sides of a message in one process": (
        LET.format('(snd-msg(x) || rec-msg(x) . printf("yes")) + printf("no") delay(sec(1))'),
        "no",
    ),
    "09 delta or something": (LET.format('delta + printf("p")'), "p"),
    "10 after all of a merge": (LET.format('(tau || tau delay(sec(1)) || tau) . printf("d")'), "d"),
    "11 a guard that is false": (LET.format('if false then printf("p") fi'), ""),
    "12 a timeout and another alternative": (
        LET.format('rec-msg(x) timeout(sec(1)) . printf("met") + printf("other") delay(sec(1))'),
        "other",
    ),
    "13 an expression in a message": (
        """process P is snd-msg(x, add(1,2))
        process Q is let T:term in rec-msg(x, T?) . printf("%t", T) endlet toolbus(P, Q)""",
        "add(1,2)",
    ),
    "15 twice the same": (MEETING.format("rec-msg(f(X?,X?))", "snd-msg(f(1,1))"), "match"),
    "16 twice not the same": (MEETING.format("rec-msg(f(X?,X?))", "snd-msg(f(1,2))"), "none"),
    "17 two that want a value": (MEETING.format("rec-msg(f(X?))", "snd-msg(f(Y?))"), "none"),
    "18 process-name in a process that is called": (
        'process Q is let S:str in S := process-name . printf("%s", S) endlet process P is Q',
        "P",
    ),
    "19 division of negative integers": (
        LET.format('X := div(-7,2) . Y := mod(-7,2) . printf("%d %d", X, Y)'),
        "-3 -1",
    ),
    "20 an integer of more than 32 bits": (LET.format('X := add(2147483647,1) . printf("%d", X)'), "2147483648"),
    "21 first of nothing": (LET.format('T := first([]) . printf("%t", T)'), "undefined"),
    "22 get what is not there": (LET.format('T := get([[a,1]], b) . printf("%t", T)'), "undefined"),
    "23 put, there and not there": (
        LET.format('T := put(put([[a,1],[b,2]], a, 3), c, 4) . printf("%t", T)'),
        "[[a,3],[b,2],[c,4]]",
    ),
    "24 difference of multisets": (LET.format('T := diff([a,b,a],[a]) . printf("%t", T)'), "[b,a]"),
    "25 get the second": (LET.format('T := get([[a,1],[b,2]], b) . printf("%t", T)'), "2"),
    "26 the right is preferred": (LET.format('printf("p") +> printf("q")'), "q"),
    "27 a placeholder in a message": (MEETING.format("rec-msg(f(<int>))", "snd-msg(f(3))"), "match"),
    "28 a pattern of a list": (
        """process P is let X:int, T:term in rec-msg([X?,T?]) . printf("%d %t", X, T) endlet
        process Q is snd-msg([1,[2]]) toolbus(P, Q)""",
        "1 [2]",
    ),
    "29 a partial type": (
        """process P is let A:f, B:g in rec-msg(A?) . printf("%t", A) endlet
        process Q is snd-msg(f(1,"a")) toolbus(P, Q)""",
        'f(1,"a")',
    ),
    "30 a value parameter is assigned": (
        'process Q(A:int) is A := 2 . printf("%d", A) process P is let X:int in X := 1 . Q(X) . printf("%d", X) endlet',
        "21",
    ),
    "31 an expression in a creation": (
        'process Q(A:term) is printf("%t", A) process P is let X:int in create(Q(add(1,2)), X?) endlet',
        "3",
    ),
    "33 an integer and a real": (LET.format('if equal(1,1.0) then printf("eq") else printf("ne") fi'), "ne"),
    "34 a let is entered again": (
        """process P is let N:int in N := 0 . ((if less(N,3) then let X:int in printf("%t ", X) . X := 1 . N := add(N,1)
        endlet fi) * (if equal(N,3) then tau fi)) endlet""",
        "undefined undefined undefined ",
    ),
    "35 shutdown stops others": (
        'process P is shutdown("x") delay(sec(1)) process Q is printf("late") delay(sec(2)) toolbus(P, Q)',
        "",
    ),
    "36 a percent sign": (LET.format('printf("100%%")'), "100%"),
    "37 disrupt": (LET.format('(rec-msg(never) . printf("no")) >> printf("disrupted")'), "disrupted"),
    "38 the value of a variable in a message": (
        """process P is let X:int in X := 5 . rec-msg(f(X)) . printf("five") endlet
        process Q is snd-msg(f(4)) + snd-msg(f(5)) toolbus(P, Q)""",
        "five",
    ),
    "39 another arity": (MEETING.format("rec-msg(f(X?))", "snd-msg(f(1,2))"), "none"),
    "40 true and false": (
        """process P is let B:bool, X:int in rec-msg(f(B?)) . if B then printf("true") else printf("false") fi endlet
        process Q is snd-msg(f(1)) + snd-msg(f(false)) toolbus(P, Q)""",
        "false",
    ),
}


@pytest.mark.parametrize("probe", PROBES)
def test_probe(probe: str) -> None:
    script, text = PROBES[probe]
    assert printed(script, 3) == text


def test_probe_14_and_32_are_static_errors() -> None:
    (message,) = complaints(LET.format("T := f(1)") + " toolbus(P)")
    assert "quote" in message
    assert complaints(LET.format('S := concat("a",3)') + " toolbus(P)")


def test_probe_20_and_30_are_warned_about() -> None:
    assert warnings("process Q(A:int) is A := 2 process P is Q(1) toolbus(P)")
    assert warnings("process P is let X:int in X := 2147483648 endlet toolbus(P)")


def test_a_process_that_can_only_do_delta_ends() -> None:
    assert alone("delta").ending == "halted"


def test_a_script_that_starts_nothing_is_an_error() -> None:
    with pytest.raises(ScriptError):
        Bus("process P is tau")


def test_a_variable_declared_twice_is_an_error() -> None:
    assert complaints("process P is let X:int, X:int in tau endlet toolbus(P)")


def test_the_first_process_is_number_one() -> None:
    assert printed('process P is let I:int in I := process-id . printf("%d", I) endlet') == "1"
