"""Three versions of one type talk to each other: fields match by name."""

import echoic


@echoic.event
class TradeV1:
    symbol: str
    price: float


@echoic.event
class TradeV2:
    venue: str = "XNYS"  # new, and in front: the worst case of the paper's figure 5
    symbol: str = ""
    price: float = 0.0


@echoic.event
class TradeV3:
    symbol: str
    price: float
    trader: str  # new, and without a default


old = echoic.Batch.of([TradeV1("IBM", 75.5)])
new = echoic.Batch.of([TradeV2("XETR", "SAP", 120.0)])

print("an old event for a new sink: ", *old.to(TradeV2))
print("a new event for an old sink: ", *new.to(TradeV1))
print("V1 and V2 are", echoic.compatibility(TradeV1, TradeV2).level.value)

report = echoic.compatibility(TradeV1, TradeV3)
print("V1 and V3 are", report.level.value, "because", *report.backward_problems)
