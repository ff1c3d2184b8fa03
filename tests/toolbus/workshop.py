"""Tools for tests, and scripts that use them. Run as a program it is one of them: `python workshop.py Calc`."""

import asyncio
import os
import sys
import threading
import time
from pathlib import Path
from typing import Annotated

from echoic.terms import Term
from echoic.toolbus import Tool, do, eval_, event, request

RUN = f"{sys.executable} {Path(__file__).resolve()}"


class Calc(Tool, name="calc"):
    """Answers, and does."""

    def __init__(self) -> None:
        self.shown: list[object] = []
        self.terminated: object = None

    @eval_
    def expr(self, text: str) -> Annotated[Term, "val(int)"]:
        return Term("val", sum(int(part) for part in text.split("+")))

    @eval_
    async def slow_expr(self, text: str) -> Annotated[Term, "val(int)"]:
        await asyncio.sleep(0.01)
        return self.expr(text)

    @eval_(returns="val(list(int))")
    def doubled(self, numbers: list[int]) -> Term:
        assert isinstance(numbers, list)
        return Term("val", [2 * number for number in numbers])

    @eval_("where-are-you", returns="val(int)")
    def process_id(self) -> Term:
        return Term("val", os.getpid())

    @eval_
    def sleep_for(self, seconds: float) -> Annotated[Term, "val(int)"]:
        time.sleep(seconds)
        return Term("val", 0)

    @do
    def show(self, value: object) -> None:
        self.shown.append(value)
        print(f"shown {value}")

    @do
    async def show_later(self, value: object) -> None:
        await asyncio.sleep(0.01)
        self.show(value)

    def on_terminate(self, value: object) -> None:
        self.terminated = value


class Button(Tool, name="button"):
    """Has news by itself."""

    def __init__(self) -> None:
        self.acknowledged: list[object] = []

    @event
    def pressed(self, number: int) -> None: ...

    @request
    def price(self, symbol: str) -> int: ...

    async def main(self) -> None:
        for number in range(3):
            self.acknowledged.append(await self.event("pressed", number))
        answer = await self.request("price", "IBM")
        self.pressed(answer.args[0], wait=True)


class Patient(Tool, name="button"):
    """The same, without `await`."""

    def main(self) -> None:
        pendings = [self.event("pressed", number) for number in range(3)]
        for pending in pendings:
            pending.wait(60)
        answer = self.request("price", "IBM", wait=True, timeout=60)
        self.event("pressed", answer.args[0], wait=True)


class Crasher(Tool, name="calc"):
    """Dies in the middle of an eval."""

    @eval_
    def expr(self, text: str) -> Term:
        os._exit(3)

    @do
    def show(self, value: object) -> None:
        os._exit(3)


class Hanger(Tool, name="calc"):
    """Never answers."""

    @eval_
    def expr(self, text: str) -> Term:
        print("hanging")
        threading.Event().wait()
        return Term("val", 0)

    @do
    def show(self, value: object) -> None:
        threading.Event().wait()


class Stubborn(Tool, name="calc"):
    """Does not end when it is told to."""

    def on_terminate(self, value: object) -> None:
        threading.Event().wait()


class Leaver(Tool, name="calc"):
    """Says goodbye in order."""

    def main(self) -> None:
        self.disconnect()


class Wrong(Tool, name="calc"):
    """Is not what scripts for `calc` expect."""

    @eval_
    def expr(self, number: int) -> Annotated[Term, "val(str)"]:
        return Term("val", str(number))


def script(body: str, *, variables: str = "V: int", command: str = "Calc", tool: str = "calc") -> str:
    """Return a script with one tool and one process."""
    return f"""
tool {tool} is {{ command = "{RUN} {command}" }}
process P is let T: {tool}, {variables} in
{body}
endlet
toolbus(P)
"""


if __name__ == "__main__":
    globals()[sys.argv[1]].run()
