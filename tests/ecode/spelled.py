"""Typed trees as short texts, and the types that tests of the front end check programs against.

i + 1.5    (+ (float64 i) 1.5):float64
"""

import enum
from typing import Any

import echoic
from echoic.ecode import Program, Signature, check, typed
from echoic.errors import ECodeError
from echoic.formats import Array, Format, bool_, char, float32, int8, int16, int32, uint8, uint32, uint64


class Side(enum.IntEnum):
    BUY = 1
    SELL = 2


@echoic.event
class Cell:
    speed: float32
    name: str
    levels: Array[int16, ...]


@echoic.event
class Leg:
    price: float
    count: int16
    label: str


@echoic.event
class Trade:
    symbol: str
    trade_price: float
    volume: int32
    code: Array[char, 12]
    flag: bool_
    side: Side
    tiny: int8
    small: uint8
    wide: uint32
    huge: uint64
    total: int
    ratio: float32
    leg: Leg
    legs: Array[Leg, 3]
    grid: Array[float, 4, 5]
    codes: Array[char, 3, 8]
    n: int32
    samples: Array[float32, "n"]
    pairs: Array[float, "n", 2]
    cells: Array[Cell, ...]
    tags: Array[str, ...]
    letters: Array[char, ...]


@echoic.event
class Point:
    x: int16
    y: float


@echoic.event
class Inner:
    depth: int32
    note: str


@echoic.event
class Summary:
    mean: float
    count: int16
    flag: bool_
    flags: Array[bool_, 4]
    name: str
    code: Array[char, 4]
    codes: Array[char, 2, 4]
    inner: Inner
    legs: Array[Leg, 2]
    n: int32
    samples: Array[float32, "n"]
    values: Array[float, ...]
    points: Array[Point, ...]
    tags: Array[str, ...]
    cells: Array[Cell, ...]


@echoic.event
class Limits:
    low: float
    high: float
    name: str


FILTER = Signature(Format.of(Trade))
TRANSFORM = Signature(
    Format.of(Trade), Format.of(Summary), Format.of(Limits), capacities=(("samples", 8), ("points", 100))
)
ROUTER = Signature(Format.of(Trade), ports=4)


def checked(source: str, signature: Signature = TRANSFORM) -> Program:
    return check(source, signature)


def problems(source: str, signature: Signature = TRANSFORM) -> list[str]:
    """Return what is wrong with a program, each as `line:column: message`."""
    try:
        check(source, signature)
    except ECodeError as error:
        return [f"{line}:{column}: {message}" for line, column, message in error.problems]
    return []


def returned(expression: str, before: str = "", signature: Signature = TRANSFORM) -> str:
    """Return how an expression is spelled when it was checked, without what makes it an int to return it."""
    program = check(f"{{ {before} {expression}; return 1; }}", signature)
    statement = program.body.statements[-2]
    assert isinstance(statement, typed.Evaluate)
    return spell(statement.value)


def spell(node: Any) -> str:
    match node:
        case typed.Constant(value, number):
            return f"{value}:{number}"
        case typed.Load(place):
            return spell(place)
        case typed.Local() | typed.Location():
            return spell_place(node)
        case typed.Assign(place, value):
            return f"(= {spell(place)} {spell(value)})"
        case typed.Update(place, operator, value, computed, post):
            return f"({operator}={'post' * post} {spell(place)} {spell(value)} in {computed})"
        case typed.TextLiteral() | typed.TextField() | typed.TextByte() | typed.TextEqual() | typed.Length():
            return spell_text(node)
        case _:
            return spell_operation(node)


def spell_operation(node: Any) -> str:
    match node:
        case typed.Convert(value, number):
            return f"({number} {spell(value)})"
        case typed.Negate(value) | typed.Invert(value):
            return f"({'-' if isinstance(node, typed.Negate) else '~'} {spell(value)}):{node.number}"
        case typed.Not(value):
            return f"(! {spell(value)})"
        case typed.Arithmetic(operator, left, right, number):
            return f"({operator} {spell(left)} {spell(right)}):{number}"
        case typed.Compare(operator, left, right) | typed.Logical(operator, left, right):
            return f"({operator} {spell(left)} {spell(right)})"
        case typed.Choose(test, yes, no, number):
            return f"(? {spell(test)} {spell(yes)} {spell(no)}):{number}"
        case typed.Sequence(first, second):
            return f"(, {spell(first)} {spell(second)})"
        case typed.MathCall(function, arguments):
            return f"({' '.join([function, *map(spell, arguments)])})"
        case _:
            raise TypeError(type(node))


def spell_text(node: Any) -> str:
    match node:
        case typed.TextLiteral(data):
            return repr(data)
        case typed.TextField(location):
            return f"text {spell(location)}"
        case typed.TextByte(text, index):
            return f"(byte {spell(text)} {spell(index)})"
        case typed.TextEqual(operator, left, right):
            return f"(text{operator} {spell(left)} {spell(right)})"
        case typed.Length(of):
            return f"(length {spell(of)})"
        case _:
            raise TypeError(type(node))


def spell_place(place: typed.Local | typed.Location) -> str:
    """Return `name+offset`, then each index with its length and stride, in front of that the element it starts at."""
    if isinstance(place, typed.Local):
        name, element = place.variable.name, ""
    else:
        name = ".".join((place.root, *place.path))
        inside = place.element
        element = f"{spell(inside.array)}@{spell(inside.index)}*{inside.step} -> " if inside else ""
    indexes = "".join(f"[{spell(index.value)}<{index.length}*{index.stride}]" for index in place.indexes)
    shown = f"{name}+{place.offset}" if place.offset or indexes or element else name
    return f"{element}{shown}{indexes}"


def spell_statement(node: typed.Statement) -> str:
    match node:
        case typed.Block(statements):
            return "{ " + " ".join(map(spell_statement, statements)) + " }"
        case typed.Declare(variable, values):
            shape = "".join(f"[{length}]" for length in variable.dimensions)
            return f"{variable.number} {variable.name}{shape} = ({', '.join(map(spell, values))});"
        case typed.Evaluate(value):
            return f"{spell(value)};"
        case typed.AssignText(target, text):
            return f"text {spell(target)} = {spell(text)};"
        case typed.Resize(array, length):
            return f"resize {spell(array)} {spell(length)};"
        case typed.If(test, yes, no):
            return f"if {spell(test)} {spell_statement(yes)}" + (f" else {spell_statement(no)}" if no else "")
        case typed.Loop(test, step, body, test_first):
            head = f"{spell(test) if test else ''}; {spell(step) if step else ''}"
            return f"{'loop' if test_first else 'do'} ({head}) {spell_statement(body)}"
        case typed.Return(value):
            return f"return {spell(value)};"
        case typed.Break():
            return "break;"
        case typed.Continue():
            return "continue;"


def body(source: str, signature: Signature = TRANSFORM) -> str:
    """Return a whole program when it was checked."""
    return spell_statement(check(source, signature).body)
