"""A bus by TLS, a tool that has nothing but a token, and one whose token is for something else."""

import os
import tempfile

from echoic.errors import RefusedError
from echoic.links import Identity, Visitor
from echoic.toolbus import Bus, Term, Tool, eval_
from echoic.trust import Issuers
from echoic.trust.authority import Authority

SCRIPT = """
tool sums is { }
process P is let T: sums, N: int in
    rec-connect(T?) . snd-eval(T, add(1, 2)) . rec-value(T, sum(N?)) . snd-terminate(T, done) . shutdown(N)
endlet
toolbus(P)
"""


class Sums(Tool, name="sums"):
    @eval_(returns="sum(int)")
    def add(self, first: int, second: int) -> Term:
        return Term("sum", first + second)


def main() -> None:
    authority = Authority.create()
    authority.issue("bus", ["127.0.0.1"])
    with Bus.from_script(SCRIPT, identity=Identity.named("bus"), issuers=Issuers()) as bus:
        bus.start()
        for channel in ("tool:others", "tool:sums"):
            token = authority.issue_token("alice", ["publish"], [channel], 3600)
            try:
                tool = Sums()
                tool.connect(bus.address, identity=Visitor.of_authority(), token=token)
                tool.start()
            except RefusedError as error:
                print(error)
        bus.wait(30)
        print("the sum is", bus.value)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ECHOIC_HOME"] = folder
        main()
