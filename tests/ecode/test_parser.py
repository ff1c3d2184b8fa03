"""C's grammar, as far as E-Code has it."""

from typing import Any

import pytest

from echoic.ecode.numbers import FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, Number
from echoic.ecode.syntax import tree
from echoic.ecode.syntax.parser import NESTING_MAX, parse
from echoic.ecode.syntax.text import SourceText
from echoic.errors import ECodeError


def parsed(source: str) -> tree.Block:
    return parse(SourceText(source))


def shown(node: Any) -> str:
    """Return an expression with all its brackets."""
    match node:
        case tree.Constant(value):
            return str(value)
        case tree.String(data):
            return repr(data)
        case tree.Name(name):
            return name
        case tree.Member(record, name):
            return f"{shown(record)}.{name}"
        case tree.Subscript(array, index):
            return f"{shown(array)}[{shown(index)}]"
        case tree.Call(function, arguments):
            return f"{function}({', '.join(map(shown, arguments))})"
        case tree.Cast(number, value):
            return f"({number} {shown(value)})"
        case tree.Unary(operator, value):
            return f"({operator}{shown(value)})"
        case tree.Step(operator, target, post):
            return f"({shown(target)}{operator * 2})" if post else f"({operator * 2}{shown(target)})"
        case _:
            return shown_wide(node)


def shown_wide(node: Any) -> str:
    match node:
        case tree.Binary(operator, left, right):
            return f"({shown(left)} {operator} {shown(right)})"
        case tree.Conditional(test, yes, no):
            return f"({shown(test)} ? {shown(yes)} : {shown(no)})"
        case tree.Comma(first, second):
            return f"({shown(first)}, {shown(second)})"
        case tree.Assignment(operator, target, value):
            return f"({shown(target)} {operator}= {shown(value)})"
        case tree.Braces(items):
            return "{" + ", ".join(map(shown, items)) + "}"
        case _:
            raise TypeError(type(node))


def expression(source: str) -> str:
    statement = parsed(f"{source};").statements[0]
    assert isinstance(statement, tree.Evaluate)
    return shown(statement.value)


def declarations(source: str) -> list[tree.Declaration]:
    return [each for each in parsed(source).statements if isinstance(each, tree.Declaration)]


def problems(source: str) -> list[str]:
    with pytest.raises(ECodeError) as caught:
        parsed(source)
    return [f"{line}:{column}: {message}" for line, column, message in caught.value.problems]


