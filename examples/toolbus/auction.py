"""The tools of `auction.tb`: `python auction.py auctioneer` and `python auction.py bidder NAME PURSE`."""

import sys

from echoic.toolbus import Term, Tool, do, event

LOTS = [("a globe", 20), ("a teapot", 30), ("a violin", 100), ("an umbrella", 200)]


class Auctioneer(Tool, name="auctioneer"):
    """Offers one lot after the other."""

    @event
    def lot(self, name: str, price: int) -> Term: ...

    @event
    def closed(self, taken: int) -> None: ...

    async def main(self) -> None:
        taken = 0
        for name, price in LOTS:
            sold = await self.event("lot", name, price)  # goes on when it is sold
            buyer, paid = sold.args
            if buyer:
                taken += paid
        await self.event("closed", taken)


class Bidder(Tool, name="bidder"):
    """Bids a little more than others, as long as there is money, and goes home with what it gets."""

    def __init__(self) -> None:
        self.name, self.purse = sys.argv[2], int(sys.argv[3])

    @event
    def bid(self, lot: str, amount: int) -> None: ...

    @do
    def price(self, lot: str, price: int, leader: str) -> None:
        more = price + max(10, price // 5)
        if leader != self.name and more <= self.purse:
            self.event("bid", lot, more)

    @do
    def sold(self, lot: str, price: int, buyer: str) -> None:
        if buyer == self.name:
            print(f"{lot} is mine, and {self.purse - price} are left for a cab")
            self.purse = 0
            self.disconnect()


if __name__ == "__main__":
    {"auctioneer": Auctioneer, "bidder": Bidder}[sys.argv[1]].run()
