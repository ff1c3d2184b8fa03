"""Edge: runs in sources. Which modulators need nobody write himself?"""

from echoic.eager.ready.clustering import Cluster, Uncluster
from echoic.eager.ready.compression import Compress, Compressed, Decompress
from echoic.eager.ready.difference import Difference, DifferenceByKey
from echoic.eager.ready.encryption import Decrypt, Encrypt, Encrypted
from echoic.eager.ready.every import Every
from echoic.eager.ready.latest import Latest
from echoic.eager.ready.priority import Priority
from echoic.eager.ready.rate_limit import RateLimit, RateLimitByTime
from echoic.eager.ready.window import Window

__all__ = [
    "Cluster",
    "Compress",
    "Compressed",
    "Decompress",
    "Decrypt",
    "Difference",
    "DifferenceByKey",
    "Encrypt",
    "Encrypted",
    "Every",
    "Latest",
    "Priority",
    "RateLimit",
    "RateLimitByTime",
    "Uncluster",
    "Window",
]