@pytest.mark.parametrize(
    ("source", "meaning"),
    [
        ("a + b * c", "(a + (b * c))"),
        ("a * b + c", "((a * b) + c)"),
        ("a - b - c", "((a - b) - c)"),
        ("a = b = c", "(a = (b = c))"),
        ("a += b <<= c", "(a += (b <<= c))"),
        (
            "a || b && c | d ^ e & f == g < h << i + j * k",
            "(a || (b && (c | (d ^ (e & (f == (g < (h << (i + (j * k))))))))))",
        ),
        (
            "a * b + c << d < e == f & g ^ h | i && j || k",
            "((((((((((a * b) + c) << d) < e) == f) & g) ^ h) | i) && j) || k)",
        ),
        ("a ? b : c ? d : e", "(a ? b : (c ? d : e))"),
        ("a ? b, c : d", "(a ? (b, c) : d)"),
        ("a = b ? c : d", "(a = (b ? c : d))"),
        ("a, b, c", "((a, b), c)"),
        ("-a * !b", "((-a) * (!b))"),
        ("- -a", "(-(-a))"),
        ("--a - -b", "((--a) - (-b))"),
        ("a++ + ++b", "((a++) + (++b))"),
        ("-a.b[c].d++", "(-(a.b[c].d++))"),
        ("(int) a + b", "((int32 a) + b)"),
        ("(unsigned char) -(long long) a.b", "(uint8 (-(int64 a.b)))"),
        ("(a) + b", "(a + b)"),
        ("(a, b) * c", "((a, b) * c)"),
        ("pow(a + 1, (b, c))", "pow((a + 1), (b, c))"),
        ("f()", "f()"),
        ("a[b, c][d[e]]", "a[(b, c)][d[e]]"),
        ('a == "x" "y"', "(a == b'xy')"),
        ("a.int.if", "a.int.if"),
        ("a && b && c", "((a && b) && c)"),
        ("a || b || c || d && e && f", "((a || b) || (c || ((d && e) && f)))"),
        ("a < b || c", "((a < b) || c)"),
        ("a & b == c", "(a & (b == c))"),
    ],
)
def test_operators_bind_as_in_c(source: str, meaning: str) -> None:
    assert expression(source) == meaning


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("char", INT8),
        ("signed char", INT8),
        ("unsigned char", UINT8),
        ("char unsigned", UINT8),
        ("short", INT16),
        ("short int", INT16),
        ("unsigned short int", UINT16),
        ("int", INT32),
        ("signed", INT32),
        ("signed int", INT32),
        ("unsigned", UINT32),
        ("int unsigned", UINT32),
        ("long", INT64),
        ("long int", INT64),
        ("long long", INT64),
        ("long long int", INT64),
        ("long unsigned int long", UINT64),
        ("unsigned long", UINT64),
        ("float", FLOAT32),
        ("double", FLOAT64),
        ("int8_t", INT8),
        ("uint16_t", UINT16),
        ("int64_t", INT64),
        ("uint64_t", UINT64),
    ],
)
def test_words_in_any_order_make_a_type(words: str, number: Number) -> None:
    assert declarations(f"{words} x;")[0].number is number
    assert expression(f"({words}) 1") == f"({number} 1)"


@pytest.mark.parametrize(
    "words",
    [
        *["short long", "long long long", "char int", "int int", "signed unsigned", "unsigned unsigned", "float int"],
        *["long double", "unsigned double", "short char", "int8_t int", "signed float", "double double", "short short"],
    ],
)
def test_words_that_do_not_go_together_are_no_type(words: str) -> None:
    assert problems(f"{words} x;") == [f"1:1: `{words}` is not a type"]


def test_one_declaration_can_declare_several_variables() -> None:
    first, second, third = declarations("static const int i = 1, a[2][3] = {{1, 2}, {3}}, n;")
    assert (first.name, first.static, first.constant, first.dimensions) == ("i", True, True, ())
    assert shown(first.initial) == "1"
    assert [shown(each) for each in second.dimensions] == ["2", "3"]
    assert shown(second.initial) == "{{1, 2}, {3}}"
    assert (third.name, third.initial, third.at) == ("n", None, (1, 50))


def test_the_words_of_a_declaration_come_in_any_order() -> None:
    (found,) = declarations("int const static x = 1;")
    assert (found.number, found.static, found.constant) == (INT32, True, True)


def test_the_first_length_of_an_array_can_be_left_to_its_values() -> None:
    (found,) = declarations("double a[][2] = {1, 2, 3, 4,};")
    assert found.dimensions[0] is None
    assert shown(found.initial) == "{1, 2, 3, 4}"


def test_every_statement_is_parsed() -> None:
    block = parsed(
        "{ int i; for (i = 0; i < 3; i++) { if (i == 1) continue; else break; } while (i) --i; do ; while (i > 9);"
        "  for (;;) return i; }"
    )
    assert [type(each).__name__ for each in block.statements] == ["Declaration", "For", "While", "Do", "For"]
    loop = block.statements[1]
    assert isinstance(loop, tree.For)
    assert isinstance(loop.initial[0], tree.Evaluate)
    assert shown(loop.test) == "(i < 3)"
    assert shown(loop.step) == "(i++)"
    endless = block.statements[4]
    assert isinstance(endless, tree.For)
    assert (endless.initial, endless.test, endless.step) == ((), None, None)


def test_an_else_belongs_to_the_nearest_if() -> None:
    (outer,) = parsed("if (a) if (b) x; else y;").statements
    assert isinstance(outer, tree.If)
    assert outer.no is None
    assert isinstance(outer.yes, tree.If)
    assert outer.yes.no is not None


