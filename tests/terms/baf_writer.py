"""A writer of BAF 3.0, from its description: the product only reads it.

Lists are written as pairs and terms are numbered when they are whole, as the C library does.
"""

from dataclasses import dataclass, field

from echoic.terms import Annotated, Placeholder, Term, TermList, Value
from echoic.terms.term import identity


@dataclass
class Node:
    """A term as BAF sees it: a symbol, and arguments or a scalar."""

    symbol: tuple[str, int, bool]
    arguments: list["Node"]
    scalar: int | float | bytes | None = None
    key: object = None


@dataclass
class Writing:
    data: bytearray = field(default_factory=bytearray)
    bits: list[int] = field(default_factory=list)

    def varint(self, number: int) -> None:
        for more, mark in enumerate((0, 0x80, 0xC0, 0xE0)):
            if number < 1 << 7 * (more + 1):
                first = number.to_bytes(more + 1, "big")
                self.data += bytes([first[0] | mark]) + first[1:]
                return
        self.data += b"\xf0" + number.to_bytes(4, "big")

    def string(self, text: bytes) -> None:
        self.varint(len(text))
        self.data += text

    def number(self, number: int, width: int) -> None:
        for place in range(width):
            self.bits.append(number >> place & 1)
            if len(self.bits) == 8:
                self.flush()

    def flush(self) -> None:
        if self.bits:
            self.bits += [0] * (8 - len(self.bits))
            self.data.append(int("".join(map(str, self.bits)), 2))
            self.bits.clear()


def width(count: int) -> int:
    return count.bit_length() if count > 1 else 0


def nodes(value: Value) -> Node:
    key = identity(value)
    match value:
        case Annotated():
            made = Node(("{_}", 2, False), [nodes(value.value), nodes(TermList(*value.annotations))])
        case Term():
            made = Node((value.name, len(value.args), value.quoted), [nodes(each) for each in value.args])
        case TermList():
            if not value.elements:
                return Node(("[]", 0, False), [], key=key)
            made = Node(("[_,_]", 2, False), [nodes(value[0]), nodes(TermList(*value.elements[1:]))])
        case Placeholder():
            made = Node(("<_>", 1, False), [nodes(value.type)])
        case bool():
            made = Node(("true" if value else "false", 0, False), [])
        case int():
            made = Node(("<int>", 0, False), [], value)
        case float():
            made = Node(("<real>", 0, False), [], value)
        case str():
            made = Node((value, 0, True), [])
        case bytes():
            made = Node(("blob", 0, False), [], value)
    made.key = (made.symbol, key)
    return made


Symbol = tuple[str, int, bool]


class Encoding:
    """One encoding of a value: which terms each symbol has, and which symbols can stand at each argument."""

    def __init__(self, root: Node) -> None:
        self.terms: dict[Symbol, list[object]] = {}
        self.choices: dict[tuple[Symbol, int], list[Symbol]] = {}
        self.writing = Writing()
        self.written: set[object] = set()
        self.collect(root)

    def collect(self, node: Node) -> None:
        for place, argument in enumerate(node.arguments):
            self.collect(argument)
            allowed = self.choices.setdefault((node.symbol, place), [])
            if argument.symbol not in allowed:
                allowed.append(argument.symbol)
        terms = self.terms.setdefault(node.symbol, [])
        if node.key not in terms:
            terms.append(node.key)

    def write_symbols(self) -> None:
        symbols = list(self.terms)
        for symbol in symbols:
            name, arity, quoted = symbol
            self.writing.string(name.encode())
            for number in (arity, int(quoted), len(self.terms[symbol])):
                self.writing.varint(number)
            for place in range(arity):
                allowed = self.choices[symbol, place]
                self.writing.varint(len(allowed))
                for each in allowed:
                    self.writing.varint(symbols.index(each))

    def write(self, node: Node) -> None:
        for place, argument in enumerate(node.arguments):
            allowed = self.choices[node.symbol, place]
            self.writing.number(allowed.index(argument.symbol), width(len(allowed)))
            terms = self.terms[argument.symbol]
            self.writing.number(terms.index(argument.key), width(len(terms)))
            if argument.key not in self.written:
                self.write(argument)
        if isinstance(node.scalar, int):
            self.writing.number(node.scalar & 0xFFFFFFFF, 32)
        elif node.scalar is not None:
            self.writing.flush()
            self.writing.string(node.scalar if isinstance(node.scalar, bytes) else repr(node.scalar).encode())
        self.written.add(node.key)


def encode_baf(value: Value) -> bytes:
    """Return a value in BAF; integers have 32 bits."""
    root = nodes(value)
    encoding = Encoding(root)
    writing = encoding.writing
    for number in (0, 0xBAF, 0x300, len(encoding.terms), sum(map(len, encoding.terms.values()))):
        writing.varint(number)
    encoding.write_symbols()
    writing.varint(list(encoding.terms).index(root.symbol))
    encoding.write(root)
    writing.flush()
    return bytes(writing.data)


def chain(levels: int) -> bytes:
    """Return `f(f(...f(z)))`: each level is the index of its argument, and the z at the end has another symbol."""
    writing = Writing()
    for number in (0, 0xBAF, 0x300, 2, levels + 1):
        writing.varint(number)
    for name, arity, count in ((b"f", 1, levels), (b"z", 0, 1)):
        writing.string(name)
        for number in (arity, 0, count):
            writing.varint(number)
        if arity:
            for number in (2, 0, 1):
                writing.varint(number)
    writing.varint(0)
    for level in range(levels - 1, 0, -1):
        writing.number(0, 2)
        writing.number(level - 1, width(levels))
    writing.number(1, 2)
    writing.flush()
    return bytes(writing.data)
