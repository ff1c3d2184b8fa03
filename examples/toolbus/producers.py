"""The tools of `producers.tb`: `python producers.py cook DISH` and `python producers.py guest NAME`."""

import asyncio
import sys
from typing import Annotated

from echoic.toolbus import Term, Tool, eval_, event

PLATES = 8


class Cook(Tool, name="cook"):
    """Cooks the same dish again and again, but no faster than plates find room."""

    @event
    def cooked(self, plate: str) -> None: ...

    async def main(self) -> None:
        for number in range(1, PLATES + 1):
            await self.event("cooked", f"{sys.argv[2]} {number}")
        self.disconnect()


class Guest(Tool, name="guest"):
    """Eats, which takes its time."""

    def __init__(self) -> None:
        self.eaten: list[str] = []

    @eval_
    async def eat(self, plate: str) -> Annotated[Term, "eaten(list)"]:
        await asyncio.sleep(0.02)
        self.eaten.append(plate)
        return self.all()

    @eval_
    def all(self) -> Annotated[Term, "eaten(list)"]:
        return Term("eaten", self.eaten)


if __name__ == "__main__":
    {"cook": Cook, "guest": Guest}[sys.argv[1]].run()