def test_a_for_can_declare_several_variables() -> None:
    (loop,) = parsed("for (int i = 0, j = 9; i < j; i++, j--) ;").statements
    assert isinstance(loop, tree.For)
    assert [each.name for each in loop.initial if isinstance(each, tree.Declaration)] == ["i", "j"]
    assert shown(loop.step) == "((i++), (j--))"


def test_a_program_is_a_block_or_statements_or_an_expression_alone() -> None:
    assert parsed("{ return 1; }").statements == parsed("  return 1; ").statements
    (lone,) = parsed("input.price < 75.5").statements
    assert isinstance(lone, tree.Lone)
    assert shown(lone.value) == "(input.price < 75.5)"


def test_blocks_beside_each_other_are_a_program() -> None:
    assert len(parsed("{ a; } { b; } return 1;").statements) == 3


def test_an_expression_alone_has_nothing_before_it_and_no_braces() -> None:
    assert problems("int i; i < 3") == ["1:13: expected `;` after the expression, got the end of the code"]
    assert problems("{ i < 3 }") == ["1:8: expected `;` after the expression, got `}`"]


def test_positions_are_those_at_which_a_reader_points() -> None:
    (statement,) = parsed("  a.b[1] =\n   c + d;").statements
    assert isinstance(statement, tree.Evaluate)
    assignment = statement.value
    assert isinstance(assignment, tree.Assignment)
    assert (statement.at, assignment.at, assignment.value.at) == ((1, 3), (1, 10), (2, 6))
    assert isinstance(assignment.target, tree.Subscript)
    assert (assignment.target.at, assignment.target.array.at) == ((1, 6), (1, 5))


def test_a_block_knows_where_it_ends() -> None:
    assert parsed("{\n  a;\n}").end == (3, 1)
    assert parsed("a;\nb;").end == (2, 3)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "1:1: the code is empty: it must return a value at least"),
        ("/* */", "1:6: the code is empty: it must return a value at least"),
        ("int *p;", "1:5: pointers are not part of E-Code"),
        ("x = *p;", "1:5: pointers are not part of E-Code"),
        ("x = &y;", "1:5: pointers are not part of E-Code"),
        ("x = (int *) y;", "1:10: pointers are not part of E-Code"),
        ("x = p->y;", "1:6: pointers are not part of E-Code: write `.`"),
        ("goto a;", "1:1: labels and `goto` are not part of E-Code"),
        ("a: x = 1;", "1:1: labels and `goto` are not part of E-Code"),
        ("switch (x) { case 1: y; }", "1:1: `switch` is not part of E-Code: use `if` and `else`"),
        ("struct a { int b; };", "1:1: `struct` is not part of E-Code: records are the types of events"),
        ("typedef int a;", "1:1: `typedef` is not part of E-Code"),
        ("x = sizeof(int);", "1:5: `sizeof` is not part of E-Code"),
        ("int f(int x) { return x; }", "1:5: functions cannot be defined in E-Code"),
        ("void f() { }", "1:1: `void` is not part of E-Code"),
        ("bool b;", "1:1: a variable cannot be `bool`: use `int`, which is 0 or 1 after a comparison"),
        (
            "string s;",
            "1:1: a variable cannot be `string`: texts are fields of `input`, `output` and `param` only",
        ),
        ("static x;", "1:8: expected a type, got `x`"),
        ("x = (const int) 1;", "1:6: `const` has no meaning in a cast"),
        ("for (static int i = 0; ; ) ;", "1:6: a variable of `for` cannot be `static`"),
        ("if (x) int y = 1;", "1:8: a declaration cannot stand here without braces around it"),
        ("else x;", "1:1: this `else` has no `if`"),
        ("return;", "1:1: `return` needs a value: 0 rejects the event"),
        ("return 1; }", "1:11: this `}` closes nothing"),
        ("{ if (x) { return 1;", "1:10: this `{` is never closed"),
        ("x = ;", "1:5: expected an expression, got `;`"),
        ("x = 1 +;", "1:8: expected an expression, got `;`"),
        ("x = (1;", "1:7: expected `)` after the expression, got `;`"),
        ("x[1;", "1:4: expected `]` after the index, got `;`"),
        ("x. = 1;", "1:3: expected the name of a field after `.`, got `=`"),
        ("f(1 2);", "1:4: expected `,` or `)` after an argument of `f`, got `2`"),
        ("len(x);", "1:1: there is no function `len`: `length` is for arrays, `strlen` for texts"),
        ("x.f(1);", "1:4: only a function can be called, and it is called by its name"),
        ("int a[2] = {1 2};", "1:14: expected `,` or `}` after a value of the array, got `2`"),
        ("int 3;", "1:4: expected a name in the declaration, got `3`"),
        ("int if;", "1:4: expected a name in the declaration, got `if`"),
        ("int x", "1:6: expected `;` after the declaration, got the end of the code"),
        ("do x; until (y);", "1:6: expected `while` after the body of `do`, got `until`"),
        ("while x) y;", "1:6: expected `(` after `while`, got `x`"),
        ("retrun 1;", "1:7: expected `;` after the expression, got `1` (did you mean `return`?)"),
        ("doubel x;", "1:7: expected `;` after the expression, got `x` (did you mean `double`?)"),
        ("whlie (x) { }", "1:10: expected `;` after the expression, got `{` (did you mean `while`?)"),
        ("x = a and b;", "1:6: expected `;` after the expression, got `and` (E-Code writes `&&`)"),
        ("x = break;", "1:5: expected an expression, got the word `break`"),
        ("x = a ? b;", "1:10: expected `:` between the two values of `?`, got `;`"),
    ],
)
def test_a_mistake_is_named_and_placed(source: str, message: str) -> None:
    assert problems(source)[0] == message


