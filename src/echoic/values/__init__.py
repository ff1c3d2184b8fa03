"""Edge: touches files and shared memory. Where does a process keep its large values, and for how long?"""

from echoic.values.incoming import Incoming
from echoic.values.pool import ConstantPool, PoolStatistics, Variable
from echoic.values.sharing import SharedPlace, open_shared
from echoic.values.store import ValueStore
from echoic.values.stored import Stored, StoreStatistics

__all__ = [
    "ConstantPool",
    "Incoming",
    "PoolStatistics",
    "SharedPlace",
    "StoreStatistics",
    "Stored",
    "ValueStore",
    "Variable",
    "open_shared",
]
