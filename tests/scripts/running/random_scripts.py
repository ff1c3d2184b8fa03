"""Random scripts, and things that may happen to them."""

from hypothesis import strategies as st

from echoic.scripts.running.messages import Connected, FromTool, LineRead, Lost, Note, Said
from echoic.terms import Term

ATOMS = [
    "tau",
    "X := add(X,1)",
    "X := div(7,X)",
    "snd-msg(a(X))",
    "rec-msg(a(X?))",
    "snd-msg(b,X)",
    "rec-msg(b,<int>)",
    "rec-msg(b,X?) timeout(msec(8))",
    "snd-note(n(X))",
    "rec-note(n(X?))",
    "no-note(n(1))",
    "subscribe(n(<int>))",
    "unsubscribe(n(<int>))",
    'printf("%d\\n", X)',
    "tau delay(msec(5))",
    "tau delay(msec(X))",
    "rec-connect(T?)",
    "rec-disconnect(T)",
    "rec-event(T,e(X?))",
    "snd-ack-event(T,e)",
    "snd-eval(T,q(X))",
    "rec-value(T,v(X?))",
    "snd-do(T,d)",
    "snd-terminate(T,bye)",
    "execute(t,T?)",
    "create(R(X),P?)",
    'read("?",X?)',
    "Q(X)",
    "S(X?)",
    "N(X)",
    'N := "Q"',
    "delta",
]

processes = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([".", ".", "+", "||", "*", "+>", "<+", ">>"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        inner.map(lambda body: f"if less(X,5) then {body} fi"),
        inner.map(lambda body: f"if less(X,3) then {body} else tau fi"),
        inner.map(lambda body: f"let X:int in {body} endlet"),
    ),
    max_leaves=10,
)
inputs = st.one_of(
    st.just(Connected("t")),
    st.builds(Connected, st.just("t"), st.integers(1, 3)),
    st.builds(
        Said,
        st.integers(1, 3),
        st.sampled_from(list(FromTool)),
        st.sampled_from([(Term("e", 1),), (Term("v", 2),), (), (Term("e", 4),)]),
    ),
    st.builds(Lost, st.integers(1, 3), st.just("gone")),
    st.builds(Note, st.sampled_from([Term("n", 1), Term("n", 2), Term("m")])),
    st.builds(LineRead, st.sampled_from(["3", "f(1)", "???"])),
)
plans = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4), st.none() | inputs), max_size=25)


def script_of(bodies: list[str]) -> str:
    text = 'tool t is { command = "t" }\nprocess Q(A:int) is snd-msg(a(A)) + A := 2 . rec-msg(a(A?))\n'
    text += "process S(A:int?) is A := 1 + rec-msg(a(A?))\nprocess R(A:int) is snd-note(n(A)) . rec-msg(a(A?))\n"
    for number, body in enumerate(bodies):
        text += f"process P{number} is let X:int, T:t, P:int, N:str in X := {number} . {body} endlet\n"
    return text + f"toolbus({','.join(f'P{number}' for number in range(len(bodies)))})\n"
