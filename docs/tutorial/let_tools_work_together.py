"""Two tools and a script in one process: the program of the tutorial page "Let tools work together"."""

from typing import Annotated

from echoic.toolbus import Bus, Term, Tool, do, eval_, event

SCRIPT = """
tool calc is {}
tool desk is {}

process Office is
  let C: calc, D: desk, Text: str, V: int in
    rec-connect(C?) . rec-connect(D?) .
    ( rec-event(D, question(Text?)) . snd-eval(C, compute(Text)) .
      ( rec-value(C, value(V?)) . snd-do(D, show(V))
      + rec-value(C, none) . snd-do(D, complain(Text))
      ) .
      snd-ack-event(D, question(Text))
    ) * rec-event(D, leave) . shutdown("done")
  endlet

toolbus(Office)
"""


class Calc(Tool, name="calc"):
    @eval_
    def compute(self, text: str) -> Annotated[Term, "value(int)"] | Annotated[Term, "none"]:
        left, sign, right = text.split()
        if sign == "/":
            return Term("value", int(left) // int(right)) if int(right) else Term("none")
        return Term("value", int(left) + int(right))


class Desk(Tool, name="desk"):
    @event
    def question(self, text: str) -> None: ...

    @event
    def leave(self) -> None: ...

    @do
    def show(self, value: int) -> None:
        print("the value is", value)

    @do
    def complain(self, text: str) -> None:
        print("there is no value of", text)

    async def main(self) -> None:
        for text in ("1 + 2", "6 / 0"):
            await self.event("question", text)
        self.event("leave")


with Bus.from_script(SCRIPT) as bus:
    bus.attach(Calc())
    bus.attach(Desk())
    bus.run(timeout=30)
