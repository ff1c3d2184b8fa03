"""Reading the binary form of terms, block by block. `saf.py` tells the form."""

import struct
from typing import Final, Literal, TypeAlias

from echoic.errors import LimitExceededError, MalformedTermError
from echoic.terms.term import REAL as REAL_BYTES
from echoic.terms.term import Annotated, Placeholder, Term, TermList, Value

__all__ = ["Buffer", "Decoder", "Encoding"]

APPL: Final = 1
INT: Final = 2
REAL: Final = 3
LIST: Final = 4
PLACEHOLDER: Final = 5
BLOB: Final = 6
LONG: Final = 8
BIG: Final = 9

NUMBER: Final = 0x80
SYMBOL: Final = 0x40
QUOTED: Final = 0x20
ANNOTATED: Final = 0x10
KIND: Final = 0x0F

BYTES_MAX: Final = 1 << 30

LONG_BYTES: Final = struct.Struct("<q")

Buffer: TypeAlias = bytes | bytearray | memoryview
Encoding: TypeAlias = Literal["utf-8", "latin-1"]

Symbol: TypeAlias = tuple[str, int, bool]
# What has values in it: its header (0: a value and its annotations), symbol, number, how many values there were
# before its own, and how many there are when it has all of them.
Frame: TypeAlias = tuple[int, Symbol, int, int, int]

_NO_SYMBOL: Final[Symbol] = ("", 0, False)
_CONSTANTS: Final = {"true": True, "false": False}


class Body:
    """A name, blob or big integer that goes on in the next block."""

    __slots__ = ("arity", "header", "missing", "number", "pieces")

    def __init__(self, header: int, number: int, arity: int, missing: int) -> None:
        self.header = header
        self.number = number
        self.arity = arity
        self.missing = missing
        self.pieces: list[bytes] = []


