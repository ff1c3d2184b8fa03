"""A machine and values that are elsewhere: a run with references is the run with values.

The twin of a run gets the same inputs, with references in the places of strings, lists and terms. If whoever keeps the
values answers at once, it does the same steps; if he takes his time, nobody waits forever, and nothing is kept.
"""

import random
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.scripts.graph import compile  # noqa: A004 - the word for it
from echoic.scripts.running import Machine, RunLog, digest_of, replay
from echoic.scripts.running.messages import (
    Announce,
    Connected,
    Delivered,
    Effect,
    Fetch,
    Fetched,
    FromTool,
    Halted,
    Input,
    LineRead,
    Lost,
    Note,
    Print,
    Said,
    Step,
    Tell,
)
from echoic.scripts.syntax import load
from echoic.terms import Reference, Term, TermList, Value, refers
from echoic.terms.term import shared_terms
from tests.terms.cut_values import Owner
from tests.terms.values import uncollected

ATOMS = [
    "tau",
    "S := concat(S,S)",
    'S := "a"',
    "V := S",
    "V := [S,V]",
    "V := first([V])",
    "L := [S]",
    "L := join(L,V)",
    "snd-msg(a(S))",
    "snd-msg(S)",
    "snd-msg(a(V))",
    "snd-msg(b,V)",
    "rec-msg(a(S?))",
    "rec-msg(a(S))",
    "rec-msg(S)",
    'rec-msg(a("x"))',
    "rec-msg(b,f(V?))",
    "rec-msg(b,<str>)",
    "rec-msg(V?)",
    "rec-msg(b,V?) timeout(msec(4))",
    "snd-note(n(S))",
    "snd-note(V)",
    "rec-note(n(S?))",
    'rec-note(n("x"))',
    "rec-note(V?)",
    "no-note(n(S))",
    "subscribe(n(<str>))",
    "subscribe(<term>)",
    "subscribe(n(S))",
    "unsubscribe(n(S))",
    'unsubscribe(n("x"))',
    'printf("%s\\n", S)',
    "tau delay(msec(3))",
    "rec-connect(T?)",
    "rec-disconnect(T)",
    "rec-event(T,e(S?))",
    "rec-event(T,e(V?))",
    'rec-event(T,e("x"))',
    "snd-ack-event(T,e)",
    "snd-ack-event(T,e(S))",
    "snd-eval(T,q(S))",
    "rec-value(T,v(V?))",
    "rec-value(T,v(L?))",
    "rec-value(T,v(S?))",
    "snd-do(T,d(V))",
    "snd-cancel(T)",
    "rec-request(T,e(V?))",
    "snd-response(T,r(V))",
    "snd-terminate(T,bye(S))",
    "create(R(S),P?)",
    "create(R(V),P?)",
    'read("?",S?)',
    "Q(S)",
    "shutdown(S)",
]
CONDITIONS = ['equal(S,"x")', "equal(S,V)", "is-str(V)", "is-list(V)", "greater(size(L),1)", "member(S,L)"]

MEETING = [
    "snd-msg(V)",
    "snd-msg(a(S))",
    "snd-msg(b,S)",
    'rec-msg(f("x"))',
    "rec-msg(f(S))",
    "rec-msg(b,S?)",
    'if equal(S,"x") then snd-msg(a(S)) fi',
    'if not(equal(S,"x")) then rec-msg(a(S?)) fi',
    'if equal(S,"y") then rec-msg(V?) fi',
    "if equal(S,V) then rec-msg(b,V?) fi",
    "snd-do(T,d(S))",
    "snd-ack-event(T,e)",
]
TAKING = [
    "rec-event(T,e(S?))",
    "rec-event(T,e(V?))",
    "rec-note(n(S?))",
    "rec-note(V?)",
    "rec-msg(a(S?))",
    "rec-msg(V?)",
]

