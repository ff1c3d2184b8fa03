"""The language of the ToolBus: words, preprocessor, grammar, expressions and static checks, rule by rule.

Where the two original implementations differ, what is decided stands in the name of the test.
"""

import math

import pytest

from echoic.errors import ScriptError
from echoic.scripts.graph import Options
from echoic.scripts.syntax import load, write_script
from echoic.terms import UNDEFINED, Term, Value, parse_text, same
from tests.papers.toolbus_driver import Bus, alone, complaints, printed, value_of, warnings

# Words


@pytest.mark.parametrize(
    "script",
    [
        'process P is %% printf("no")\n printf("yes") toolbus(P)',
        'process P is // printf("no")\n printf("yes") toolbus(P)',
        'process P is /* printf("no")\n */ printf("yes") toolbus(P)',
        'process\tP\nis\n\n printf ( "yes" )\ttoolbus ( P )',
        'process P is printf("yes") toolbus(P) %% at the end',
        'process P is printf("yes") /* %% */ toolbus(P) // %% "',
    ],
)
def test_layout_and_three_kinds_of_comments(script: str) -> None:
    assert printed(script) == "yes"


@pytest.mark.parametrize("text", ["%% no comment", "/* none */", "// none", "http://x"])
def test_a_comment_in_a_string_is_none(text: str) -> None:
    assert printed(f'process P is let X:str in X := "{text}" . printf("%s", X) endlet') == text


@pytest.mark.parametrize("name", ["a", "a-1", "aB9", "get-text", "a_b", "host", "command", "kind", "class", "details"])
def test_identifiers_have_dashes_and_underscores(name: str) -> None:
    assert printed(f'process P is printf("%t %t", {name}, {name}(1))') == f"{name} {name}(1)"


@pytest.mark.parametrize("name", ["X", "_x", "Get-text", "A_b", "X1", "X-1"])
def test_variables_and_processes_begin_with_capitals_or_underscores(name: str) -> None:
    script = f'process {name}-p is let {name}:int in {name} := 3 . printf("%d", {name}) endlet toolbus({name}-p)'
    assert printed(script) == "3"


@pytest.mark.parametrize("word", ["tau", "delta", "let", "if", "snd-msg", "process", "toolbus", "delay", "create"])
def test_reserved_words_are_no_identifiers(word: str) -> None:
    with pytest.raises(ScriptError):
        load(f'process P is printf("%t", f({word}))')


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-17", -17),
        ("007", 7),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("1.5", 1.5),
        ("-0.25", -0.25),
        ("1.5e3", 1500.0),
        ("1.5E-3", 0.0015),
        ("2.0e+2", 200.0),
        ('""', ""),
        (r'"a\n\t\r\"\\b"', 'a\n\t\r"\\b'),
        (r'"\b\f\v"', "\b\f\v"),
        ('"two\nlines"', "two\nlines"),
        ('"one \\\nline"', "one line"),
        ("true", True),
        ("false", False),
        ("undefined", UNDEFINED),
        ("[]", parse_text("[]")),
        ('[1,[2,"x"],f(g)]', parse_text('[1,[2,"x"],f(g)]')),
    ],
)
def test_constants(text: str, value: Value) -> None:
    assert same(value_of(f"quote({text})"), value)


def test_the_text_of_details_may_stand_between_double_angles() -> None:
    script = 'tool t is { command = "c" details = << first\n second >> } process P is tau toolbus(P)'
    assert "second" in str(load(script).tools[0])


# Preprocessor


def including(files: dict[str, str]) -> object:
    def include(wanted: str, from_file: str) -> tuple[str, str]:
        return f"/lib/{wanted}", files[wanted]

    return include


def preprocessed(text: str, files: dict[str, str] | None = None, **defines: str) -> str:
    script = load(text, "main.tb", include=including(files or {}), defines=defines)  # type: ignore[arg-type]
    return write_script(script)


@pytest.mark.parametrize("line", ['#include "q.tb"', "#include <q.tb>", '  #include   "q.tb"  ', '# include "q.tb"'])
def test_files_are_included(line: str) -> None:
    files = {"q.tb": "process Q is tau"}
    assert preprocessed(f"{line}\nprocess P is Q\ntoolbus(P)", files) == preprocessed(
        "process Q is tau process P is Q toolbus(P)"
    )