class Decoder:
    """Reads one value; `complete` says whether it is there.

    Args:
        encoding: Of names and strings.
        bytes_max: How many bytes a value may take.
    """

    def __init__(self, encoding: Encoding, bytes_max: int) -> None:
        self.complete = False
        self._encoding = encoding
        self._bytes_max = bytes_max
        self._bytes = 0
        self._numbered: list[Value | None] = []  # None: has begun and is not whole
        self._symbols: list[Symbol] = []
        self._values: list[Value] = []
        self._frames: list[Frame] = []
        self._body: Body | None = None

    @property
    def value(self) -> Value:
        """The value, when it is complete."""
        if not self.complete:
            raise MalformedTermError(f"a term is cut off after {self._bytes} bytes")
        return self._values[0]

    def feed(self, block: memoryview) -> int:
        """Read on with a block, and return how much of it belongs to the value.

        Raises:
            MalformedTermError: These are not the bytes of a value.
            LimitExceededError: They are more than `bytes_max`.
        """
        if self._bytes + len(block) > self._bytes_max:
            raise LimitExceededError(f"a term takes more than {self._bytes_max} bytes")
        at, end = 0, len(block)
        if self._body is not None:
            at = self._gather(self._body, block)
        try:
            while at < end and not self.complete:
                at = self._read(block, at)
        except (IndexError, struct.error):  # of the block: nothing else is indexed without being asked for its length
            raise MalformedTermError(f"a term is cut off after {self._bytes + end} bytes") from None
        self._bytes += at
        return at

    def _read(self, block: memoryview, at: int) -> int:
        """Read from a header to before the next, and return where that is."""
        header = block[at]
        if header & NUMBER:
            number, at = _varint(block, at + 1)
            found = self._numbered[number] if number < len(self._numbered) else None
            if found is None:
                raise MalformedTermError(f"value {number}, of which {len(self._numbered)} have begun, is not there")
            self._deliver(found)
            return at
        number = len(self._numbered)
        self._numbered.append(None)
        match header & KIND:
            case 1:  # APPL
                return self._read_appl(header, number, block, at + 1)
            case 2:  # INT
                bits, at = _varint(block, at + 1)
                self._made(header, number, bits - (1 << 32) if bits >> 31 else bits)
            case 4:  # LIST
                count, at = _varint(block, at + 1)
                self._open(header, number, _NO_SYMBOL, count)
            case 3:  # REAL
                self._made(header, number, REAL_BYTES.unpack_from(block, at + 1)[0])
                at += 9
            case 5:  # PLACEHOLDER
                self._open(header, number, _NO_SYMBOL, 1)
                at += 1
            case 8:  # LONG
                self._made(header, number, LONG_BYTES.unpack_from(block, at + 1)[0])
                at += 9
            case 6 | 9:  # BLOB, BIG
                size, at = _varint(block, at + 1)
                return self._read_body(header, number, 0, size, block, at)
            case kind:
                raise MalformedTermError(f"a value of kind {kind}")
        return at

    def _read_appl(self, header: int, number: int, block: memoryview, at: int) -> int:
        if header & SYMBOL:
            index, at = _varint(block, at)
            if index >= len(self._symbols):
                raise MalformedTermError(f"symbol {index} of {len(self._symbols)}")
            symbol = self._symbols[index]
            self._open(header, number, symbol, symbol[1])
            return at
        arity, at = _varint(block, at)
        size, at = _varint(block, at)
        return self._read_body(header, number, arity, size, block, at)

    def _read_body(self, header: int, number: int, arity: int, size: int, block: memoryview, at: int) -> int:
        """Read a name, blob or big integer as far as it is in this block."""
        if self._bytes + at + size > self._bytes_max:
            raise LimitExceededError(f"a term takes more than {self._bytes_max} bytes")
        end = at + size
        if end <= len(block):
            self._finish(header, number, arity, block[at:end])
            return end
        self._body = body = Body(header, number, arity, end - len(block))
        body.pieces.append(bytes(block[at:]))
        return len(block)

    def _gather(self, body: Body, block: memoryview) -> int:
        """Take more of a name, blob or big integer, and return how much it was."""
        piece = bytes(block[: body.missing])
        body.pieces.append(piece)
        body.missing -= len(piece)
        if not body.missing:
            self._body = None
            self._finish(body.header, body.number, body.arity, b"".join(body.pieces))
        return len(piece)

    def _finish(self, header: int, number: int, arity: int, raw: bytes | memoryview) -> None:
        """Go on with a name, blob or big integer that is whole."""
        kind = header & KIND
        if kind == APPL:
            try:
                name = str(raw, self._encoding)
            except UnicodeDecodeError as error:
                raise MalformedTermError(f"a name or string of {len(raw)} bytes is not {self._encoding}") from error
            symbol = (name, arity, bool(header & QUOTED))
            self._symbols.append(symbol)
            self._open(header, number, symbol, arity)
        elif kind == BLOB:
            self._made(header, number, bytes(raw))
        else:
            self._made(header, number, int.from_bytes(raw, "little", signed=True))

    def _open(self, header: int, number: int, symbol: Symbol, count: int) -> None:
        """Begin a value that has `count` values in it."""
        if count:
            base = len(self._values)
            self._frames.append((header, symbol, number, base, base + count))
        else:
            self._made(header, number, _build(header & KIND, symbol, []))

    def _made(self, header: int, number: int, made: Value) -> None:
        """Go on with a value that has no values in it."""
        if header & ANNOTATED:
            base = len(self._values)
            self._values.append(made)
            self._frames.append((0, _NO_SYMBOL, number, base, base + 2))
        else:
            self._numbered[number] = made
            self._deliver(made)

    def _deliver(self, made: Value) -> None:
        """Put a value where it belongs, and all that are whole with it."""
        values, frames = self._values, self._frames
        values.append(made)
        while frames:
            header, symbol, number, base, end = frames[-1]
            if len(values) < end:
                return
            frames.pop()
            made = _build(header & KIND, symbol, values[base:])
            del values[base:]
            values.append(made)
            if header & ANNOTATED:
                frames.append((0, _NO_SYMBOL, number, base, base + 2))
            else:
                self._numbered[number] = made
        self.complete = True


def _build(kind: int, symbol: Symbol, items: list[Value]) -> Value:
    """Return a value of the values in it."""
    if kind == APPL:
        name, _, quoted = symbol
        if items:
            return Term(name, *items, quoted=quoted)
        if quoted:
            return name
        constant = _CONSTANTS.get(name)
        return Term(name) if constant is None else constant
    if kind == LIST:
        return TermList(*items)
    if kind == PLACEHOLDER:
        return Placeholder(*items)
    value, annotations = items
    if not isinstance(annotations, TermList) or not annotations:
        raise MalformedTermError("the annotations of a value are not a list, or an empty one")
    return Annotated(value, *annotations.elements)


def _varint(block: memoryview, at: int) -> tuple[int, int]:
    """Return a number and where it ends."""
    number = block[at]
    if number < 0x80:
        return number, at + 1
    number &= 0x7F
    for shift in (7, 14, 21, 28):
        at += 1
        byte = block[at]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if number >> 32:
                break
            return number, at + 1
    raise MalformedTermError("a number of more than 32 bits")
