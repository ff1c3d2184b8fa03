"""Edge: touches processes and sockets. How fast is an ordered group, and what does packing do for it?"""

from echoic.testing.bench.groups.cases import Case, Moment, Result, Source
from echoic.testing.bench.groups.replicas import measure, measure_all

__all__ = ["Case", "Moment", "Result", "Source", "measure", "measure_all"]
