"""Arithmetic of E-Code in the words of LLVM.

LLVM leaves undefined what C leaves undefined, so each instruction is chosen or guarded to do what E-Code defines:
integers wrap (no `nsw`), shift amounts are masked, floats saturate when they become integers, and a division looks at
its divisor first. No flag of fast mathematics is ever set, and nothing is contracted.

Functions of C's `math.h` are called as strangers (`nobuiltin`): LLVM would otherwise compute some of them itself, with
another last bit than the library's. Those of which IEEE 754 knows but one result are instructions.
"""

import struct
from collections.abc import Callable
from typing import Final

from echoic.codegen import Emitter
from echoic.ecode.numbers import FLOAT32, FLOAT64, Number, convert, wrap

__all__ = ["calculated", "called", "compared", "converted", "kind_of", "literal", "truth"]

KINDS: Final = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}
INTEGER_INSTRUCTIONS: Final = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
FLOAT_INSTRUCTIONS: Final = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
COMPARISONS: Final = {"==": "eq", "!=": "ne", "<": "lt", ">": "gt", "<=": "le", ">=": "ge"}
EXACT_FUNCTIONS: Final = {"fabs", "sqrt", "floor", "ceil", "trunc", "round"}
INFINITY: Final = "0x7FF0000000000000"


def kind_of(number: Number) -> str:
    """Return what LLVM calls a type."""
    if number.floating:
        return "double" if number is FLOAT64 else "float"
    return KINDS[number.size]


def literal(value: float, number: Number) -> str:
    """Return a constant; LLVM writes floats of either size as the bits of a double."""
    if not number.floating:
        bits = wrap(int(value), number)
        return str(bits if bits < 1 << (number.bits - 1) else bits - (1 << number.bits))
    exact = convert(float(value), FLOAT32) if number is FLOAT32 else float(value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', exact))[0]:016X}"


def converted(emit: Emitter, value: str, source: Number, target: Number) -> str:
    """Return a value as another type has it."""
    given, wanted = kind_of(source), kind_of(target)
    if given == wanted:
        return value
    if source.floating and target.floating:
        return emit.value(f"{'fpext' if target is FLOAT64 else 'fptrunc'} {given} {value} to {wanted}")
    if source.floating:
        name = f"llvm.fpto{'s' if target.signed else 'u'}i.sat.{wanted}.f{source.bits}"
        return emit.call(wanted, name, [(given, value)])
    if target.floating:
        return emit.value(f"{'sitofp' if source.signed else 'uitofp'} {given} {value} to {wanted}")
    if target.size < source.size:
        return emit.value(f"trunc {given} {value} to {wanted}")
    return emit.value(f"{'sext' if source.signed else 'zext'} {given} {value} to {wanted}")


def truth(emit: Emitter, value: str, number: Number) -> str:
    """Return, as one bit, whether a value is not zero. NaN is not."""
    if number.floating:
        return emit.value(f"fcmp une {kind_of(number)} {value}, 0.0")
    return emit.value(f"icmp ne {kind_of(number)} {value}, 0")


def compared(emit: Emitter, operator: str, left: str, right: str, number: Number) -> str:
    """Return, as one bit, how two values of one type compare."""
    word = COMPARISONS[operator]
    if number.floating:
        return emit.value(f"fcmp {'u' if operator == '!=' else 'o'}{word} {kind_of(number)} {left}, {right}")
    if operator not in ("==", "!="):
        word = ("s" if number.signed else "u") + word
    return emit.value(f"icmp {word} {kind_of(number)} {left}, {right}")


def calculated(
    emit: Emitter, operator: str, left: str, right: str, number: Number, forbid: Callable[[str], None]
) -> str:
    """Return `left operator right`, both of type `number`; `forbid` is told the condition of a fault."""
    kind = kind_of(number)
    if number.floating:
        return emit.value(f"{FLOAT_INSTRUCTIONS[operator]} {kind} {left}, {right}")
    if operator in ("<<", ">>"):
        amount = emit.value(f"and {kind} {right}, {number.bits - 1}")
        word = "shl" if operator == "<<" else "ashr" if number.signed else "lshr"
        return emit.value(f"{word} {kind} {left}, {amount}")
    if operator in ("/", "%"):
        if not _constant_but(right, 0):
            forbid(emit.value(f"icmp eq {kind} {right}, 0"))
        return _divided(emit, operator, left, right, number)
    return emit.value(f"{INTEGER_INSTRUCTIONS[operator]} {kind} {left}, {right}")


def _constant_but(value: str, unwanted: int) -> bool:
    """Tell whether a value is a constant, and not the one that needs care."""
    return not value.startswith("%") and int(value) != unwanted


def _divided(emit: Emitter, operator: str, left: str, right: str, number: Number) -> str:
    """Divide by what is not zero. The smallest number by -1 would stop the machine, so -1 is not divided by."""
    kind = kind_of(number)
    word = "div" if operator == "/" else "rem"
    if not number.signed:
        return emit.value(f"u{word} {kind} {left}, {right}")
    if _constant_but(right, -1):
        return emit.value(f"s{word} {kind} {left}, {right}")
    minus_one = emit.value(f"icmp eq {kind} {right}, -1")
    divisor = emit.value(f"select i1 {minus_one}, {kind} 1, {kind} {right}")
    quotient = emit.value(f"s{word} {kind} {left}, {divisor}")
    instead = emit.value(f"sub {kind} 0, {left}") if operator == "/" else "0"
    return emit.value(f"select i1 {minus_one}, {kind} {instead}, {kind} {quotient}")


def called(emit: Emitter, function: str, arguments: list[str]) -> str:
    """Return what a function of the whitelist gives for doubles; a fact is 1.0 or 0.0."""
    if function in EXACT_FUNCTIONS:
        return emit.call("double", f"llvm.{function}.f64", [("double", arguments[0])])
    if function in ("fmin", "fmax"):
        return _extreme(emit, function, arguments[0], arguments[1])
    if function in ("isnan", "isinf", "isfinite"):
        return emit.value(f"uitofp i1 {_fact(emit, function, arguments[0])} to double")
    emit.declare(f"declare double @{function}({', '.join('double' for _ in arguments)})")
    given = ", ".join(f"double {argument}" for argument in arguments)
    return emit.value(f"call double @{function}({given}) nobuiltin")


def _fact(emit: Emitter, function: str, value: str) -> str:
    if function == "isnan":
        return emit.value(f"fcmp uno double {value}, 0.0")
    size = emit.call("double", "llvm.fabs.f64", [("double", value)])
    return emit.value(f"fcmp {'oeq' if function == 'isinf' else 'one'} double {size}, {INFINITY}")


def _extreme(emit: Emitter, function: str, left: str, right: str) -> str:
    """Return the smaller or larger of two; if one is NaN, the other; of equal ones the left."""
    word = "ole" if function == "fmin" else "oge"
    left_wins = emit.value(f"fcmp {word} double {left}, {right}")
    right_missing = emit.value(f"fcmp uno double {right}, 0.0")
    either = emit.value(f"or i1 {left_wins}, {right_missing}")
    return emit.value(f"select i1 {either}, double {left}, double {right}")
