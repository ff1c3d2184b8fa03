"""Parsers of what people write: derivations in both spellings, scripts, types, values, addresses."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

from echoic.channels import ChannelId
from echoic.ecode.analysis import analyse
from echoic.ecode.compiling import check
from echoic.ecode.program import Signature
from echoic.errors import EchoicError
from echoic.formats import Format
from echoic.formats.from_text import format_of_text
from echoic.formats.text_values import fit_event, parse_json, parse_words
from echoic.links.address import parse_address
from echoic.scripts.checking import check as check_script
from echoic.scripts.syntax import load
from echoic.testing.ecode_fuzz_programs import draw_case
from echoic.testing.parsers.parser import Target
from echoic.testing.samples import Everything, Mean, Station, Trade

if TYPE_CHECKING:
    from echoic.ecode.program import Spelling

__all__ = ["ADDRESSES", "ECODE", "PYTHON", "SCRIPTS", "TYPES", "VALUES"]

PROGRAMS: Final = 12
TEXT_CHARACTERS_MAX: Final = 20_000
CODE: Final = (
    b"{ static int n; n = n + 1; output.at = input.price; return input.price > param.latitude && n % 3 != 0; }"
)
IN_PYTHON: Final = (
    """def f(input, output, param):
    total = 0.0
    for i in range(3):
        total += input.price * i
    output.average_velocity = total
    return total > param.latitude
""",
    """def f(input: Trade) -> bool:
    if input.volume % 2 == 0 and input.symbol == 'IBM':
        return True
    n: int = 0
    while n < 7:
        n += 1
    return n << 2 > 1
""",
)
SCRIPT: Final = """%% a script
#define LIMIT 3
tool calc is { command = "calc" }
process CALC is
let T: calc, E: str, V: term
in
  execute(calc, T?) .
  ( rec-msg(compute, E?) . snd-eval(T, expr(E)) . rec-value(T, val(V?)) . snd-msg(compute, E, V)
  + rec-event(T, done(E?)) . if equal(E, "end") then shutdown("") fi
  ) * delta
endlet
toolbus(CALC)
"""


@cache
def _signatures() -> list[Signature]:
    drawn = [draw_case(seed).signature for seed in range(PROGRAMS)]
    return [Signature(Format.of(Trade), Format.of(Mean), Format.of(Station)), *drawn]


def _feed(text: str, signature: Signature, spelling: "Spelling") -> None:
    """Check a program, and look how long it may take."""
    analyse(check(text[:TEXT_CHARACTERS_MAX], signature, spelling=spelling))


def _feed_ecode(data: bytes) -> None:
    """Check a program; its first character says for which types."""
    signature = _signatures()[(data[0] if data else 0) % len(_signatures())]
    _feed(data[1:].decode("utf-8", "replace"), signature, "ecode")


def _feed_python(data: bytes) -> None:
    _feed(data.decode("utf-8", "replace"), _signatures()[0], "python")


def _ecode_seeds() -> Iterator[bytes]:
    first = ord("A") - ord("A") % len(_signatures())  # a letter, so that the corpus is text
    yield bytes([first]) + CODE
    for seed in range(PROGRAMS):
        yield bytes([first + 1 + seed]) + draw_case(seed).source.encode()


def _python_seeds() -> Iterator[bytes]:
    return (text.encode() for text in IN_PYTHON)


def _feed_scripts(data: bytes) -> None:
    check_script(load(data.decode("utf-8", "replace")[:TEXT_CHARACTERS_MAX]))


def _script_seeds() -> Iterator[bytes]:
    yield SCRIPT.encode()
    yield b"process P is rec-event(T, f(X?)) . snd-do(T, g(X)) || tau delay(sec(3)) * delta\ntoolbus(P, P)\n"


def _feed_types(data: bytes) -> None:
    """Read a type; what describes it must be that type again."""
    format = format_of_text(data.decode("utf-8", "replace"))
    Format.from_descriptor(format.descriptor)


def _type_seeds() -> Iterator[bytes]:
    yield b"Trade{symbol: str, price: float, volume: int = 3, note: str? = 'none'}"
    yield b"F{n: int32, a: float32[n][3], p: P{x: uint8, y: bytes}[2], tags: str[]}"


def _feed_values(data: bytes) -> None:
    """Read an event as people write them, in each way, for a type that has everything."""
    text = data.decode("utf-8", "replace")
    parses: tuple[Callable[[], object], ...] = (
        lambda: parse_words([text]),
        lambda: parse_words(text.split("\n")),
        lambda: parse_json(text),
    )
    for parse in parses:
        try:
            value = parse()
        except EchoicError:
            continue
        for declared in (Trade, Everything):
            try:
                fit_event(value, Format.of(declared))
            except EchoicError:
                continue


def _value_seeds() -> Iterator[bytes]:
    yield b'{symbol: IBM, price: 75.5, volume: -3, side: SELL, note: "a \\" b"}'
    yield b"symbol=IBM\nprice=75.5\nvolume=1"
    yield b'{"flag": true, "letter": "x", "cells": [[1, 2, 3]], "stations": [{"name": "Z", "latitude": 1}]}'


def _feed_addresses(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for parse in (parse_address, ChannelId.parse):
        try:
            parse(text)
        except EchoicError:
            continue


def _address_seeds() -> Iterator[bytes]:
    yield from (b"127.0.0.1:7400", b"[::1]:1", b"echoic://host:1/trades.low", b"unix:/x:3", b"example.org:65535")


ECODE: Final = Target(_feed_ecode, _ecode_seeds)
PYTHON: Final = Target(_feed_python, _python_seeds)
SCRIPTS: Final = Target(_feed_scripts, _script_seeds)
TYPES: Final = Target(_feed_types, _type_seeds)
VALUES: Final = Target(_feed_values, _value_seeds)
ADDRESSES: Final = Target(_feed_addresses, _address_seeds)
