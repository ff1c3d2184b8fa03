"""What T-script leaves to its authors: answers that belong to questions, notes that are not lost, lines in traces."""

import random
from pathlib import Path

import pytest

from echoic.scripts import python_spelling as ts
from echoic.scripts.checking import require
from echoic.scripts.graph import compile  # noqa: A004 - the word for it
from echoic.scripts.python_spelling import Behaviour, Var, term
from echoic.scripts.running import Machine
from echoic.scripts.running.messages import Print, Step
from echoic.scripts.syntax.tree import Script

X, Y, PID = ts.variables("X Y Pid", int)
TURNS_MAX = 5000
MOMENTS_MAX = 40


def run(script: Script, seed: int = 0) -> tuple[str, list[Step]]:
    """Run a script, with time going on whenever nothing is left to do."""
    require(script)
    machine = Machine(compile(script), chance=random.Random(seed), now_ns=0, traced=True)
    machine.start()
    text, steps, now_ns = "", [], 0
    for _ in range(MOMENTS_MAX):
        machine.run(TURNS_MAX, now_ns)
        for each in machine.take_effects():
            if isinstance(each, Print):
                text += each.text
            elif isinstance(each, Step):
                steps.append(each)
        due_ns = machine.deadline_ns()
        if machine.halted or due_ns is None:
            break
        now_ns = max(now_ns, due_ns)
    return text, steps


@ts.process
def doubler() -> Behaviour:
    return ts.serve(term.double(X.q), Y.set(X + X), term.doubled(Y), patience=2)


@ts.process
def asker(number: Var[int]) -> Behaviour:
    return ts.ask(term.double(number), term.doubled(Y.q)) >> ts.printf("%d+%d=%d ", number, number, Y)


@ts.process
def impatient() -> Behaviour:
    """Asks, does not wait for the answer, and asks something else."""
    given_up = ts.ask(term.double(100), term.doubled(Y.q)).disrupted_by(ts.rec_msg(term.never_mind))
    return given_up >> ts.ask(term.double(5), term.doubled(Y.q)) >> ts.printf("at last %d", Y)


@pytest.mark.parametrize("seed", range(10))
def test_each_gets_the_answer_to_his_own_question(seed: int) -> None:
    text, _ = run(ts.bus(doubler(), doubler(), doubler(), *(asker(number) for number in range(1, 8))), seed)
    assert sorted(text.split()) == [f"{number}+{number}={2 * number}" for number in range(1, 8)]


@pytest.mark.parametrize("seed", range(10))
def test_an_answer_nobody_waits_for_goes_to_nobody(seed: int) -> None:
    @ts.process
    def distraction() -> Behaviour:
        return ts.snd_msg(term.never_mind)

    text, _ = run(ts.bus(doubler(), impatient(), distraction()), seed)
    assert text == "at last 10"


def test_serving_ends_between_two_questions() -> None:
    @ts.process
    def servant() -> Behaviour:
        return ts.serve(term.now(), None, term.answer(7), until=ts.rec_msg(term.enough)) >> ts.printf("over")

    @ts.process
    def master() -> Behaviour:
        ask = ts.ask(term.now(), term.answer(X.q)) >> ts.printf("%d ", X)
        return ask >> ask >> ts.snd_msg(term.enough)

    for seed in range(5):
        assert run(ts.bus(servant(), master()), seed)[0] == "7 7 over"


@pytest.mark.parametrize("careful", [True, False])
def test_no_note_is_lost_between_creation_and_subscription(careful: bool) -> None:
    news = ts.notes(term.news(X.q))

    @ts.process
    def reader() -> Behaviour:
        subscription = ts.ready(news) if careful else news.subscribe()
        return ts.tau() >> ts.tau() >> subscription >> news.receive() >> ts.printf("heard %d", X)

    @ts.process
    def writer() -> Behaviour:
        creation = ts.create_ready(reader(), PID.q) if careful else ts.create(reader(), PID.q)
        return creation >> ts.snd_note(term.news(5))

    heard = {run(ts.bus(writer()), seed)[0] for seed in range(30)}
    assert heard == {"heard 5" if careful else ""}


def test_something_is_done_for_each_note() -> None:
    news = ts.notes(term.news(X.q))

    @ts.process
    def patient() -> Behaviour:
        return news.each(ts.printf("%d ", X), until=ts.after(1))

    @ts.process
    def source() -> Behaviour:
        return ts.snd_note(term.news(1)).delay(0.1) >> ts.snd_note(term.news(2)) >> ts.snd_note(term.news(3)).delay(5)

    assert run(ts.bus(patient(), source()))[0] == "1 2 "


def test_a_trace_shows_the_lines_of_python() -> None:
    _, steps = run(ts.bus(asker(4), doubler()))
    printing = next(step for step in steps if step.atom == "printf")
    assert printing.span.file == __file__
    line = Path(__file__).read_text("utf-8").splitlines()[printing.span.line - 1]
    assert line[printing.span.column - 1 : printing.span.end_column - 1].startswith('ts.printf("%d+%d=%d "')
