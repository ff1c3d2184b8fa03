"""Event types, programs and records for the tests of native kernels."""

import random
from typing import Any

import numpy

import echoic
from echoic.ecode.analysis import analyse
from echoic.ecode.compiling import check
from echoic.ecode.kernel import Outcome
from echoic.ecode.native import NativeKernel, compile_native
from echoic.ecode.native.routine import Layout
from echoic.ecode.program import Program, Signature
from echoic.formats import Array, Format
from echoic.wire import Batch


@echoic.event
class Cell:
    speed: echoic.float32
    label: str


@echoic.event
class Reading:
    name: str
    data: bytes
    small: echoic.int8
    medium: echoic.uint16
    wide: int
    ratio: float
    fraction: echoic.float32
    alarm: bool
    code: Array[echoic.char, 6]
    grid: Array[echoic.int16, 2, 3]
    n: echoic.uint32
    samples: Array[echoic.int32, "n"]
    cells: Array[Cell, ...]


@echoic.event
class Made:
    total: float
    name: str
    data: bytes
    n: echoic.uint16
    values: Array[float, "n"]
    free: Array[echoic.int32, ...]
    code: Array[echoic.char, 6]


@echoic.event
class Inner:
    weight: float


@echoic.event
class Listed:
    name: str
    values: Array[float, ...]
    inner: Inner
    tags: Array[str, ...]
    inners: Array[Inner, 2]


@echoic.event
class Length:
    name: str
    total: float


SUMMARY = """
{
    int i, j;
    double total = input.small + input.medium * 2 + input.wide * 3 + input.ratio + input.fraction + input.alarm;
    for (i = 0; i < 2; i++)
        for (j = 0; j < 3; j++)
            total += input.grid[i][j] * (i + 2 * j);
    for (i = 0; i < length(input.samples); i++)
        total += input.samples[i];
    for (i = 0; i < length(input.cells); i++)
        if (input.cells[i].label == "hot" || strlen(input.cells[i].label) == 1)
            total += input.cells[i].speed;
    output.total = total;
    output.name = input.name;
    output.data = input.data;
    output.code = input.code;
    output.n = strlen(input.name);
    for (i = 0; i < strlen(input.name); i++)
        output.values[i] = input.name[i];
    resize(output.free, 2);
    output.free[1] = input.wide;
    return 1;
}
"""


LISTED_TRANSFORM = """
{
    int i;
    for (i = 0; i < length(input.values); i++) output.total += input.values[i] * input.inner.weight;
    output.name = input.name;
    return input.name != "none" && strlen(input.name) < 9;
}
"""


TRADE = Format.of(numpy.dtype([("price", "f8"), ("volume", "i4"), ("wind", "f4", (3,)), ("flag", "?"), ("code", "S4")]))
TRADE_FILTER = """
{
    int i;
    float sum = 0;
    for (i = 0; i < 3; i++) sum += input.wind[i];
    return (input.flag && input.price > sum && input.code != "ab") ? input.volume : 0;
}
"""


def readings(count: int) -> list[Reading]:
    chance = random.Random(7)
    labels = ("hot", "cold", "x", "")
    return [
        Reading(
            name="n" * chance.randint(0, 12),
            data=chance.randbytes(chance.randint(0, 9)),
            small=chance.randint(-128, 127),
            medium=chance.randint(0, 65535),
            wide=chance.randint(-(1 << 50), 1 << 50),
            ratio=chance.uniform(-5, 5),
            fraction=0.25 * chance.randint(-9, 9),
            alarm=chance.random() < 0.5,
            code=b"abcdef"[: chance.randint(0, 6)],
            grid=numpy.array([[chance.randint(-9, 9) for _ in range(3)] for _ in range(2)], numpy.int16),
            n=(length := chance.randint(0, 5)),
            samples=numpy.array([chance.randint(-99, 99) for _ in range(length)], numpy.int32),
            cells=[Cell(speed=chance.randint(0, 9), label=chance.choice(labels)) for _ in range(chance.randint(0, 4))],
        )
        for _ in range(count)
    ]


def trades(count: int) -> numpy.ndarray:
    chance = numpy.random.default_rng(3)
    array = numpy.zeros(count, TRADE.dtype)
    array["price"] = chance.uniform(0, 3, count)
    array["volume"] = chance.integers(0, 3, count)
    array["wind"] = chance.uniform(0, 1, (count, 3))
    array["flag"] = chance.integers(0, 2, count)
    array["code"] = chance.choice([b"ab", b"abcd", b"a", b""], count)
    return array


def program_of(source: str, signature: Signature) -> Program:
    return check(source, signature)


def kernel_of(source: str, signature: Signature, *, layout: Layout = "rows") -> NativeKernel:
    program = program_of(source, signature)
    return compile_native(program, analyse(program), layout=layout)


def bounds_of(batch: Batch) -> bytes | None:
    return numpy.asarray(batch.bounds, numpy.uint32).tobytes() if batch.format.variable else None


def run(kernel: NativeKernel, batch: Batch, **more: Any) -> Outcome:
    return kernel.run(batch.records, bounds_of(batch), len(batch), b"", kernel.program.initial_statics(), **more)
