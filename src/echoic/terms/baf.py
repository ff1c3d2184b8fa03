"""Reading the compact binary form of terms (BAF 3.0), which the C library writes. It is read only: SAF took its place.

    header    varints: 0, 0xBAF, 0x300, number of symbols, number of terms
    symbols   each: name length, name, arity, quoted (0 or 1), how many terms have it,
              and for each argument: how many symbols can stand there, and which
    root      varint: the symbol of the whole term, then its arguments, as bits

A varint is one to five bytes, the highest first; the first byte says how many: 0xxxxxxx, 10xxxxxx, 110xxxxx, 1110xxxx,
11110000. Bits are taken from each byte from the highest on, and a number from its lowest bit on. A number that is below
some count has as many bits as the count itself has, none if it is below 1 or 0 (two things take *two* bits: so does the
library).

An argument is the index of its symbol among those that can stand there, then its index among the terms of that
symbol; if that index was not there before, its own arguments follow. Six symbols stand for other kinds: `<int>` is
followed by 32 bits; `<real>` and `blob` by a length and bytes, which begin at the next byte; `[_,_]` has an element
and the rest of a list, `[]` is the empty one; `<_>` is a placeholder; `{_}` has a value and the list of its
annotations.

Lists come as pairs, and one list may be the rest of many. Here each list has its elements itself, so a hostile file
of n bytes could ask for n * n of them: their number has a limit.
"""

from typing import Final

from echoic.errors import LimitExceededError, MalformedTermError
from echoic.terms.term import Annotated, Placeholder, Term, TermList, Value

__all__ = ["decode_baf"]

BYTES_MAX: Final = 1 << 28
ELEMENTS_MAX: Final = 1 << 24
HEADER: Final = (0, 0xBAF, 0x300)
INT_BITS: Final = 32

_LIST, _EMPTY, _INT, _REAL, _BLOB, _PLACEHOLDER, _ANNOTATED = "[_,_]", "[]", "<int>", "<real>", "blob", "<_>", "{_}"
_SPECIAL: Final = {_LIST: 2, _EMPTY: 0, _INT: 0, _REAL: 0, _BLOB: 0, _PLACEHOLDER: 1, _ANNOTATED: 2}  # with arities
_TURNED: Final = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_CONSTANTS: Final = {"true": True, "false": False}


def decode_baf(data: bytes, *, bytes_max: int = BYTES_MAX, elements_max: int = ELEMENTS_MAX) -> Value:
    """Return the value that the content of a BAF file is.

    Args:
        data: All of it; what stands behind the value is not looked at.
        bytes_max: How long it may be.
        elements_max: How many elements all its lists may have.

    Raises:
        MalformedTermError: It is none.
        LimitExceededError: It is too large.
    """
    if len(data) > bytes_max:
        raise LimitExceededError(f"a term of {len(data)} bytes, limit is {bytes_max}")
    try:
        return _Reading(data, elements_max).read()
    except IndexError:  # of the data: nothing else is indexed without being asked for its length
        raise MalformedTermError(f"a term of more than {len(data)} bytes is cut off") from None


class _Pair:
    """A list as it is in the file; `value` when it was asked for."""

    __slots__ = ("first", "rest", "value")

    def __init__(self, first: Value, rest: "_Pair | None") -> None:
        self.first = first
        self.rest = rest
        self.value: TermList | None = None


class _Symbol:
    """A symbol, with the terms of it that were read; None: has begun and is not whole."""

    __slots__ = ("arity", "choices", "count", "name", "quoted", "special", "terms")

    def __init__(self, name: str, arity: int, quoted: bool, count: int) -> None:
        self.name = name
        self.arity = arity
        self.quoted = quoted
        self.count = count
        self.choices: list[list[int]] = []
        self.terms: dict[int, Value | _Pair | None] = {}
        self.special = name if not quoted and _SPECIAL.get(name) == arity else ""


class _Frame:
    """A term whose arguments are being read."""

    __slots__ = ("arguments", "index", "symbol")

    def __init__(self, symbol: _Symbol, index: int) -> None:
        self.symbol = symbol
        self.index = index
        self.arguments: list[Value | _Pair] = []