def test_a_file_is_included_once() -> None:
    files = {"q.tb": '#include "r.tb"\nprocess Q is R', "r.tb": '#include "q.tb"\nprocess R is tau'}
    text = '#include "q.tb"\n#include <r.tb>\n#include "q.tb"\nprocess P is Q toolbus(P)'
    assert [process.name for process in load(text, include=including(files)).processes] == ["R", "Q", "P"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("#define N 3\nprocess P is printf(N)", "process P is printf(3)"),
        ("#define F(A,B) g(A,[B])\nprocess P is printf(F(1, h(2,3)))", "process P is printf(g(1,[h(2,3)]))"),
        ("#define F(A) printf(A) . \\\n  printf(A)\nprocess P is F(1)", "process P is printf(1) . printf(1)"),
        ("#define A B\n#define B 1\nprocess P is printf(A)", "process P is printf(1)"),
        ("#define A\n#ifdef A\nprocess P is tau\n#endif", "process P is tau"),
        ("#ifdef A\nprocess Q is tau\n#endif\nprocess P is tau", "process P is tau"),
        ("#ifndef A\nprocess P is tau\n#endif", "process P is tau"),
        ("#ifdef A\nprocess Q is tau\n#else\nprocess P is tau\n#endif", "process P is tau"),
        ("#ifdef A\n#ifndef B\nprocess Q is x\n#else\nnonsense\n#endif\n#endif\nprocess P is tau", "process P is tau"),
        ("process P is\n#ifdef A\n delta\n#else\n tau\n#endif\n . tau", "process P is tau . tau"),
        ('#define N 3\nprocess P is printf("N")', 'process P is printf("N")'),
        ("#define N 3\nprocess P is printf(n(NN))", "process P is printf(n(NN))"),
        ("%% #define N 3\nprocess P is printf(N)", "process P is printf(N)"),
    ],
)
def test_definitions_and_conditions(text: str, same_as: str) -> None:
    assert preprocessed(text) == preprocessed(same_as)


def test_definitions_from_outside() -> None:
    text = "#ifdef FAST\nprocess P is printf(SPEED)\n#endif"
    assert preprocessed(text, FAST="", SPEED="9") == preprocessed("process P is printf(9)")


def test_a_mistake_is_shown_where_it_is_written() -> None:
    files = {"q.tb": "%% first\n\nprocess Q is tau . . tau"}
    with pytest.raises(ScriptError) as caught:
        load('#include "q.tb"\ntoolbus(Q)', "main.tb", include=including(files))  # type: ignore[arg-type]
    ((file, line, column, _),) = caught.value.problems
    assert (file, line, column) == ("/lib/q.tb", 3, 20)
    *_, shown, caret = str(caught.value).split("\n")
    assert caret.index("^") - shown.index("process Q is tau . . tau") == 19


def test_a_file_that_is_not_there_is_a_mistake_with_its_place() -> None:
    with pytest.raises(ScriptError) as caught:
        load('\n#include "none.tb"', "main.tb", include=including({}))  # type: ignore[arg-type]
    assert caught.value.problems[0][:2] == ("main.tb", 2)


@pytest.mark.parametrize("text", ["#ifdef A\nprocess P is tau", "#endif", "#else", "#nonsense", "#define"])
def test_directives_that_are_not_in_order(text: str) -> None:
    with pytest.raises(ScriptError):
        load(text)


# Grammar


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("A * B >> C", "A * (B >> C)"),
        ("A >> B * C", "(A >> B) * C"),
        ("A . B * C", "A . (B * C)"),
        ("A * B . C", "(A * B) . C"),
        ("A + B . C", "A + (B . C)"),
        ("A . B + C", "(A . B) + C"),
        ("A <+ B + C", "A <+ (B + C)"),
        ("A + B <+ C", "(A + B) <+ C"),
        ("A +> B <+ C", "A +> (B <+ C)"),
        ("A <+ B +> C", "(A <+ B) +> C"),
        ("A || B +> C", "A || (B +> C)"),
        ("A +> B || C", "(A +> B) || C"),
        ("A >> B >> C", "(A >> B) >> C"),
        ("A * B * C", "(A * B) * C"),
        ("A . B . C", "A . (B . C)"),
        ("A + B + C", "(A + B) + C"),
        ("A <+ B <+ C", "(A <+ B) <+ C"),
        ("A +> B +> C", "A +> (B +> C)"),
        ("A || B || C", "(A || B) || C"),
        ("A || B + C . D * E >> F", "A || (B + (C . (D * (E >> F))))"),
    ],
)
def test_operators_bind_in_their_order(text: str, same_as: str) -> None:
    def tree(body: str) -> str:
        return write_script(load(f"process P is {body}"))

    assert tree(text) == tree(same_as)


