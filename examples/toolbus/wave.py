"""The tool of `wave.tb`: it draws the string, and knows where it should be."""

import math
from typing import Annotated

from echoic.toolbus import Term, Tool, do, eval_

BARS = " ▁▂▃▄▅▆▇█"


class Display(Tool, name="display"):
    def __init__(self) -> None:
        self.difference = 0.0

    @do
    def show(self, step: int, row: list[float]) -> None:
        points = len(row) - 1
        for point, displacement in enumerate(row):
            exact = math.sin(math.pi * point / points) * math.cos(math.pi * step / points)
            self.difference = max(self.difference, abs(displacement - exact))
        if step % 3 == 0:
            print("".join(BARS[round(4 + 4 * each)] for each in row), f"step {step}")

    @eval_
    def largest_difference(self) -> Annotated[Term, "difference(real)"]:
        return Term("difference", self.difference)


if __name__ == "__main__":
    Display.run()