class _Reading:
    """One reading of a file."""

    def __init__(self, data: bytes, elements_max: int) -> None:
        self._data = data
        self._turned = data.translate(_TURNED)  # so that bits and numbers begin at the same end
        self._at = 0
        self._bits = 0  # how many bits of the byte before `_at` are still to be read
        self._elements_max = elements_max
        self._elements = 0

    def read(self) -> Value:
        """Return the value."""
        header = tuple(self._varint() for _ in HEADER)
        if header != HEADER:
            raise MalformedTermError("not a BAF file of version 3.0")
        count = self._varint()
        self._varint()  # how many terms there are: they are counted by symbol too
        symbols: list[_Symbol] = []
        while len(symbols) < count:
            symbols.append(self._symbol(count))
        root = self._varint()
        if root >= count:
            raise MalformedTermError(f"symbol {root} of {count}")
        return self._finished(self._term(_Frame(symbols[root], -1), symbols))

    def _symbol(self, symbols: int) -> _Symbol:
        raw = self._bytes()
        try:
            name = raw.decode("utf-8")
        except UnicodeDecodeError:
            name = raw.decode("latin-1")  # the library does not say: it is C's bytes
        symbol = _Symbol(name, self._varint(), bool(self._varint()), self._varint())
        while len(symbol.choices) < symbol.arity:
            choices: list[int] = []
            wanted = self._varint()
            while len(choices) < wanted:
                choice = self._varint()
                if choice >= symbols:
                    raise MalformedTermError(f"symbol {choice} of {symbols}")
                choices.append(choice)
            symbol.choices.append(choices)
        return symbol

    def _term(self, root: _Frame, symbols: list[_Symbol]) -> Value | _Pair:
        """Return the term whose symbol was read."""
        frames = [root]
        while True:
            frame = frames[-1]
            if len(frame.arguments) < frame.symbol.arity:
                opened = self._argument(frame, symbols)
                if opened is not None:
                    frames.append(opened)
                continue
            frames.pop()
            made = self._build(frame.symbol, frame.arguments)
            frame.symbol.terms[frame.index] = made
            if not frames:
                return made
            frames[-1].arguments.append(made)

    def _argument(self, frame: _Frame, symbols: list[_Symbol]) -> _Frame | None:
        """Read which term an argument is; return it if it comes now."""
        choices = frame.symbol.choices[len(frame.arguments)]
        choice = self._number(_width(len(choices)))
        if choice >= len(choices):
            raise MalformedTermError(f"choice {choice} of {len(choices)} symbols")
        symbol = symbols[choices[choice]]
        index = self._number(_width(symbol.count))
        if index >= symbol.count:
            raise MalformedTermError(f"term {index} of {symbol.count} with the symbol `{symbol.name:.40}`")
        if index not in symbol.terms:
            symbol.terms[index] = None
            return _Frame(symbol, index)
        found = symbol.terms[index]
        if found is None:
            raise MalformedTermError(f"a term with the symbol `{symbol.name:.40}` is in itself")
        frame.arguments.append(found)
        return None

    def _build(self, symbol: _Symbol, arguments: list[Value | _Pair]) -> Value | _Pair:
        match symbol.special:
            case "[_,_]":
                first, rest = arguments
                if not isinstance(rest, _Pair) and rest is not _NOTHING:
                    raise MalformedTermError("the rest of a list is no list, or has annotations")
                return _Pair(self._finished(first), rest if isinstance(rest, _Pair) else None)
            case "[]":
                return _NOTHING
            case "<int>":
                bits = self._number(INT_BITS)
                return bits - (1 << INT_BITS) if bits >> (INT_BITS - 1) else bits
            case "<real>":
                return self._real()
            case "blob":
                self._bits = 0
                return self._bytes()
            case _:
                return self._compound(symbol, [self._finished(argument) for argument in arguments])

    def _compound(self, symbol: _Symbol, values: list[Value]) -> Value:
        match symbol.special:
            case "<_>":
                return Placeholder(*values)
            case "{_}":
                value, annotations = values
                if isinstance(value, Annotated) or not isinstance(annotations, TermList) or not annotations:
                    raise MalformedTermError("the annotations of a value are not a list, or not the first ones")
                return Annotated(value, *annotations.elements)
            case _:
                return self._application(symbol, values)

    def _application(self, symbol: _Symbol, values: list[Value]) -> Value:
        if not values:
            if symbol.quoted:
                return symbol.name
            if symbol.name in _CONSTANTS:
                return _CONSTANTS[symbol.name]
        return Term(symbol.name, *values, quoted=symbol.quoted)

    def _finished(self, part: Value | _Pair) -> Value:
        """Return a list with all its elements, and anything else as it is."""
        if not isinstance(part, _Pair):
            return part
        if part.value is None:
            elements = []
            pair: _Pair | None = part
            while pair is not None:
                elements.append(pair.first)
                pair = pair.rest
                self._elements += 1
                if self._elements > self._elements_max:
                    raise LimitExceededError(f"lists of more than {self._elements_max} elements in all")
            part.value = TermList(*elements)
        return part.value

    def _real(self) -> float:
        self._bits = 0
        spelled = self._bytes()
        try:
            return float(spelled)
        except ValueError as error:
            raise MalformedTermError(f"the real `{spelled[:40]!r}`") from error

    def _varint(self) -> int:
        first = self._data[self._at]
        more = 0
        while more < 4 and first & (0x80 >> more):
            more += 1
        end = self._at + 1 + more
        if end > len(self._data):
            raise IndexError(end)
        rest = int.from_bytes(self._data[self._at + 1 : end], "big")
        self._at = end
        return rest if more == 4 else (first & (0x7F >> more)) << 8 * more | rest

    def _bytes(self) -> bytes:
        size = self._varint()
        if self._at + size > len(self._data):
            raise IndexError(size)
        self._at += size
        return self._data[self._at - size : self._at]

    def _number(self, bits: int) -> int:
        """Return a number of so many bits, of which the lowest comes first."""
        begin = self._at * 8 - self._bits
        end = begin + bits
        if end > len(self._data) * 8:
            raise IndexError(end)
        self._at = (end + 7) >> 3
        self._bits = self._at * 8 - end
        return int.from_bytes(self._turned[begin >> 3 : self._at], "little") >> (begin & 7) & ((1 << bits) - 1)


_NOTHING: Final = TermList()


def _width(count: int) -> int:
    """Return how many bits an index below a count has."""
    return count.bit_length() if count > 1 else 0
