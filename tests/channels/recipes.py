"""Trades, and recipes that derive from them, for the tests of derived channels."""

from echoic import event, float64, int64
from echoic.channels import Recipe, Step
from echoic.formats import Format
from echoic.wire import Batch

SECOND = 1_000_000_000


@event
class Trade:
    number: int64
    price: float64


@event
class Mean:
    mean: float64


@event
class Limits:
    low: float64


TRADE, MEAN, LIMITS = (Format.of(kind) for kind in (Trade, Mean, Limits))
LOW = bytes(Batch.of([Limits(5.0)], Limits).records)
HIGH = bytes(Batch.of([Limits(9.0)], Limits).records)


def recipe(parent: str = "trades", code: str = "input.price < 5.0", **options: object) -> Recipe:
    return Recipe(parent, code, **options)


def wish(parent: str = "trades", code: str = "input.price < 5.0", *, name: str = "", **options: object) -> Step:
    values = options.pop("values", b"")
    return Step("", name, recipe(parent, code, **options), values)
