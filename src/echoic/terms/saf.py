"""The binary form of terms (SAF), which tools of the ToolBus speak: every value and symbol is written once.

Values stand in prefix order, each as a header byte, what belongs to its kind, the values in it, and then, if the
header says so, its annotations as one list:

    header   0x80  a value that was there before: its number follows
             0x40  APPL: a symbol that was there before: its number follows
             0x20  APPL: the name is quoted (not said again with 0x40)
             0x10  annotations follow the values in it
             0x0f  the kind

    kind  1  APPL         arity, name length, name        then the arguments; strings are quoted names of arity 0,
                                                          truth values the names `true` and `false`
          2  INT          varint of the 32 bits           two's complement: -1 takes five bytes
          3  REAL         8 bytes, little-endian
          4  LIST         size                            then the elements
          5  PLACEHOLDER                                  then the type
          6  BLOB         length, bytes
          8  LONG         8 bytes, little-endian          integers beyond 32 bits
          9  BIG          length, bytes                   integers beyond 64 bits: two's complement, little-endian,
                                                          as few bytes as do. Ours: no other library reads it

Counts, lengths and numbers are varints: seven bits a byte, the lowest first, 0x80 where more follow, at most 32 bits.
Values and symbols are numbered separately, from 0 on, as their headers appear; a value that was written as a number
gets none.

Three forms of it. *Flat*: the bytes of one value, for frames that have a length anyway. *Blocks*, for streams: pieces
of at most 65,536 bytes, each behind two bytes with its length, little-endian, 0 for 65,536; only names, blobs and big
integers go on in the next block. *Files* are blocks behind a `?`.

Names are UTF-8; ToolBus-NG takes them for Latin-1 where its platform does, so `encoding` can be that.

A reader trusts nothing: it sets nothing aside for a count or length before the bytes are there, a number must be of a
value that is whole (so a value cannot be in itself), and its stack is its own. What it makes of a byte is at most
about a hundred times as large.

Measured (one core of a small, busy machine): strings and blobs of 5 MB are read at 1.4 to 3.4 GB/s. They are written
as fast as memory is copied, a string twice: 15 GB/s where the memory is there, 0.7 GB/s where the system has to give it
first; `encode_pieces` saves the second copy. Small terms take 1 to 2 us a node written and 2 to 3 us read.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

from echoic.errors import EncodeError, LimitExceededError, MalformedTermError
from echoic.terms.saf_decoder import (
    ANNOTATED,
    APPL,
    BIG,
    BLOB,
    BYTES_MAX,
    INT,
    LIST,
    LONG,
    PLACEHOLDER,
    QUOTED,
    REAL,
    SYMBOL,
    Buffer,
    Decoder,
    Encoding,
)
from echoic.terms.term import REAL as REAL_BYTES
from echoic.terms.term import Annotated, Placeholder, Term, TermList, Value, identity

__all__ = ["BlockReader", "decode_file", "decode_saf", "encode_blocks", "encode_file", "encode_pieces", "encode_saf"]

BLOCK_BYTES_MAX: Final = 1 << 16
BLOCK_BYTES_MIN: Final = 128  # what is not cut fits into it
FILE_MARK: Final = b"?"

_SHORT_MAX: Final = 64  # a name up to this length is one piece with its header
_VARINTS: Final = tuple(bytes([number]) for number in range(128))

# Bytes stay in one block, a view may be cut.
Piece: TypeAlias = bytes | memoryview


def encode_saf(value: Value, *, encoding: Encoding = "utf-8") -> bytes:
    """Return a value in the flat form.

    Raises:
        EncodeError: A name or string cannot be written in this encoding, or there is a reference.
    """
    return b"".join(encode_pieces(value, encoding=encoding))


def decode_saf(data: Buffer, *, encoding: Encoding = "utf-8", bytes_max: int = BYTES_MAX) -> Value:
    """Return the value that bytes in the flat form are.

    Raises:
        MalformedTermError: They are none, or there are more behind it.
        LimitExceededError: They are more than `bytes_max`.
    """
    decoder = Decoder(encoding, bytes_max)
    view = memoryview(data)
    used = decoder.feed(view)
    if not decoder.complete:
        raise MalformedTermError(f"a term of more than {len(view)} bytes is cut off")
    if used != len(view):
        raise MalformedTermError(f"{len(view) - used} bytes behind a term of {used}")
    return decoder.value


def encode_pieces(value: Value, *, encoding: Encoding = "utf-8") -> list[Piece]:
    """Return a value in the flat form, in pieces: large blobs are views of the blobs themselves.

    Raises:
        EncodeError: A name or string cannot be written in this encoding, or there is a reference.
    """
    return Encoder(encoding).encode(value)


def encode_blocks(
    value: Value, *, encoding: Encoding = "utf-8", block_bytes_max: int = BLOCK_BYTES_MAX
) -> Iterator[bytes]:
    """Yield a value in blocks, each with its length before it.

    Raises:
        EncodeError: A name or string cannot be written in this encoding, there is a reference, or blocks cannot be that
            large or small.
    """
    if not BLOCK_BYTES_MIN <= block_bytes_max <= BLOCK_BYTES_MAX:
        raise EncodeError(f"blocks of {block_bytes_max} bytes, limits are {BLOCK_BYTES_MIN} and {BLOCK_BYTES_MAX}")
    block: list[Piece] = []
    room = block_bytes_max
    for piece in encode_pieces(value, encoding=encoding):
        if len(piece) <= room:
            block.append(piece)
            room -= len(piece)
            continue
        at = 0
        while at < len(piece):
            if not room or isinstance(piece, bytes):
                yield _block(block, block_bytes_max - room)
                block, room = [], block_bytes_max
            block.append(piece[at : at + room])
            at += len(block[-1])
            room -= len(block[-1])
    yield _block(block, block_bytes_max - room)


def encode_file(value: Value, *, encoding: Encoding = "utf-8") -> bytes:
    """Return a value as the content of a file.

    Raises:
        EncodeError: A name or string cannot be written in this encoding, or there is a reference.
    """
    return FILE_MARK + b"".join(encode_blocks(value, encoding=encoding))


def decode_file(data: Buffer, *, encoding: Encoding = "utf-8", bytes_max: int = BYTES_MAX) -> Value:
    """Return the value that the content of a file is.

    Raises:
        MalformedTermError: It is none, or there are bytes behind it.
        LimitExceededError: The value takes more than `bytes_max`.
    """
    view = memoryview(data)
    if bytes(view[:1]) != FILE_MARK:
        raise MalformedTermError("a file with a term begins with `?`")
    reader = BlockReader(encoding=encoding, bytes_max=bytes_max)
    used = reader.receive(view[1:]) + 1
    if not reader.complete:
        raise MalformedTermError(f"a file with a term is cut off at byte {len(view)}")
    if used != len(view):
        raise MalformedTermError(f"{len(view) - used} bytes behind a term in a file")
    return reader.value


class BlockReader:
    """Reads one value from blocks that arrive in pieces of any size."""

    def __init__(self, *, encoding: Encoding = "utf-8", bytes_max: int = BYTES_MAX) -> None:
        self._decoder = Decoder(encoding, bytes_max)
        self._part = bytearray()  # of a block and the length before it

    @property
    def complete(self) -> bool:
        """Whether the value is there."""
        return self._decoder.complete

    @property
    def value(self) -> Value:
        """The value, when it is complete."""
        return self._decoder.value

    def receive(self, data: Buffer) -> int:
        """Read on, and return how many of the bytes belong to the value: what is behind them is of something else.

        Raises:
            MalformedTermError: This is not a value in blocks.
            LimitExceededError: It takes more than `bytes_max`.
        """
        view = memoryview(data)
        at = 0
        while at < len(view) and not self.complete:
            at += self._receive_block(view[at:])
        return at

    def _receive_block(self, view: memoryview) -> int:
        """Take what belongs to one block, and return how much it was."""
        head = bytes(self._part[:2]) + bytes(view[: max(0, 2 - len(self._part))])
        if len(head) < 2:
            self._part += view
            return len(view)
        size = 2 + (int.from_bytes(head, "little") or BLOCK_BYTES_MAX)
        wanted = size - len(self._part)
        if len(view) < wanted:
            self._part += view
            return len(view)
        block = view[:wanted]
        if self._part:
            block = memoryview(bytes(self._part) + block)
            self._part.clear()
        used = self._decoder.feed(block[2:])
        if used != size - 2:
            raise MalformedTermError(f"{size - 2 - used} bytes behind a term in its last block")
        return wanted


class Encoder:
    """One writing of a value."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding: Encoding = encoding
        self._symbols: dict[tuple[str, int, bool], int] = {}
        self._pieces: list[Piece] = []

    def encode(self, value: Value) -> list[Piece]:
        """Return the value in pieces."""
        numbers: dict[object, int] = {}
        add = self._pieces.append
        waiting: list[Iterator[Value]] = [iter((value,))]
        while waiting:
            for current in waiting[-1]:
                key = identity(current)
                number = numbers.get(key)
                if number is not None:
                    add(b"\x80" + _varint(number))
                    continue
                numbers[key] = len(numbers)
                if isinstance(current, Annotated):
                    inner = (*self._begin(current.value, ANNOTATED), TermList(*current.annotations))
                else:
                    inner = self._begin(current, 0)
                if inner:
                    waiting.append(iter(inner))
                    break
            else:
                waiting.pop()
        return self._pieces

    def _begin(self, value: Value, flags: int) -> tuple[Value, ...]:
        """Write what a value without annotations begins with, and return the values in it."""
        match value:
            case Term():
                self._symbol(value.name, len(value.args), value.quoted, flags)
                return value.args
            case str():
                self._symbol(value, 0, True, flags)
            case bool():
                self._symbol("true" if value else "false", 0, False, flags)
            case int():
                self._integer(value, flags)
            case TermList():
                self._pieces.append(_VARINTS[LIST | flags] + _varint(len(value.elements)))
                return value.elements
            case float():
                self._pieces.append(_VARINTS[REAL | flags] + REAL_BYTES.pack(value))
            case bytes():
                self._body(_VARINTS[BLOB | flags] + _varint(len(value)), value)
            case Placeholder():
                self._pieces.append(_VARINTS[PLACEHOLDER | flags])
                return (value.type,)
            case _:
                raise EncodeError(f"`{type(value).__name__}` is not written as SAF")
        return ()

    def _symbol(self, name: str, arity: int, quoted: bool, flags: int) -> None:
        symbol = (name, arity, quoted)
        number = self._symbols.get(symbol)
        if number is not None:
            self._pieces.append(_VARINTS[APPL | SYMBOL | flags] + _varint(number))
            return
        self._symbols[symbol] = len(self._symbols)
        try:
            body = name.encode(self._encoding)
        except UnicodeEncodeError as error:
            raise EncodeError(f"`{name[error.start]!a}` of a name or string has no {self._encoding}") from error
        header = APPL | QUOTED | flags if quoted else APPL | flags
        self._body(_VARINTS[header] + _varint(arity) + _varint(len(body)), body)

    def _integer(self, number: int, flags: int) -> None:
        if -(1 << 31) <= number < 1 << 31:
            self._pieces.append(_VARINTS[INT | flags] + _varint(number & 0xFFFFFFFF))
        elif -(1 << 63) <= number < 1 << 63:
            self._pieces.append(_VARINTS[LONG | flags] + number.to_bytes(8, "little", signed=True))
        else:
            body = number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "little", signed=True)
            self._body(_VARINTS[BIG | flags] + _varint(len(body)), body)

    def _body(self, head: bytes, body: bytes) -> None:
        if len(body) <= _SHORT_MAX:
            self._pieces.append(head + body)
        else:
            self._pieces += (head, memoryview(body))


def _varint(number: int) -> bytes:
    if number < 0x80:
        return _VARINTS[number]
    if number >> 32:
        raise LimitExceededError(f"a count or length of {number}, limit is {0xFFFFFFFF}")
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def _block(pieces: list[Piece], size: int) -> bytes:
    return b"".join(((size & 0xFFFF).to_bytes(2, "little"), *pieces))