@pytest.mark.parametrize(
    "script",
    [
        "process P is tau toolbus(P) process Q is tau toolbus(Q)",
        "process P is tau toolbus(P())",
        "process P is tau toolbus(P, P)",
        "process P is Q() process Q is tau toolbus(P)",
        "process P is tau delay(1) timeout(sec(2)) toolbus(P)",
        "process P is let X:int, Y:list(int), Z:[int,f(str)] in if true then tau fi endlet toolbus(P)",
        "process Q(X:int, Y:int?) is Y := X process P is let A:int in Q(1,A?) endlet toolbus(P)",
        "process Q is tau process P is let X:int in create(Q, X?) . create(Q(), X?) endlet toolbus(P)",
        'tool u(X:str) is { host = "h" command = "c X" kind = "k" class = "C" } process P is tau toolbus(P)',
        "process P is (((tau))) toolbus(P)",
    ],
)
def test_scripts_that_are_in_order(script: str) -> None:
    assert complaints(script) == []


@pytest.mark.parametrize(
    "script",
    [
        "process p is tau",
        "process P tau",
        "process P is",
        "process P is tau .",
        "process P is (tau",
        "process P is if true then tau",
        "process P is let X in tau endlet",
        "process P is let X:int in tau",
        "process P is X = 1",
        "process P is rec-msg(f(X? ?))",
        "process P is snd-msg(f(1,))",
        'process P is printf("open',
        "toolbus()",
        "tool T is {}",
        "process P is tau /* open",
        "process P is tau $ tau",
    ],
)
def test_texts_that_are_no_scripts(script: str) -> None:
    with pytest.raises(ScriptError) as caught:
        load(script)
    assert caught.value.problems
    assert "^" in str(caught.value)


# Expressions and built-in functions

