"""Edge: touches processes and sockets. What do eager handlers cost, and what do they save?"""

from echoic.testing.bench.eager.question import PARTS, measure

__all__ = ["PARTS", "measure"]
