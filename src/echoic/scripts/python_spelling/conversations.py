"""Questions and answers that belong together, between processes and with tools.

T-script has messages only, and who asks has to see to it that the answer is his. Here each question gets a number,
which goes to whoever asks in the same handshake that takes the question, as data may flow both ways in one:

    ask(Q, A)        let T : list in snd-msg(Q, T?) . rec-msg(A, T) endlet

    serve(Q, P, A)   let T : list in
                       T := [process-id, 0] .
                       ( rec-msg(Q, T) . P . snd-msg(A, T) . T := replace(T, 2, add(index(T, 2), 1)) ) * delta
                     endlet

The number has the id of the process that answers, so that several may serve the same questions. Because whoever
answers draws it, the first step of `ask` is the question itself, and `ask(...) | something_else` is a choice of both.
"""

from typing import TYPE_CHECKING

from echoic.scripts.python_spelling.atoms import delta, rec_msg, rec_value, snd_eval, snd_msg
from echoic.scripts.python_spelling.behaviours import Behaviour, Expansion, after, let
from echoic.scripts.python_spelling.formulas import Operand, fn
from echoic.scripts.python_spelling.places import here
from echoic.scripts.python_spelling.variables import Var

if TYPE_CHECKING:
    from echoic.scripts.python_spelling.builder import Builder

__all__ = ["ask", "ask_tool", "serve"]


def ask(question: Operand, answer: Operand) -> Behaviour:
    """Return a question to a process that `serve`s it, and the receipt of the answer to it and to no other.

    Args:
        question: Its term, as in `snd_msg`.
        answer: The pattern of the answer, as in `rec_msg`.
    """
    span = here()

    def make(builder: "Builder") -> Behaviour:
        number: Var[object] = Var(builder.fresh("transaction"), list, span)
        return let(number)(snd_msg(question, number.q) >> rec_msg(answer, number))

    return Expansion(make, span)


def serve(
    question: Operand,
    behaviour: Behaviour | None,
    answer: Operand,
    *,
    until: Behaviour | None = None,
    patience: Operand | None = None,
) -> Behaviour:
    """Return what answers the questions of `ask`, one after the other.

    Args:
        question: The pattern of the question, as in `rec_msg`.
        behaviour: What is done to find the answer, None where it is known already.
        answer: Its term, as in `snd_msg`.
        until: What ends it, between two questions; it goes on forever otherwise.
        patience: Seconds after which an answer is dropped that nobody takes, since whoever asked was disrupted.
    """
    span = here()

    def make(builder: "Builder") -> Behaviour:
        number: Var[object] = Var(builder.fresh("transaction"), list, span)
        taken = rec_msg(question, number)
        given: Behaviour = snd_msg(answer, number)
        if patience is not None:
            given = given | after(patience)
        counted = number.set(fn.replace(number, 2, fn.add(fn.index(number, 2), 1)))
        turn = (taken if behaviour is None else taken >> behaviour) >> given >> counted
        return let(number)(number.set([fn.process_id(), 0]) >> turn * (delta() if until is None else until))

    return Expansion(make, span)


def ask_tool(tool: Var[object], question: Operand, answer: Operand) -> Behaviour:
    """Return a question to a tool and the receipt of its value: `snd-eval(T, Q) . rec-value(T, A)`.

    Where several processes ask the same tool, the answer should say which question it belongs to: a value is for
    whoever waits for the like.

    Args:
        tool: The variable that has the tool.
        question: What it evaluates.
        answer: The pattern of the value.
    """
    return snd_eval(tool, question) >> rec_value(tool, answer)
