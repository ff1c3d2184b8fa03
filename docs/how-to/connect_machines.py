"""The program of the how-to "Connect machines"."""

import tempfile
from pathlib import Path

import echoic
from echoic.trust.authority import Authority


@echoic.event
class Trade:
    symbol: str
    price: float


with tempfile.TemporaryDirectory() as temporary:
    root = Path(temporary)  # ~/.config/echoic, if nothing else is said
    authority = Authority.create(root / "authority")  # echoic keys init
    for name in ("exchange", "desk"):
        authority.issue(name, ["127.0.0.1"])  # echoic keys issue NAME --host 127.0.0.1

    def joins(name: str) -> echoic.Hub:
        """Return a hub of that name; "127.0.0.1:0" stands for the address of a machine, such as "192.168.1.5:7401"."""
        return echoic.Hub("127.0.0.1:0", name=name, identity=echoic.Identity.named(name, root))

    with joins("exchange") as exchange:
        trades = exchange.create("trades", Trade)
        with joins("desk") as desk:
            desk.open(trades.id, Trade).subscribe(print)
            trades.source().submit_sync(Trade("IBM", 75.5))

        with echoic.Hub("127.0.0.1:0", name="stranger") as stranger:  # without a certificate
            try:
                stranger.open(trades.id, Trade)
            except echoic.EchoicError as error:
                print("a stranger:", type(error).__name__)

        authority.revoke("desk")  # echoic keys revoke desk; nothing is started again
        with joins("desk") as desk:
            try:
                desk.open(trades.id, Trade)
            except echoic.EchoicError as error:
                print("the desk:", str(error).rpartition(": ")[2])