FUNCTIONS = """
not(true) = false; not(false) = true; and(true,false) = false; and(true,true) = true; or(false,true) = true
or(false,false) = false; equal(1,1) = true; equal(1,1.0) = false; equal("a",quote(a)) = false
equal(quote([1,f(x)]),quote([1,f(x)])) = true
equal(true,1) = false; equal(quote(f(1)),quote(f(1.0))) = false; not-equal(quote(f(1)),quote(f(2))) = true
not-equal([],[]) = false; add(2,3) = 5; sub(2,3) = -1; mul(-2,3) = -6; div(7,2) = 3; div(-7,2) = -3; div(7,-2) = -3
div(-7,-2) = 3; mod(7,2) = 1; mod(-7,2) = -1; mod(7,-2) = 1; mod(-7,-2) = -1; abs(-3) = 3; abs(3) = 3
div(-1000000000000000000000000000001,10) = -100000000000000000000000000000
mod(-1000000000000000000000000000001,10) = -1; less(1,2) = true; less(2,2) = false; less-equal(2,2) = true
greater(2,1) = true; greater(2,2) = false; greater-equal(2,2) = true; greater-equal(1,2) = false
add(2147483647,1) = 2147483648; mul(9999999999,9999999999) = 99999999980000000001
radd(1.5,2.0) = 3.5; rsub(1.5,2.0) = -0.5; rmul(1.5,2.0) = 3.0; rdiv(3.0,2.0) = 1.5; rabs(-1.5) = 1.5
rless(1.0,2.0) = true; rless-equal(2.0,2.0) = true; rgreater(1.0,2.0) = false; rgreater-equal(2.0,2.0) = true
int-to-real(3) = 3.0; real-to-int(3.7) = 3; real-to-int(-3.7) = -3
first([1,2]) = 1; next([1,2]) = [2]; next([1]) = []; next([]) = []; first([]) = undefined; size([]) = 0
size([1,[2],3]) = 3
join([1],[2,3]) = [1,2,3]; join(1,2) = [1,2]; join([1],2) = [1,2]; join(1,[2]) = [1,2]; join([],[]) = []
join([],1) = [1]; join([[1]],[2]) = [[1],2]; index([a,b,c],1) = a; index([a,b,c],3) = c; index([a],2) = undefined
index([a],0) = undefined; index([a],-1) = undefined; index([],1) = undefined; replace([a,b,c],2,x) = [a,x,c]
replace([a],1,[]) = [[]]; get([[a,1],[b,2]],b) = 2; get([[a,1],[b,2]],a) = 1; get([[a,1]],c) = undefined
get([],a) = undefined; get([[1,a],[1.0,b]],1.0) = b; put([[a,1],[b,2]],a,9) = [[a,9],[b,2]]
put([[a,1],[b,2]],b,9) = [[a,1],[b,9]]; put([[a,1]],c,3) = [[a,1],[c,3]]; put([],k,v) = [[k,v]]
member(a,[b,a]) = true; member(c,[b,a]) = false; member(1,[1.0,true]) = false; member([1],[[1]]) = true
subset([],[]) = true; subset([a],[b,a]) = true; subset([a,a],[a,b]) = false; subset([a,a],[a,b,a]) = true
subset([c],[a]) = false; diff([a,b,a],[a]) = [b,a]; diff([a,b],[a,a,b]) = []; diff([a,b],[]) = [a,b]; diff([],[a]) = []
diff([1,true],[true]) = [1]; diff([a,a,a],[a,a]) = [a]; inter([a,b],[b,c]) = [b]; inter([a,a,b],[a,c,a]) = [a,a]
inter([a,a],[a]) = [a]; inter([a],[a,a]) = [a]; inter([a],[]) = []
is-bool(true) = true; is-bool(a) = false; is-int(1) = true; is-int(1.0) = false; is-int(true) = false
is-real(1.0) = true
is-real(1) = false; is-str("a") = true; is-str(a) = false; is-appl(quote(f(1))) = true; is-appl(1) = false
is-list([]) = true; is-list(a) = false; is-empty([]) = true; is-empty([1]) = false; is-var(1) = false
is-result-var(1) = false; is-formal(1) = false; is-formal(<int>) = true; fun(quote(f(1,2))) = "f"
args(quote(f(1,g(2)))) = [1,g(2)]
fun(a) = "a"; args(a) = []; concat("a","bc") = "abc"; concat("","") = ""; process-id = 1; process-name = "P"
quote(add(1,2)) = add(1,2); quote(quote(a)) = quote(a); add(1,mul(2,add(3,4))) = 15; a = a; [add(1,2),a] = [3,a]
[[sub(1,1)]] = [[0]]; true = true; undefined = undefined; equal(undefined,first([])) = true
"""


@pytest.mark.parametrize("case", [each.strip() for line in FUNCTIONS.strip().split("\n") for each in line.split("; ")])
def test_functions(case: str) -> None:
    expression, _, result = case.rpartition(" = ")
    assert same(value_of(expression), parse_text(result))


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("sin(1.0)", math.sin(1)),
        ("cos(1.0)", math.cos(1)),
        ("atan(1.0)", math.atan(1)),
        ("atan2(1.0,2.0)", math.atan2(1, 2)),
        ("exp(1.0)", math.e),
        ("log(2.0)", math.log(2)),
        ("log10(100.0)", 2.0),
        ("sqrt(2.0)", math.sqrt(2)),
    ],
)
def test_functions_of_reals(expression: str, result: float) -> None:
    value = value_of(expression)
    assert isinstance(value, float)
    assert value == pytest.approx(result)


def test_the_current_time_and_the_list_of_functions_are_there() -> None:
    assert value_of("is-list(current-time)") in (True, False)
    assert value_of("greater(size(functions), 50)") is True


def test_properties_come_from_outside() -> None:
    body = 'let X:term in X := get-property("colour") . printf("%t", X) endlet'
    assert alone(body, options=Options(properties={"colour": "red"})).text == "red"


def test_integers_of_32_bits_wrap_where_that_is_asked_for() -> None:
    body = 'let X:int in X := add(2147483647,1) . printf("%d ", X) . X := mul(65536,65536) . printf("%d", X) endlet'
    assert alone(body, options=Options(int32=True)).text == "-2147483648 0"
    assert alone(body).text == "2147483648 4294967296"


