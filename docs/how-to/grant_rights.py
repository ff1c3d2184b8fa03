"""The program of the how-to "Grant rights"."""

import os
import tempfile
from pathlib import Path

import echoic
from echoic.trust.authority import Authority

RULES = """
allow exchange   publish,admin      trades*
allow desk       subscribe,derive   trades
allow press      subscribe          trades.cheap
allow auditor    subscribe,derive   echoic/audit
"""


@echoic.event
class Trade:
    symbol: str
    price: float


with tempfile.TemporaryDirectory() as folder:
    os.environ["ECHOIC_HOME"] = folder  # instead of ~/.config/echoic, for this example
    authority = Authority.create()  # as `echoic keys init` does
    for name in ("exchange", "desk", "press", "auditor"):
        authority.issue(name)  # as `echoic keys issue NAME` does
    rights = Path(folder, "rights")
    rights.touch(0o600)
    rights.write_text(RULES)

    def start(name: str) -> echoic.Hub:
        return echoic.Hub(identity=echoic.Identity.named(name), rights=rights)

    with start("exchange") as exchange, start("desk") as desk, start("press") as press, start("auditor") as auditor:
        trades = exchange.create("trades", Trade)
        trail = auditor.open(f"echoic://{exchange.address}/echoic/audit")
        refused = iter(trail.derive("{ return !input.allowed; }").events(timeout=10))

        cheap = desk.open(trades.id, Trade).derive("{ return input.price < 75.5; }", name="trades.cheap")
        press.open(cheap.id, Trade).subscribe(lambda trade: print("press:", trade))
        source = trades.source()
        for price in (75.0, 76.0):
            source.submit_sync(Trade("IBM", price))

        try:
            press.open(trades.id, Trade)
        except echoic.EchoicError as error:
            print(error)
        try:
            desk.open(trades.id, Trade).source()
        except echoic.EchoicError as error:
            print(str(error).partition(" - ")[0])
        for _ in range(2):
            record = next(refused)
            print("audit:", record.who, record.right, record.channel, record.reason)