phrases = st.recursive(
    st.builds(" . ".join, st.lists(st.sampled_from(MEETING) | st.sampled_from(ATOMS), min_size=1, max_size=3)),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([".", ".", "+", "||", "*", "+>", "<+", ">>"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        st.builds(lambda test, body: f"if {test} then {body} fi", st.sampled_from(CONDITIONS), inner),
        st.builds(lambda test, body: f"if {test} then {body} else tau fi", st.sampled_from(CONDITIONS), inner),
        inner.map(lambda body: f"let S:str in {body} endlet"),
    ),
    max_leaves=3,
)
# What a process does again and again: it takes what may be a reference, and goes on with it.
taking = st.builds(lambda taken, rest: f"{taken} . {rest}", st.sampled_from(TAKING), phrases)
processes = st.lists(taking | phrases, min_size=1, max_size=4).map(lambda each: f"({' + '.join(each)}) * delta")
texts = st.sampled_from(["x", "y", "a", "long"])
parts = texts | st.builds(lambda part: Term("f", part), texts) | st.builds(TermList, texts, texts)
said = st.builds(Term, st.sampled_from("eev"), parts)
inputs = st.one_of(
    st.builds(Said, st.just(1), st.just(FromTool.EVENT), said.map(lambda value: (value,))),
    st.builds(
        Said,
        st.just(1),
        st.sampled_from([FromTool.EVENT, FromTool.VALUE, FromTool.REQUEST, FromTool.VOID]),
        said.map(lambda value: (value,)),
    ),
    st.builds(Note, st.builds(lambda part: Term("n", part), texts) | parts),
    st.builds(LineRead, texts),
)
ends = st.sampled_from([Said(1, FromTool.DISCONNECT), Lost(1, "gone")])
# After so many steps and milliseconds something is heard.
plans = st.builds(
    lambda plan, end: [(0, 0, Connected("t")), *plan, *end],
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 3), st.none() | inputs), min_size=4, max_size=20),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 3), ends), max_size=1),
)
bodies = st.lists(processes, min_size=1, max_size=4)
Plan = list[tuple[int, int, Input | None]]


def script_of(written: list[str]) -> str:
    text = 'tool t is { command = "t" }\nprocess Q(A:str) is snd-msg(a(A)) + rec-msg(a(A))\n'
    text += "process R(A:str) is snd-note(n(A)) . snd-msg(a(A))\n"
    for number, body in enumerate(written):
        text += f'process P{number}(T:t) is let S:str, V:term, L:list, P:int in S := "x" . L := [] . '
        text += f"subscribe(<term>) . {body} endlet\n"
    created = " . ".join(f"create(P{number}(T),P?)" for number in range(len(written)))
    return text + f"process Main is let T:t, P:int in rec-connect(T?) . {created} . delta endlet\ntoolbus(Main)\n"


class Run:
    """A machine that is told values, or references in their places, and whoever keeps the values."""

    def __init__(self, text: str, seed: int, *, share: float, log: RunLog | None = None) -> None:
        self.owner = Owner(1)
        self.chance = random.Random(seed + 1)
        self.share = share
        entries = None if log is None else log.entries
        self.machine = Machine(
            compile(load(text, "script")), chance=random.Random(seed), now_ns=0, traced=True, log=entries
        )
        self.machine.start()
        self.now_ns = 0
        self.effects: list[Effect] = []
        self.answers: list[tuple[int, Value] | int] = []  # what was asked for: a variable, or a hold

    def heard(self, heard: Input) -> None:
        match heard:
            case Said(tool, kind, values):
                heard = Said(tool, kind, tuple(map(self.cut, values)))
            case Note(value):
                heard = Note(self.cut(value))
        self.machine.receive(heard, self.now_ns)

    def cut(self, value: Value) -> Value:
        return self.owner.cut(value, lambda: self.chance.random() < self.share)

    def look(self) -> None:
        """Take what is to happen; what was asked for is answered later."""
        for effect in self.machine.take_effects():
            if isinstance(effect, Fetch):
                self.answers.append((effect.reference.variable, self.owner.value(effect.reference)))
            else:
                if isinstance(effect, Tell) and effect.hold is not None:
                    assert any(map(refers, effect.values))
                    self.answers.append(effect.hold)
                self.effects.append(self._whole(effect))

    def answer(self, position: int = 0) -> None:
        """Answer one of the questions."""
        answer = self.answers.pop(position)
        if isinstance(answer, int):
            self.machine.receive(Delivered(answer), self.now_ns)
        else:
            variable, value = answer
            for reference in self.references():
                if reference.variable == variable:
                    self.machine.receive(Fetched(reference, value), self.now_ns)

    def answer_all(self) -> None:
        self.look()
        while self.answers:
            self.answer()
            self.look()

    def references(self) -> Iterator[Reference]:
        yield from self.machine.holders()

    def step(self) -> bool:
        """Let one process have its turn; whether there is more to do."""
        more = self.machine.run(1, self.now_ns)
        self.look()
        return more

    def follow(self, plan: Plan) -> None:
        """Do what a plan says, with all answers at once; steps are counted, since a turn may be had twice."""
        for steps, milliseconds, heard in [*plan, (12, 5, None)]:
            self.now_ns += milliseconds * 1_000_000
            self.machine.run(0, self.now_ns)
            limit = self.machine.statistics().steps + steps
            for _ in range(60):
                if self.machine.statistics().steps >= limit:
                    break
                self.step()
                self.answer_all()
            if heard is not None:
                self.heard(heard)
                self.answer_all()

    def _whole(self, effect: Effect) -> Effect:
        match effect:
            case Tell(tool, kind, values):
                return Tell(tool, kind, tuple(map(self.owner.whole, values)))
            case Announce(value):
                return Announce(self.owner.whole(value))
            case Step():
                assert not any(map(refers, effect.arguments))
                fields = {name: getattr(effect, name) for name in Step.__slots__}
                return Step(**(fields | {"arguments": tuple(map(self.owner.told, effect.arguments))}))
            case _:
                return effect

    def done(self) -> list[list[Effect]]:
        """Return what has happened, by sorts: in which order a process ends and its step is told is not said."""
        return [
            [each for each in self.effects if isinstance(each, kind)] for kind in (Step, Tell, Announce, Print, Halted)
        ]


