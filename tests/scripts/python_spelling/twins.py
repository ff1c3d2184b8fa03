"""Scripts written twice, in T-script and in Python; the tests compare what becomes of both."""

from collections.abc import Callable
from typing import Annotated

from echoic.scripts import python_spelling as ts
from echoic.scripts.python_spelling import Behaviour, Result, Var, fn, term
from echoic.scripts.syntax.tree import Script

X, Y, N = ts.variables("X Y N", int)
R = ts.var("R", float)
S = ts.var("S", str)
L = ts.var("L", list)
B = ts.var("B", bool)
T = ts.var("T")
PID = ts.var("Pid", int)
CALC = ts.tool("calc", command="python calc.py")
C = ts.var("C", CALC)


def one(body: Behaviour) -> Script:
    """Return a script with one process."""
    return ts.bus(ts.process(name="P")(lambda: body)())


def alone(declared: str, body: str) -> str:
    """Return the text of a script with one process."""
    return f"process P is {f'let {declared} in {body} endlet' if declared else body} toolbus(P)"


def hello() -> Script:
    @ts.process
    def greeter(name: Var[str]) -> Behaviour:
        return ts.rec_msg(term.hello(X.q)) >> X.set(X + 1) >> ts.printf("%s %d\n", name, X)

    @ts.process
    def speaker() -> Behaviour:
        return ts.snd_msg(term.hello(41)) >> ts.printf("said\n")

    return ts.bus(greeter("ann"), speaker())


HELLO = """
process GREETER(Name : str) is let X : int in rec-msg(hello(X?)) . X := add(X, 1) . printf("%s %d\\n", Name, X) endlet
process SPEAKER is snd-msg(hello(41)) . printf("said\\n")
toolbus(GREETER("ann"), SPEAKER)
"""


def operators() -> Script:
    a, b, c, d = (ts.printf(each) for each in "abcd")
    return one(a >> b >> (c | d) >> (a & b & c) >> (a >> b) * c >> a.or_else(b) >> ts.right_biased(a, b))


OPERATORS = alone(
    "",
    'printf("a") . printf("b") . (printf("c") + printf("d")) . (printf("a") || printf("b") || printf("c")) .'
    ' (printf("a") . printf("b")) * printf("c") . (printf("a") <+ printf("b")) . (printf("a") +> printf("b"))',
)


def loops() -> Script:
    return one(
        X.set(0)
        >> ts.loop(ts.when(X < 3).then(ts.printf("%d", X) >> X.set(X + 1))).until(ts.when(X >= 3).then(ts.tau()))
        >> ts.loop(ts.printf(".").delay(1)).disrupted_by(ts.after(3.5))
        >> ts.printf("end")
    )


LOOPS = alone(
    "X : int",
    'X := 0 . if less(X, 3) then printf("%d", X) . X := add(X, 1) fi * if greater-equal(X, 3) then tau fi .'
    ' (printf(".") delay(1) * delta) >> tau delay(3.5) . printf("end")',
)