@pytest.mark.parametrize(
    "expression",
    [
        "div(1,0)",
        "mod(1,0)",
        "rdiv(1.0,0.0)",
        "sqrt(-1.0)",
        "log(0.0)",
        "exp(100000.0)",
        "replace([a],2,x)",
        "replace([a],0,x)",
        "real-to-int(exp(100000.0))",
        "fun(1)",
        "args(1)",
        "mul(X, 2)",
        "concat(Y, Y)",
        "size(Z)",
        "get([1,a,[k]],k)",
        "get-property(Y)",
        "first(next(Z))",
    ],
)
def test_a_function_without_a_result_stops_nobody_else(expression: str) -> None:
    script = f"""
    process P is let X:int, Y:str, Z:list, R:term in tau . R := {expression} . R := {expression} endlet
    process Q is tau . tau . tau . tau . tau . printf("on") toolbus(P, Q)"""
    assert printed(script) == "on"


def test_a_test_that_has_no_result_is_not_true() -> None:
    assert printed('process P is let X:int in if less(X,1) then printf("a") fi + printf("b") endlet') == "b"
    assert printed('process P is let B:bool in if B then printf("a") fi + printf("b") endlet') == "b"


def test_terms_are_evaluated_in_assignments_tests_times_and_creations_only() -> None:
    assert printed('process P is printf("%t", add(1,2))') == "add(1,2)"
    assert printed(
        """process P is snd-msg(x, add(1,2)) . snd-note(n(add(3,4)))
           process Q is let A:term, B:term in subscribe(n(<term>)) . rec-msg(x, A?) . rec-note(n(B?)) .
           printf("%t %t", A, B) endlet toolbus(P, Q)"""
    ) == ("add(1,2) add(3,4)")
    assert (
        printed("""process Q(X:term, Y:term) is printf("%t %t", X, Y)
        process P is let I:int, N:int in N := 5 . create(Q(add(N,2), quote(add(N,2))), I?) endlet""")
        == "7 add(5,2)"
    )
    assert printed('process P is printf("a") delay(sec(add(1,1)))', 1.9) == ""
    assert printed('process P is printf("a") delay(sec(add(1,1)))', 2) == "a"


def test_quote_replaces_variables() -> None:
    assert value_of("quote(path(X,[X],add(X,1)))", "X:int", "X := 4") == parse_text("path(4,[4],add(4,1))")


def test_process_name_and_id_are_those_of_the_instance() -> None:
    script = """process Q is let N:str, I:int in N := process-name . I := process-id . printf("%s%d ", N, I) endlet
    process P is let I:int in Q . create(Q, I?) . printf("%d ", I) endlet toolbus(P)"""
    assert {" ".join(sorted(Bus(script, seed).text.split())) for seed in range(5)} == {"2 P1 Q2"}


# Static checks

TOOL = 'tool t is { command = "c" } tool u is { command = "c" } '
LET = (
    "process P is let X:int, S:str, L:list, T:t, U:u, B:bool in {} endlet toolbus(P) "
    "process Q(A:int, R:int?) is R := A process V(A:int) is tau"
)


@pytest.mark.parametrize(
    "body",
    [
        "snd-msg(Y)",
        "rec-msg(f(Y?))",
        "Y := 1",
        "X := Y",
        "if Y then tau fi",
        "R",
        "create(R, X?)",
        "execute(v, T?)",
        "Q(1)",
        "Q(1,X?,2)",
        "create(Q(1), X?)",
        'Q("a",X?)',
        "Q(1,S?)",
        "Q(1,2)",
        "Q(1,X)",
        'create(V("a"), X?)',
        "create(V(1), S?)",
        "create(V(1), X)",
        'X := "a"',
        "X := 1.0",
        "X := add(1.0,2)",
        "X := add(1)",
        "X := add(1,2,3)",
        'X := add(1,"a")',
        "X := f(1)",
        "X := size(1)",
        'S := concat("a",3)',
        "B := less(X,S)",
        "if X then tau fi",
        "if add(1,2) then tau fi",
        "printf(X)",
        "printf(1)",
        "printf()",
        "execute(t, U?)",
        "execute(t, T)",
        "execute(t)",
        "execute(t(1), T?)",
        "rec-connect(X?)",
        "rec-connect(T)",
        "snd-eval(X, f(1))",
        "snd-eval(t, f(1))",
        "snd-eval(T)",
        "snd-eval(T, f, g)",
        "snd-eval(T, 1)",
        "snd-do(T, [])",
        "rec-value(T, 3)",
        "snd-do(S, f)",
        "rec-event(T)",
        "rec-event(L, f)",
        "snd-cancel(T, 1)",
        "snd-ack-event(T)",
        "rec-disconnect(B)",
        "snd-kill(T)",
        "snd-terminate(S, f)",
        "rec-request(X, f(1))",
        "shutdown()",
        "shutdown(1, 2)",
        "snd-msg()",
        "snd-note()",
        "rec-note(1, 2)",
        "tau delay(S)",
        "tau delay(Y)",
        "let X:int, X:str in tau endlet",
        "let X:int in Y := 1 endlet",
    ],
)
def test_mistakes_are_found_and_shown_where_they_are(body: str) -> None:
    script = TOOL + "\n" + LET.format(body)
    found = complaints(script)
    assert len(found) == 1, found
    with pytest.raises(ScriptError) as caught:
        Bus(script)
    ((_, line, column, _),) = caught.value.problems
    assert line == 2
    assert LET.index("{}") < column <= LET.index("{}") + len(body)