@pytest.mark.parametrize(
    ("source", "places"),
    [
        ("a b; c d; e f;", ["1:2", "1:7", "1:12"]),
        ("for (i = 0; i < ; i++) { a b; } c d;", ["1:17", "1:27", "1:34"]),
        ("if (a b) { c d; } else { e f; } g h;", ["1:6", "1:13", "1:27", "1:34"]),
        ("int a[2] = {1 2}; int b[] = {3, 4; int c;", ["1:14", "1:34"]),
        ("{ a b; { c d; } e f; } g h;", ["1:4", "1:11", "1:18", "1:25"]),
        ("if (a { b; } c d;", ["1:6", "1:15"]),
        ("while (a) { b c; ", ["1:14"]),
        ("x = (1 + ; y = 2 3;", ["1:10", "1:17"]),
        ("int x = 1\nint y = 2;\ny z;", ["1:10", "3:2"]),
        ("return 08; return 1e; return '';", ["1:8", "1:19", "1:30"]),
    ],
)
def test_one_parse_finds_many_mistakes_and_none_twice(source: str, places: list[str]) -> None:
    assert [problem.rsplit(": ")[0].partition(": ")[0] for problem in problems(source)] == places


def test_no_more_than_twenty_mistakes_are_reported() -> None:
    assert len(problems("a b;\n" * 50)) == 20


def test_code_can_be_nested_up_to_the_limit() -> None:
    levels = NESTING_MAX - 1
    assert parsed("(" * levels + "1" + ")" * levels)
    message = f"the code is nested deeper than {NESTING_MAX} levels"
    assert problems("(" * (levels + 1) + "1" + ")" * (levels + 1)) == [f"1:{levels + 1}: {message}"]
    assert problems("{" * (levels + 2) + "}" * (levels + 2)) == [f"1:{levels + 2}: {message}"]


def test_many_alternatives_make_a_flat_tree() -> None:
    def depth(node: tree.Expression) -> int:
        return 1 + max(depth(node.left), depth(node.right)) if isinstance(node, tree.Binary) else 1

    (statement,) = parsed(" || ".join(["a"] * 1024)).statements
    assert isinstance(statement, tree.Lone)
    assert depth(statement.value) == 11
