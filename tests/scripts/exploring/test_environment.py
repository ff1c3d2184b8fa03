"""Tools, channels and people, as far as a script can tell."""

from echoic.scripts.exploring import Environment, ExplorationLimits, FindingKind
from echoic.scripts.graph import compile  # noqa: A004 - the word for it
from echoic.scripts.syntax import load
from echoic.terms import Term, TermList
from tests.scripts.exploring.explored import TOOL, explored, found

DEADLOCK = FindingKind.DEADLOCK


def labels(text: str, environment: Environment | None = None) -> set[str]:
    return {label for _, label, _ in explored(text, environment=environment).system().transitions}


def with_tool(body: str, more: str = "") -> str:
    return f"{TOOL}process P is let T : t, X : int, S : str, B : bool in {body} endlet\n{more}toolbus(P)"


def test_a_tool_answers_with_all_values_of_the_domain() -> None:
    text = with_tool("execute(t, T?) . snd-eval(T, q) . rec-value(T, v(X?)) . shutdown(X)")
    assert labels(text) >= {"execute(t,t(1))", "answers v(0)", "answers v(1)", "rec-value(t(1),v(1))", "shutdown(1)"}
    assert "shutdown(2)" in labels(text, Environment(domain={"int": (0, 1, 2)}))


def test_a_value_that_nobody_expects_is_a_deadlock() -> None:
    text = with_tool("execute(t, T?) . snd-eval(T, q) . (rec-value(T, v(1)))")
    (deadlock,) = found(text, DEADLOCK)
    assert deadlock.trace[-1].text == "answers v(0)"
    assert found(text, DEADLOCK, environment=Environment(domain={"int": (1,)})) == []


def test_an_eval_is_answered_as_its_process_expects_unless_anything_may_come() -> None:
    text = with_tool("execute(t, T?) . snd-eval(T, q) . rec-value(T, v) . snd-eval(T, r) . rec-value(T, w)")
    assert explored(text).findings == ()
    assert found(text, DEADLOCK, environment=Environment(answer_anything=True)) != []


def test_events_come_at_any_time_with_any_value() -> None:
    text = with_tool("execute(t, T?) . (rec-event(T, e(B?, S?)) . snd-ack-event(T, e(B, S))) * rec-event(T, stop)")
    assert {f'rec-event(t(1),e({flag},"{word}"))' for flag in ("true", "false") for word in "ab"} <= labels(text)


def test_a_tool_comes_by_itself_as_often_as_allowed() -> None:
    text = with_tool("rec-connect(T?) * delta")
    assert labels(text) == {"rec-connect(t(1))"}
    assert labels(text, Environment(connections_max=3)) == {f"rec-connect(t({number}))" for number in (1, 2, 3)}


def test_a_tool_is_busy_until_it_has_answered() -> None:
    text = with_tool("execute(t, T?) . snd-eval(T, q) . snd-do(T, d) . rec-value(T, v)")
    exploration = explored(text)
    assert exploration.findings == ()
    steps = [label for _, label, _ in exploration.system().transitions]
    assert steps.index("answers v") < steps.index("snd-do(t(1),d)")


def test_an_answer_may_come_before_the_eval_is_cancelled() -> None:
    text = with_tool("execute(t, T?) . snd-eval(T, q) . snd-cancel(T) + rec-msg(never) . rec-value(T, v)")
    (deadlock,) = found(text, DEADLOCK)
    assert deadlock.text == "P(1) waits for snd-cancel(t(1))"
    assert deadlock.trace[-1].text == "answers v"


def test_tools_leave_where_the_script_asks_for_it() -> None:
    text = with_tool("execute(t, T?) . (rec-event(T, e) . snd-ack-event(T, e)) * rec-disconnect(T)")
    assert {"leaves", "rec-disconnect(t(1))"} <= labels(text)
    assert explored(text).of_kind(DEADLOCK)[0].trace[-1].text == "leaves"  # between the event and its acknowledgement


def test_a_tool_that_was_started_does_not_leave_before_it_is_there() -> None:
    text = with_tool("execute(t, T?) . rec-disconnect(T)")
    assert explored(text).findings == ()
    assert found(text, DEADLOCK, environment=Environment(tools_fail=True))[0].trace[-1].text == "is lost"


def test_tools_fail_where_that_is_asked_for() -> None:
    text = with_tool("execute(t, T?) . rec-event(T, e) . snd-ack-event(T, e)")
    assert explored(text).findings == ()
    deadlocks = found(text, DEADLOCK, environment=Environment(tools_fail=True))
    assert any(step.text == "is lost" for step in deadlocks[0].trace)


def test_tools_that_were_terminated_make_room() -> None:
    text = with_tool(
        "(execute(t, T?) . snd-terminate(T, bye) . T := undefined) * delta".replace(" . T := undefined", "")
    )
    exploration = explored(text)
    assert exploration.complete
    assert exploration.states < 20


def test_too_many_tools_are_left_out_and_that_is_told() -> None:
    exploration = explored(with_tool("execute(t, T?) * delta"), limits=ExplorationLimits(tools_max=3))
    assert exploration.left_out == ("more than 3 tools at a time",)


def test_statistics_and_requests_are_answered() -> None:
    text = with_tool(
        "execute(t, T?) . get-perf-stats(T) . rec-perf-stats(T, S?) . rec-request(T, r(X?)) . snd-response(T, r(X))"
    )
    assert explored(text).findings == ()


