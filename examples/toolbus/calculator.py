"""The tools of `calculator.tb`: `python calculator.py calc` and `python calculator.py user`."""

import ast
import operator
import sys
from typing import Annotated

from echoic.toolbus import Term, Tool, eval_, event

OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
}
QUESTIONS = ["1 + 2", "2 ** 10 - 24", "(3 + 4) * 6", "22 / 7", "1 / 0", "-8 * -8"]


def value_of(node: ast.expr) -> float:
    """Return the value of an expression of numbers."""
    match node:
        case ast.Constant(int() | float() as number):
            return number
        case ast.BinOp(left, sign, right):
            return OPERATORS[type(sign)](value_of(left), value_of(right))
        case ast.UnaryOp(sign, operand):
            return OPERATORS[type(sign)](value_of(operand))
    raise ValueError(ast.unparse(node))


class Calc(Tool, name="calc"):
    """Calculates."""

    @eval_
    def evaluate(self, text: str) -> Annotated[Term, "result(term)"]:
        try:
            return Term("result", value_of(ast.parse(text, mode="eval").body))
        except (ArithmeticError, KeyError, SyntaxError, ValueError) as error:
            return Term("result", Term("error", f"{error}"))


class User(Tool, name="user"):
    """Wants to know."""

    @event
    def question(self, text: str) -> Term: ...

    async def main(self) -> None:
        for text in QUESTIONS:
            answer = await self.event("question", text)
            print(f"{text} = {answer.args[0]}")
        self.disconnect()


if __name__ == "__main__":
    {"calc": Calc, "user": User}[sys.argv[1]].run()
