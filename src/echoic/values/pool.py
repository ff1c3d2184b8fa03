"""Constant pool: a value that is in this process already is not fetched again.

Values that tools exchange are constants, so two copies of one value in one process are one too many. The pool knows
the values of a process by their keys (who owns it, which variable, which part). It does not keep them: a value is in
the pool for as long as somebody else uses it, and goes without anybody's doing when nobody does. That is the thesis'
weak pool. Strings and bytes cannot be weakly referenced in Python, so it is their holder that is, a `Variable`;
whoever uses the value keeps the holder.

    find(key) ----> weak table: key -> Variable(key, value, size) <---- whoever uses the value
                                           ^
                    least recently used: strong, `budget_bytes` in all; none by default

With a budget, the pool is soft: what was used last is kept although nobody uses it, so that a value that is said over
and over travels once. Java lets its collector decide when soft references go, by how much memory is left; Python's has
no such thing, so a number of bytes decides.

The first one under a key stays: of two threads that fetched the same value, the second gets the first one's, and the
value is one object for all. Variables that leave the pool are let go of outside of its lock, for a large term takes
long to take apart.
"""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

import msgspec

__all__ = ["ConstantPool", "PoolStatistics", "Variable"]

T = TypeVar("T")
CHARGE_BYTES_MIN: Final = 256  # what even an empty value takes


class Variable(Generic[T]):
    """A value with its name; what a pool holds on to, weakly."""

    __slots__ = ("__weakref__", "key", "size", "value")

    def __init__(self, key: Hashable, value: T, size: int) -> None:
        """Name a value that has `size` bytes."""
        self.key = key
        self.value = value
        self.size = size

    def __repr__(self) -> str:
        return f"Variable({self.key!r}, {self.size} bytes)"


class PoolStatistics(msgspec.Struct, frozen=True):
    """How a pool stands and what it was good for."""

    values: int
    """How many are alive, whoever keeps them."""
    kept: int
    """How many of them the pool itself keeps."""
    kept_bytes: int
    hits: int
    misses: int
    hit_bytes: int
    """How many bytes were not fetched because they were here."""


class ConstantPool(Generic[T]):
    """The constants of a process by their keys. Threads may share it."""

    def __init__(self, budget_bytes: int = 0) -> None:
        """Make an empty pool.

        Args:
            budget_bytes: How many bytes of values it keeps that nobody uses, those used last; 0 makes it weak.
        """
        self._budget_bytes = budget_bytes
        self._variables: weakref.WeakValueDictionary[Hashable, Variable[T]] = weakref.WeakValueDictionary()
        # Invariant: the charges in `_kept` are `_kept_bytes` in all, which is at most the budget.
        self._kept: OrderedDict[Hashable, Variable[T]] = OrderedDict()
        self._kept_bytes = 0
        self._hits = self._misses = self._hit_bytes = 0
        self._lock = threading.Lock()

    def find(self, key: Hashable) -> Variable[T] | None:
        """Return the variable of this key, None when its value is not here; keep it as long as you need the value."""
        with self._lock:
            variable = self._variables.get(key)
            if variable is None:
                self._misses += 1
                return None
            self._hits += 1
            self._hit_bytes += variable.size
            parting = self._keep(variable)
        del parting
        return variable

    def add(self, variable: Variable[T]) -> Variable[T]:
        """Return the variable that is in the pool under this one's key: itself, unless another was first."""
        with self._lock:
            variable = self._variables.setdefault(variable.key, variable)
            parting = self._keep(variable)
        del parting
        return variable

    def forget(self, key: Hashable) -> None:
        """Do not find a value any more, as when its owner is gone and the name will mean another one."""
        with self._lock:
            parting = self._variables.pop(key, None)
            kept = self._kept.pop(key, None)
            if kept is not None:
                self._kept_bytes -= _charge(kept)
        del parting, kept

    def clear(self) -> None:
        """Forget all values."""
        with self._lock:
            parting = list(self._kept.values())
            self._variables.clear()
            self._kept.clear()
            self._kept_bytes = 0
        del parting

    def statistics(self) -> PoolStatistics:
        """Return how it stands."""
        with self._lock:
            return PoolStatistics(
                values=len(self._variables),
                kept=len(self._kept),
                kept_bytes=self._kept_bytes,
                hits=self._hits,
                misses=self._misses,
                hit_bytes=self._hit_bytes,
            )

    def _keep(self, variable: Variable[T]) -> list[Variable[T]]:
        """Keep a variable that was just used; return those that are not kept any more."""
        if _charge(variable) > self._budget_bytes:
            return []
        if variable.key in self._kept:
            self._kept.move_to_end(variable.key)
            return []
        self._kept[variable.key] = variable
        self._kept_bytes += _charge(variable)
        parting = []
        while self._kept_bytes > self._budget_bytes:
            _, least = self._kept.popitem(last=False)
            self._kept_bytes -= _charge(least)
            parting.append(least)
        return parting


def _charge(variable: Variable[T]) -> int:
    return max(variable.size, CHARGE_BYTES_MIN)
