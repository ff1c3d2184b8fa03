"""The program of the tutorial page "Agree on one order"."""

import tempfile
import time
from pathlib import Path

import echoic
from echoic.replicas import ReplicatedLog


@echoic.event
class Transfer:
    account: str
    amount: int


with tempfile.TemporaryDirectory() as folder:
    # 1. Three members; usually each in a machine of its own.
    hubs = {me: echoic.Hub(name=me) for me in ("n1", "n2", "n3")}
    peers = {me: hub.address for me, hub in hubs.items()}
    logs = {me: ReplicatedLog("ledger", Transfer, f"sqlite:{Path(folder, me)}.db") for me in hubs}
    ledgers = {}
    for me, hub in hubs.items():
        ledgers[me] = hub.join("ledger", Transfer, me=me, peers=peers, state=logs[me])
        ledgers[me].subscribe(logs[me].deliver, batch=True)
    view = ledgers["n1"].wait_for(lambda view: len(view.members) == 3)
    print("members:", *view.members)

    # 2. Each submits; all are given the same in the same order.
    for step in range(100):
        for ledger in ledgers.values():
            ledger.submit(Transfer("savings", step))
    for ledger in ledgers.values():
        ledger.drain()  # until what was submitted here has been delivered here
    stamp = ledgers["n2"].submit_sync(Transfer("savings", 1_000))  # until it is safe
    print("the last one is number", stamp.sequence, "by", stamp.sender)

    # 3. One ends; the others go on.
    hubs["n3"].close()
    ledgers["n1"].wait_for(lambda view: len(view.members) == 2)
    stamp = ledgers["n1"].submit_sync(Transfer("savings", 2_000))
    print("number", stamp.sequence, "was ordered among", *stamp.view.members)

    # 4. What they were told is in a table of each, row by row the same.
    for me in ("n1", "n2"):
        while logs[me].applied() < stamp.sequence:
            time.sleep(0.001)
    one, two = ([(row.sequence, row.event.amount) for row in logs[me].read()] for me in ("n1", "n2"))
    print(len(one), "rows, the same in both:", one == two, "and the balance is", sum(amount for _, amount in one))
    for closing in (*hubs.values(), *logs.values()):
        closing.close()