def test_somebody_types_anything() -> None:
    text = 'process P is let X : int in read("?", f(X?)) . shutdown(X) endlet\ntoolbus(P)'
    assert {"shutdown(0)", "shutdown(1)"} <= labels(text)


def test_channels_send_notes() -> None:
    text = (
        'note channel "prices" as price(<str>,<int>)\n'
        'process P is let X : int in subscribe(price(<str>,<int>)) . rec-note(price("a", X?)) * delta endlet\n'
        "toolbus(P)"
    )
    assert {'sends price("b",1)', 'rec-note(price("a",0))'} <= labels(text)


def test_domains_of_compound_types() -> None:
    text = with_tool(
        "execute(t, T?) . let L : list(bool), F : f(int,[bool]), A : term in rec-event(T, e(L?, F?, A?)) endlet"
    )
    assert "rec-event(t(1),e([true],f(1,[false]),any))" in labels(text)
    fewer = Environment(domain={"term": (Term("x"), TermList(1))})
    assert "rec-event(t(1),e([],f(0,[true]),[1]))" in labels(text, fewer)


def test_too_many_values_are_left_out_and_that_is_told() -> None:
    text = with_tool("execute(t, T?) . rec-event(T, e(X?, X?, S?, S?, B?, B?, X?))")
    assert explored(text, environment=Environment(values_max=10)).left_out == ("more than 10 values of one pattern",)


def test_processes_that_are_created_get_numbers_that_are_free() -> None:
    text = "process P is let I : int in create(Q, I?) * delta endlet\nprocess Q is tau\ntoolbus(P)"
    exploration = explored(text, limits=ExplorationLimits(processes_max=3))
    assert exploration.left_out == ("more than 3 processes at a time",)
    assert exploration.states < 60
    assert {"create(Q,2)", "create(Q,3)"} <= {label for _, label, _ in exploration.system().transitions}


def test_an_atom_may_never_be_done_because_of_the_domain() -> None:
    text = with_tool('execute(t, T?) . (rec-event(T, e(S?)) . snd-ack-event(T, e)) * if equal(S, "stop") then tau fi')
    (never,) = found(text, FindingKind.UNREACHABLE)
    assert never.text == "this is never enabled with the values of the domain"
    assert found(text, FindingKind.UNREACHABLE, environment=Environment(domain={"str": ("a", "stop")})) == []


def stub(text: str) -> Environment:
    return Environment(stubs={"t": compile(load(text, "stub.tb"))})


def test_a_stub_answers_what_it_is_asked() -> None:
    text = with_tool("execute(t, T?) . snd-eval(T, add(1)) . rec-value(T, sum(X?)) . shutdown(X)")
    adder = """
process ADDER is let X : int in (rec-msg(rec-eval(add(X?))) . X := add(X,1) . snd-msg(snd-value(sum(X)))) * delta endlet
toolbus(ADDER)"""
    assert labels(text, stub(adder)) == {
        "execute(t,t(1))",
        "rec-connect(t(1))",
        "snd-eval(t(1),add(1))",
        "X := 2",
        "answers sum(2)",
        "rec-value(t(1),sum(2))",
        "shutdown(2)",
    }


def test_a_stub_that_does_not_listen_or_answer_is_waited_for_in_vain() -> None:
    text = with_tool("execute(t, T?) . snd-eval(T, q) . rec-value(T, v)")
    (deaf,) = found(text, DEADLOCK, environment=stub("process S is rec-msg(rec-eval(other))\ntoolbus(S)"))
    assert deaf.text == "P(1) waits for snd-eval(t(1),q)"
    (mute,) = found(text, DEADLOCK, environment=stub("process S is rec-msg(rec-eval(q))\ntoolbus(S)"))
    assert mute.text == "P(1) waits for rec-value(t(1),v)"


def test_a_stub_sends_events_requests_and_leaves() -> None:
    text = with_tool(
        "execute(t, T?) . rec-event(T, e(X?)) . snd-ack-event(T, e(X)) . rec-request(T, r) . snd-response(T, s) "
        ". snd-do(T, d) . rec-disconnect(T)"
    )
    actor = """
process S is snd-msg(snd-event(e(7))) . rec-msg(rec-ack-event(e(7))) . snd-msg(snd-request(r))
    . rec-msg(rec-response(s)) . rec-msg(rec-do(d)) . snd-msg(snd-disconnect)
toolbus(S)"""
    exploration = explored(text, environment=stub(actor))
    assert exploration.findings == ()
    assert exploration.states == exploration.transitions + 1 == 10
    assert "rec-event(t(1),e(7))" in {label for _, label, _ in exploration.system().transitions}


def test_events_of_many_arguments_are_limited_together() -> None:
    wanted = ",".join(f"e(A{place}?,B{place}?,C{place}?)" for place in range(8))
    names = ",".join(f"{letter}{place}:int" for place in range(8) for letter in "ABC")
    found = explored(
        TOOL + f"process P is let T:t,{names} in rec-connect(T?) . rec-event(T,{wanted}) endlet toolbus(P)"
    )
    assert found.left_out == ("more than 64 values of one pattern",)


def test_terms_that_are_too_large_for_people_are_explored() -> None:
    found = explored(
        "process P is let X:term, N:int in N := 0 . X := 1 . "
        "(if less(N,60) then X := quote(f(X,X)) . N := add(N,1) fi) * if equal(N,60) then tau fi endlet toolbus(P)"
    )
    assert found.complete
    assert any("<too large>" in step.text for state in range(found.states) for step, _ in found.steps_from(state))