def conditions() -> Script:
    return one(
        X.set(7)
        >> Y.set(X // 2 * (3 - X) % 5 - -X)
        >> ts.when((X > Y) & ~(X == 3) | (Y != 2)).then(ts.printf("yes %d", Y)).otherwise(ts.printf("no %d", Y))
        >> R.set(1.5)
        >> R.set(abs(R * 2 - R / 0.5))
        >> ts.printf("%f", R)
    )


CONDITIONS = alone(
    "X : int, Y : int, R : real",
    "X := 7 . Y := sub(mod(mul(div(X, 2), sub(3, X)), 5), sub(0, X)) ."
    " if or(and(greater(X, Y), not(equal(X, 3))), not-equal(Y, 2))"
    ' then printf("yes %d", Y) else printf("no %d", Y) fi .'
    ' R := 1.5 . R := rabs(rsub(rmul(R, 2.0), rdiv(R, 0.5))) . printf("%f", R)',
)


def functions() -> Script:
    return one(
        L.set([1, 2] + fn.join(3, [term.f(X), 4]))  # noqa: RUF005 - they are no lists of Python
        >> L.set(L + ["end"])  # noqa: RUF005
        >> S.set("a" + fn.concat("b", "c"))
        >> T.set(term.path(S, [term.current_time]))
        >> B.set(fn.is_empty(fn.next_(L)) | fn.member(2, L))
        >> N.set(fn.add(fn.first(L), fn.index(L, 2)))
        >> ts.printf("%t %s %t %t %d", L, S, T, B, N)
    )


FUNCTIONS = alone(
    "L : list, X : int, S : str, T : term, B : bool, N : int",
    'L := join([1, 2], join(3, [quote(f(X)), 4])) . L := join(L, ["end"]) . S := concat("a", concat("b", "c")) .'
    " T := quote(path(S, [current-time])) . B := or(is-empty(next(L)), member(2, L)) ."
    ' N := add(first(L), index(L, 2)) . printf("%t %s %t %t %d", L, S, T, B, N)',
)


def both_ways() -> Script:
    @ts.process
    def left() -> Behaviour:
        return ts.snd_msg(term.f(123, X.q), [ts.hole(int), True]) >> ts.printf("%d ", X)

    @ts.process
    def right() -> Behaviour:
        return ts.rec_msg(term.f(N.q, 666), L.q) >> ts.printf("%d %t ", N, L)

    return ts.bus(left(), right())


BOTH_WAYS = """
process LEFT is let X : int in snd-msg(f(123, X?), [<int>, true]) . printf("%d ", X) endlet
process RIGHT is let N : int, L : list in rec-msg(f(N?, 666), L?) . printf("%d %t ", N, L) endlet
toolbus(LEFT, RIGHT)
"""


def calls() -> Script:
    @ts.process
    def double(number: Var[int], answer: Result[int]) -> Behaviour:
        return answer.set(number + number)

    @ts.process
    def worker(number: Var[int]) -> Behaviour:
        return double(number, X.q) >> ts.printf("%d ", X)

    @ts.process
    def main() -> Behaviour:
        name = ts.var("Name", str)
        return (
            N.set(4)
            >> ts.create(worker(N * 2), PID.q)
            >> name.set("WORKER")
            >> ts.call(name, 21)
            >> ts.let(X)(worker(1) >> ts.printf("%t", X))
        )

    return ts.bus(main())


CALLS = """
process MAIN is
  let N : int, Pid : int, Name : str in
    N := 4 . create(WORKER(mul(N, 2)), Pid?) . Name := "WORKER" . Name(21) .
    let X : int in WORKER(1) . printf("%t", X) endlet
  endlet
process WORKER(Number : int) is let X : int in DOUBLE(Number, X?) . printf("%d ", X) endlet
process DOUBLE(Number : int, Answer : int ?) is Answer := add(Number, Number)
toolbus(MAIN)
"""


def noted() -> Script:
    prices = ts.notes(term.price(S.q, R.q))

    @ts.process
    def watcher() -> Behaviour:
        return (
            prices.subscribe()
            >> prices.absent()
            >> ts.snd_msg(term.go)
            >> prices.receive()
            >> ts.printf("%s %f", S, R)
            >> prices.unsubscribe()
        )

    @ts.process
    def source() -> Behaviour:
        return ts.rec_msg(term.go) >> ts.snd_note(term.price("IBM", 74.5))

    return ts.bus(watcher(), source())


NOTED = """
process WATCHER is let S : str, R : real in
  subscribe(price(<str>, <real>)) . no-note(price(S?, R?)) . snd-msg(go) . rec-note(price(S?, R?)) .
  printf("%s %f", S, R) . unsubscribe(price(<str>, <real>)) endlet
process SOURCE is rec-msg(go) . snd-note(price("IBM", 74.5))
toolbus(WATCHER, SOURCE)
"""


def tools() -> Script:
    @ts.process
    def user(tool: Annotated[Var[object], CALC]) -> Behaviour:
        return (
            ts.ask_tool(tool, term.expr("1+2"), term.val(N.q))
            >> ts.snd_do(tool, term.show(N))
            >> ts.snd_eval(tool, term.slow)
            >> ts.snd_cancel(tool)
            >> ts.rec_event(tool, term.button(S.q)).timeout(3)
            >> ts.snd_ack_event(tool, term.button(S), term.thanks)
            >> ts.rec_request(tool, term.price(S.q))
            >> ts.snd_response(tool, term.price(S, 3))
            >> ts.get_perf_stats(tool)
            >> ts.rec_perf_stats(tool, T.q)
            >> ts.snd_terminate(tool, "enough")
        )

    @ts.process
    def main() -> Behaviour:
        other = ts.var("D", CALC)
        return (
            ts.execute(CALC(), C.q)
            >> user(C)
            >> ts.rec_connect(other.q)
            >> (ts.snd_kill(other, "no") | ts.rec_disconnect(other))
            >> ts.read("> ", term.line(T.q))
            >> ts.shutdown(T).abs_delay(2030, 1, 1, 0, 0, 0)
        )

    return ts.bus(main())


TOOLS = """
tool calc is { command = "python calc.py" }
process MAIN is let C : calc, D : calc, T : term in
  execute(calc, C?) . USER(C) . rec-connect(D?) . (snd-kill(D, "no") + rec-disconnect(D)) . read("> ", line(T?)) .
  shutdown(T) abs-delay(2030, 1, 1, 0, 0, 0) endlet
process USER(Tool : calc) is let N : int, S : str, T : term in
  snd-eval(Tool, expr("1+2")) . rec-value(Tool, val(N?)) . snd-do(Tool, show(N)) . snd-eval(Tool, slow) .
  snd-cancel(Tool) . rec-event(Tool, button(S?)) timeout(3) . snd-ack-event(Tool, button(S), thanks) .
  rec-request(Tool, price(S?)) . snd-response(Tool, price(S, 3)) . get-perf-stats(Tool) . rec-perf-stats(Tool, T?) .
  snd-terminate(Tool, "enough") endlet
toolbus(MAIN)
"""


def disconnected() -> Script:
    body = ts.execute(CALC(), C.q) >> ts.ask_tool(C, term.expr("1"), term.val(X.q)).on_disconnect(C, ts.printf("lost"))
    return one(body >> ts.shutdown("over"))


DISCONNECTED = 'tool calc is { command = "python calc.py" } ' + alone(
    "C : calc, X : int",
    'execute(calc, C?) . (snd-eval(C, expr("1")) . rec-value(C, val(X?))) >> (rec-disconnect(C) . printf("lost")) .'
    ' shutdown("over")',
)


def asked() -> Script:
    @ts.process
    def asker(number: Var[int]) -> Behaviour:
        return ts.ask(term.square(number), term.root(X.q)) >> ts.printf("%d:%d ", number, X)

    @ts.process
    def server() -> Behaviour:
        return ts.serve(term.square(X.q), Y.set(X * X), term.root(Y))

    return ts.bus(asker(2), asker(3), server())


ASKED = """
process ASKER(Number : int) is let X : int in
  let _transaction_1 : list in snd-msg(square(Number), _transaction_1?) . rec-msg(root(X?), _transaction_1) endlet .
  printf("%d:%d ", Number, X) endlet
process SERVER is let X : int, Y : int in
  let _transaction_1 : list in
    _transaction_1 := [process-id, 0] .
    ( rec-msg(square(X?), _transaction_1) . Y := mul(X, X) . snd-msg(root(Y), _transaction_1) .
      _transaction_1 := replace(_transaction_1, 2, add(index(_transaction_1, 2), 1))
    ) * delta
  endlet endlet
toolbus(ASKER(2), ASKER(3), SERVER)
"""


def readied() -> Script:
    news = ts.notes(term.news(X.q))

    @ts.process
    def reader() -> Behaviour:
        return ts.ready(news) >> news.receive() >> ts.printf("heard %d", X)

    @ts.process
    def writer() -> Behaviour:
        return ts.create_ready(reader(), PID.q) >> ts.snd_note(term.news(5))

    return ts.bus(writer())


READIED = """
process WRITER is let Pid : int in create(READER, Pid?) . rec-msg(process-is-ready(Pid)) . snd-note(news(5)) endlet
process READER is let X : int in
  subscribe(news(<int>)) . let _me_1 : int in _me_1 := process-id . snd-msg(process-is-ready(_me_1)) endlet .
  rec-note(news(X?)) . printf("heard %d", X) endlet
toolbus(WRITER)
"""

TWINS: dict[str, tuple[str, Callable[[], Script]]] = {
    "hello": (HELLO, hello),
    "operators": (OPERATORS, operators),
    "loops": (LOOPS, loops),
    "conditions": (CONDITIONS, conditions),
    "functions": (FUNCTIONS, functions),
    "both ways": (BOTH_WAYS, both_ways),
    "calls": (CALLS, calls),
    "notes": (NOTED, noted),
    "tools": (TOOLS, tools),
    "disconnected": (DISCONNECTED, disconnected),
    "asked": (ASKED, asked),
    "ready": (READIED, readied),
}
"""T-script and Python of each, by name."""
