"""Edge: touches files, processes and sockets. What does it cost to keep events, to read them and to replay them?"""

from echoic.testing.bench.journal.keepers import BATCH, Commit, Keeper, Wish
from echoic.testing.bench.journal.question import PARTS, measure

__all__ = ["BATCH", "PARTS", "Commit", "Keeper", "Wish", "measure"]
