"""The tool of `hello.tb`: it knows how to greet."""

from typing import Annotated

from echoic.toolbus import Term, Tool, eval_


class Hello(Tool, name="hello"):
    @eval_
    def get_text(self, whom: str) -> Annotated[Term, "text(str)"]:
        return Term("text", f"Hello, {whom}!")


if __name__ == "__main__":
    Hello.run()
