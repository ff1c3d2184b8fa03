"""A hub may be reached under another name than the one it listens at."""

import echoic
from echoic.testing.samples import Trade


def test_a_hub_behind_every_address_tells_others_where_it_is_reached() -> None:
    with echoic.Hub("0.0.0.0:0", insecure=True, advertise="127.0.0.1") as here, echoic.Hub() as there:
        trades = here.create("trades", Trade)
        assert trades.id == f"echoic://{here.address}/trades"
        assert here.address.startswith("127.0.0.1:")
        seen: list[object] = []
        there.open(trades.id, Trade).subscribe(seen.append)
        trades.source().submit_sync(Trade("IBM", 75.5, 100), timeout=30)
        assert seen == [Trade("IBM", 75.5, 100)]