def living() -> set[Reference]:
    return {each for each in shared_terms() if isinstance(each, Reference) and each.owner == 1}


@settings(max_examples=120, deadline=None)
@given(bodies, st.integers(0, 2**32), plans, st.sampled_from([0.3, 1.0]))
def test_a_run_with_references_has_the_steps_of_one_with_values(
    written: list[str], seed: int, plan: Plan, share: float
) -> None:
    text = script_of(written)
    runs = [Run(text, seed, share=each) for each in (0.0, share)]
    for run in runs:
        run.follow(plan)
    assert runs[1].done() == runs[0].done()
    assert runs[1].machine.halted is runs[0].machine.halted


@settings(max_examples=80, deadline=None)
@given(bodies, st.integers(0, 2**32), plans, st.data())
def test_late_answers_leave_nobody_waiting_and_nothing_behind(
    written: list[str], seed: int, plan: Plan, data: st.DataObject
) -> None:
    text = script_of(written)
    log = RunLog(digest_of(load(text, "script")), seed, 0)
    effects: list[Effect] = []
    run = Run(text, seed, share=0.7, log=log)
    run._whole = lambda effect: effects.append(effect) or effect  # type: ignore[method-assign] # noqa: SLF001
    for turns, milliseconds, heard in plan:
        run.now_ns += milliseconds * 1_000_000
        for _ in range(turns):
            run.step()
            if run.answers and data.draw(st.booleans()):
                run.answer(data.draw(st.integers(0, len(run.answers) - 1)))
        if heard is not None:
            run.heard(heard)
    for _ in range(400):
        run.answer_all()
        if not run.step() and not run.answers:
            break
    if not run.machine.halted and not run.machine.run(0, run.now_ns):
        assert run.machine.possible() == ()
    again = replay(log, compile(load(text, "script")), random.Random(seed), turns_max=run.machine.turns)
    told = [effect for batch in again for effect in batch if not isinstance(effect, Fetch)]
    run.look()
    assert told == effects


@settings(max_examples=50, deadline=None)
@given(bodies, st.integers(0, 2**32), plans)
def test_what_nobody_holds_is_forgotten_at_once(written: list[str], seed: int, plan: Plan) -> None:
    with uncollected():
        before = living()
        run = Run(script_of(written), seed, share=0.7)
        for turns, milliseconds, heard in plan:
            run.now_ns += milliseconds * 1_000_000
            for _ in range(turns):
                run.step()
                run.effects.clear()
                if run.answers:
                    run.answer()
                    run.look()
            if heard is not None:
                run.heard(heard)
                run.look()
                run.effects.clear()
            if run.machine.halted:
                return
            held = set(run.machine.holders())  # and whoever looks finds values in their places
            assert living() - before == held - before