@pytest.mark.parametrize(
    "script",
    [
        "process P is tau process P is tau toolbus(P)",
        "tool t is {} tool t is {} process P is tau toolbus(P)",
        "process P(X:int, X:str) is tau toolbus(P(1,2))",
        "process P is P toolbus(P)",
        "process P is tau . Q process Q is R + tau process R is P toolbus(P)",
        "process P is tau toolbus(Q)",
        "process P(X:int) is tau toolbus(P)",
        "process P(X:int) is tau toolbus(P(1,2))",
        'process P(X:int) is tau toolbus(P("a"))',
        "process P is tau",
    ],
)
def test_mistakes_in_definitions(script: str) -> None:
    assert complaints(script)


def test_each_mistake_is_found_not_only_the_first() -> None:
    assert len(complaints("process P is Q . snd-msg(X) . R toolbus(P)")) == 3


@pytest.mark.parametrize(
    "script",
    [
        "process P(X:int) is X := 2 toolbus(P(1))",
        "process P is let X:int in let X:str in tau endlet endlet toolbus(P)",
        "process P(X:int) is let X:str in tau endlet toolbus(P(1))",
        TOOL + "process P is let T:t, X:int in rec-connect(T?) . snd-eval(T, f(X?)) endlet toolbus(P)",
        TOOL + "process P is let T:t, X:int in rec-connect(T?) . snd-do(T, f(X?)) endlet toolbus(P)",
        "process P is snd-msg(f(1)) toolbus(P)",
        "process P is snd-msg(f(1)) process Q is rec-msg(f(1,2)) + rec-msg(f(1),2) + rec-msg(f(2)) toolbus(P,Q)",
        'process P is let X:int in rec-msg(f(X?)) endlet process Q is snd-msg(f("a")) toolbus(P,Q)',
    ],
)
def test_warnings(script: str) -> None:
    assert complaints(script) == []
    assert warnings(script)


def test_what_may_meet_is_not_partnerless() -> None:
    script = """process P is let X:int, T:term in snd-msg(f(X, 1)) . rec-msg(T?) . snd-msg(1, "a") endlet
    process Q is let Y:int in rec-msg(f(Y?, <int>)) . snd-msg([Y]) . rec-msg(<int>, <str>) endlet toolbus(P, Q)"""
    assert warnings(script) == []


def test_types_of_applications_are_compared_in_all_their_arguments() -> None:
    script = (
        "process Q(X:f(int,str)) is tau process P is let Y:f(int,{}) in Y := quote(f(1,{})) . Q(Y) endlet toolbus(P)"
    )
    assert complaints(script.format("str", '"a"')) == []
    assert complaints(script.format("int", "2"))


def test_the_first_argument_of_a_message_need_not_be_an_application() -> None:
    script = 'process P is snd-msg(1) process Q is rec-msg(1) . printf("met") toolbus(P, Q)'
    assert printed(script) == "met"


def test_an_unknown_function_is_told_about_quote() -> None:
    (message,) = complaints("process P is let T:term in T := f(1) endlet toolbus(P)")
    assert "quote" in message


def test_names_that_nearly_exist_are_suggested() -> None:
    (message,) = complaints("process P is let T:int in T := siez([]) endlet toolbus(P)")
    assert "`size`" in message


def test_terms_without_arguments_are_themselves() -> None:
    assert value_of("[red,green]") == parse_text("[red,green]")
    assert value_of("red") == Term("red")
