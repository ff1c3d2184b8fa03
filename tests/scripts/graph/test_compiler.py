"""What graphs look like: which nodes are one, what begins and ends on an edge, and what is refused."""

import pytest

from echoic.errors import ScriptError
from echoic.scripts.graph import END, Edge, Kind, Node, compile, keeps_time  # noqa: A004 - the word for it
from echoic.scripts.syntax import load


class Somebody:
    number = 7
    name = "P"

    def local_ns(self) -> int:
        return 0


def start_of(body: str, more: str = "") -> Node:
    return compile(load(f"process P is {body} {more} toolbus(P)", "script")).graph("P").start


def reached(start: Node) -> list[Node]:
    found = [start]
    for node in found:
        for edge in node.edges:
            if edge.target not in found:
                found.append(edge.target)
    return found


def names(node: Node) -> list[str]:
    return [edge.name for edge in node.edges]


def only(node: Node) -> Edge:
    (edge,) = node.edges
    return edge


def test_a_sequence_is_a_chain() -> None:
    start = start_of("tau . rec-msg(a) . snd-msg(b)")
    assert [names(node) for node in reached(start)] == [["tau"], ["rec-msg"], ["snd-msg"], []]
    assert reached(start)[-1] is END


def test_a_loop_closes() -> None:
    start = start_of("(rec-msg(a) . tau) * snd-msg(b)")
    nodes = reached(start)
    assert len(nodes) == 3
    again = start.edges[0].target.edges[0].target
    assert again is start


def test_loops_in_lets_and_calls_close() -> None:
    body = "let X:int in (let Y:int in rec-msg(a(Y?)) . Q(Y) endlet) * delta endlet"
    assert len(reached(start_of(body, "process Q(A:int) is A := add(A,1) . snd-msg(b(A))"))) <= 5


def test_a_merge_is_a_diamond() -> None:
    start = start_of("(tau || rec-msg(a)) . snd-msg(b)")
    left, right = (edge.target for edge in start.edges)
    assert names(left) == ["rec-msg"]
    assert names(right) == ["tau"]
    assert only(left).target is only(right).target
    assert names(only(left).target) == ["snd-msg"]


def test_a_merge_of_loops_has_as_many_nodes_as_pairs() -> None:
    start = start_of("((tau . tau) * delta) || ((rec-msg(a) . rec-msg(b) . rec-msg(c)) * delta)")
    assert len(reached(start)) == 2 * 3


def test_nodes_are_made_when_they_are_reached() -> None:
    program = compile(load("process P is tau . Nobody toolbus(P)", "script"))
    first = only(program.graph("P").start)
    with pytest.raises(ScriptError, match="undeclared process `Nobody`"):
        _ = first.target.edges


def test_a_disrupt_goes_to_what_follows_from_both_sides() -> None:
    start = start_of("((tau . tau) >> rec-msg(stop)) . snd-msg(after)")
    assert names(start) == ["tau", "rec-msg"]
    middle = start.edges[0].target
    assert names(middle) == ["tau", "rec-msg"]
    assert middle.edges[0].target is middle.edges[1].target is start.edges[1].target


def test_a_variable_begins_with_the_first_atom_and_ends_with_the_last() -> None:
    first = only(start_of("let X:int in X := 1 . tau . snd-msg(a(X)) endlet . tau"))
    second = only(first.target)
    third = only(second.target)
    assert (first.resets, first.drops) == ((0,), ())
    assert (second.resets, second.drops) == ((), ())
    assert (third.resets, third.drops) == ((), (0,))


def test_the_first_atom_sees_its_variables_empty() -> None:
    edge = only(start_of("let X:int in if equal(X,undefined) then snd-msg(a(X)) fi endlet"))
    (guard,) = edge.guards
    assert guard((5,), Somebody()) is True
    assert str(edge.arguments[0]) == "a(undefined)"
    assert edge.key.known


def test_guards_work_on_tuples_too() -> None:
    edge = only(only(start_of("let X:int in X := 1 . if less(X,process-id) then tau fi endlet")).target)
    (guard,) = edge.guards
    assert guard((6,), Somebody()) is True
    assert guard((7,), Somebody()) is False


def test_preferred_edges_block_the_others() -> None:
    left, right = sorted(start_of("tau +> rec-msg(a)").edges, key=lambda edge: edge.kind)
    assert left.blockers == (right,)
    assert right.blockers == ()


def test_blockers_are_edges_of_the_same_node_inside_of_a_merge_too() -> None:
    start = start_of("((tau +> rec-msg(a)) <+ tau) || (rec-msg(b) <+ rec-msg(c)) || tau")
    for node in reached(start):
        for edge in node.edges:
            assert all(any(blocker is other for other in node.edges) for blocker in edge.blockers)


def test_sides_of_a_merge_keep_their_time_and_a_side_that_moves_does_not() -> None:
    start = start_of("(tau delay(1)) || (rec-msg(a) . tau delay(2))")
    timed, message = start.edges
    assert keeps_time(timed, message)
    assert not keeps_time(message, message)
    assert not keeps_time(timed, timed)


def test_execute_is_two_steps() -> None:
    program = compile(
        load('tool t is { command = "t" } process P is let T:t in execute(t,T?) endlet toolbus(P)', "script")
    )
    first = only(program.graph("P").start)
    second = only(first.target)
    assert (first.kind, second.kind) == (Kind.EXECUTE, Kind.AWAIT)
    assert second.target is END
    assert set(second.drops) == set(first.resets)


def test_instances_share_a_graph() -> None:
    program = compile(load("process P(X:int) is tau toolbus(P(1),P(2))", "script"))
    assert program.graph("P") is program.graph("P")
    assert program.initial == (("P", (1,)), ("P", (2,)))
    assert program.graph("P").takes((3,))
    assert not program.graph("P").takes(("s",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("process P is X := 1 toolbus(P)", "cannot be assigned"),
        ("process P is snd-msg(X) toolbus(P)", "undeclared variable `X`"),
        ("process P is P toolbus(P)", "recursive call"),
        ("process P is Q(1) process Q is tau toolbus(P)", "0 parameter"),
        ("process P is Q(1) process Q(A:int?) is tau toolbus(P)", "for a result"),
        ("process P is let X:int in X := f(1) endlet toolbus(P)", "function `f` undefined"),
        ("process P is let X:int in X := add(1) endlet toolbus(P)", "wants 2 argument"),
        ("process P is rec-note() toolbus(P)", "wants 1 argument"),
        ("process P is tau delay(1,2) toolbus(P)", "number of arguments"),
        ("process P is tau toolbus(Q)", "no process `Q`"),
    ],
)
def test_a_script_that_was_not_checked_is_refused_where_it_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        _ = compile(load(text, "script")).graph("P").start.edges


def test_calls_that_are_nested_too_deep_are_refused() -> None:
    text = "process P0 is tau " + " ".join(f"process P{n} is P{n - 1}" for n in range(1, 2000)) + " toolbus(P1999)"
    with pytest.raises(ScriptError, match="deeper"):
        _ = compile(load(text, "script")).graph("P1999").start.edges
