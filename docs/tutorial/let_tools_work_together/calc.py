"""A tool that computes."""

import operator
from typing import Annotated

from echoic.toolbus import Term, Tool, eval_

SIGNS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv}


class Calc(Tool, name="calc"):
    """Computes what stands in a text."""

    @eval_
    def compute(self, text: str) -> Annotated[Term, "value(int)"] | Annotated[Term, "error(str)"]:
        """Return the value of `1 + 2`, or why it has none."""
        try:
            left, sign, right = text.split()
            apply = SIGNS[sign]
            return Term("value", apply(int(left), int(right)))
        except (KeyError, ValueError, ZeroDivisionError) as error:
            return Term("error", f"{text}: {error}")


if __name__ == "__main__":
    Calc.run()
