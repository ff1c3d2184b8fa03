"""Parsers of terms: as text, in the three ways in which they travel, and in the messages of tools."""

from collections.abc import Iterator
from random import Random
from typing import Final

from echoic.errors import EchoicError
from echoic.terms import Term, TermList, Value, parse_text, write_text
from echoic.terms.appendix_b import decode_appendix_b, encode_appendix_b
from echoic.terms.baf import decode_baf
from echoic.terms.saf import decode_file, decode_saf, encode_file, encode_saf
from echoic.terms.taf import parse_taf
from echoic.testing.parsers.parser import Target, load_place

__all__ = ["APPENDIX_B", "BAF", "NG_TOOLS", "SAF", "TEXT", "TOOLS"]

BYTES_MAX: Final = 65_536
WORDS: Final = (
    "registration",
    "put",
    "get",
    "acknowledgement",
    "finished",
    "chunk",
    "more",
    "refusal",
    "seen",
)
TEXTS: Final = (
    'f(1, -2.5e3, "text \\" more", [a, [], b(x)])',
    "f(<int>, <str>, [1, 2, <list>])",
    "trade(IBM, 75.25, 100){a, b(1)}",
    "[]",
    "-7",
)
BAF_OF_TERMS: Final = (
    "008baf83000709053c696e743e000001063c7265616c3e000001016701000101010474657874000101025b5d000001055b5f2c5f5d02"
    "00030300020302040501660200010100010506800000004a8003322e3584"
)
BAF_OF_NOTHING: Final = "008baf83000101025b5d00000100"


def _feed_text(data: bytes) -> None:
    """Read a term; what is written of it must be a term again."""
    text = data.decode("utf-8", "replace")
    try:
        parse_taf(text, characters_max=BYTES_MAX)
    except EchoicError:
        pass
    value = parse_text(text, characters_max=BYTES_MAX)
    if parse_text(write_text(value)) != value:
        raise AssertionError(f"{text!r} is written as {write_text(value)!r}, which is another term")


def _text_seeds() -> Iterator[bytes]:
    return (text.encode() for text in TEXTS)


def _values() -> Iterator[Value]:
    yield Term("trade", "IBM", 75.25, -100, TermList(1, TermList(), Term("x")))
    yield TermList(2**40, "Zürich", b"bytes", 1.5)


def _feed_saf(data: bytes) -> None:
    for decode in (decode_saf, decode_file):
        try:
            encode_saf(decode(data, bytes_max=BYTES_MAX))
        except EchoicError:
            continue


def _saf_seeds() -> Iterator[bytes]:
    for value in _values():
        yield encode_saf(value)
        yield encode_file(value)


def _feed_baf(data: bytes) -> None:
    encode_saf(decode_baf(data, bytes_max=BYTES_MAX, elements_max=BYTES_MAX))


def _baf_seeds() -> Iterator[bytes]:
    return (bytes.fromhex(seed) for seed in (BAF_OF_TERMS, BAF_OF_NOTHING))


def _feed_appendix_b(data: bytes) -> None:
    encode_appendix_b(decode_appendix_b(data, bytes_max=BYTES_MAX))


def _appendix_b_seeds() -> Iterator[bytes]:
    yield encode_appendix_b(Term("f", 1, "text", TermList(1, 2.5)))
    yield encode_appendix_b(TermList())


def _feed_tools(data: bytes) -> None:
    """Read a message of a tool, and let every word take it for its own."""
    protocol, words = "echoic.toolbus.protocol", "echoic.toolbus.references.words"
    message = load_place(f"{protocol}:decode_message")(data)
    if message is None:
        return
    places = [f"{protocol}:decode_hello", f"{protocol}:decode_interface", *(f"{words}:decode_{word}" for word in WORDS)]
    for place in places:
        try:
            load_place(place)(message)
        except EchoicError:
            continue
    load_place(f"{protocol}:encode_message")(message)


def _tool_seeds() -> Iterator[bytes]:
    kinds = load_place("echoic.toolbus.protocol:MessageKind")
    head = load_place("echoic.toolbus.protocol:HEAD")
    greeting = TermList(Term("echoic-tool", 1, 1), "adder", 3, "token", TermList("references"), Term("x"), Term("y"))
    numbers = TermList(1, 2, 3, TermList("h:1"), TermList(1, 2), 1, "name", 3, 100, b"token", 1, 5)
    for kind in kinds:
        for values in (greeting, numbers):
            yield head.pack(kind, 0, 0, 1) + encode_saf(values)


def _repair_tools(data: bytes, draw: Random) -> bytes:
    """Return a message whose values are terms: one of the samples behind the head that was mutated, now and then."""
    if draw.random() < 0.7:
        return data
    return data[:8] + encode_saf(
        TermList(*(draw.choice((0, 1, -1, 2**63 - 1, "x", b"y", TermList())) for _ in range(12)))
    )


def _feed_ng_tools(data: bytes) -> None:
    """Read what a tool of ToolBus-NG says: who it is, whether it agrees, frames; in two parts, as they may arrive."""
    protocol = "echoic.toolbus.ng_protocol"
    reader = load_place(f"{protocol}:NgReader")(BYTES_MAX)
    steps = [reader.take_term, reader.take_byte]
    pending: list[object] = []
    for part in (data[: len(data) // 2], data[len(data) // 2 :]):
        reader.receive(part)
        while steps and steps[0]() is not None:
            del steps[0]
        if not steps:
            for operation, value in reader.take_frames(pending):
                load_place(f"{protocol}:said_by_ng")(operation, value)
                load_place(f"{protocol}:encode_ng_operation")(operation, value)


def _ng_tool_seeds() -> Iterator[bytes]:
    protocol = "echoic.toolbus.ng_protocol"
    encode_term, encode = load_place(f"{protocol}:encode_ng_term"), load_place(f"{protocol}:encode_ng_operation")
    operations = load_place(f"{protocol}:NgOperation")
    greeting = encode_term(Term("adder", -1)) + b"\x01"
    for value in (Term("sum", 1, 2.5, "Zürich", TermList(1, Term("x"))), TermList(), "text" * 20, Term("x", 2**31 - 1)):
        yield greeting + b"".join(encode(operation, value) for operation in operations)
    yield greeting + encode(operations.EVENT, Term("e", 1)) + encode(operations.END, TermList())


TEXT: Final = Target(_feed_text, _text_seeds)
SAF: Final = Target(_feed_saf, _saf_seeds)
BAF: Final = Target(_feed_baf, _baf_seeds)
APPENDIX_B: Final = Target(_feed_appendix_b, _appendix_b_seeds)
TOOLS: Final = Target(_feed_tools, _tool_seeds, _repair_tools)
NG_TOOLS: Final = Target(_feed_ng_tools, _ng_tool_seeds)
