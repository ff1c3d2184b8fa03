"""Journals that stay open in a Python process of Spark, which is used again for one small batch after the other.

Opening one takes some system calls, or some round trips to its recorder, which is more than a batch of a few events
costs. So a process keeps the last that were used, with the hub that those over a link need; one that has been closed,
or that belongs to a process from which this one was forked, is not used again.

A folder may be removed and recorded anew while a journal in it is kept here. So whoever begins a query asks for it as
it is at this moment (`reopened`), and executors do so when they find another one than the driver has told them of.
"""

import threading
from typing import Final, TypeAlias

import msgspec

from echoic.hub import Hub
from echoic.recorder import Journal
from echoic.spark.options import SourceOptions
from echoic.spark.worker_hub import worker_hub

__all__ = ["open_journal", "reopened"]

JOURNALS_MAX: Final = 16

Key: TypeAlias = tuple[str, str, tuple[str, ...]]


class Kept(msgspec.Struct, frozen=True):
    """A journal that is open, and the hub over which it is read, None for one that is read from its files."""

    journal: Journal
    hub: Hub | None


_kept: Final[dict[Key, Kept]] = {}
_lock: Final = threading.Lock()


def open_journal(options: SourceOptions) -> Journal:
    """Return the journal that options name, which stays open in this process.

    Raises:
        JournalError: There is none, or it cannot be read.
        EchoicError: The channel or its recorder cannot be reached.
    """
    hub = None if options.journal else worker_hub(options.names)
    with _lock:
        known = _kept.get(_key(options))
    return known.journal if known is not None and known.hub is hub else reopened(options)


def reopened(options: SourceOptions) -> Journal:
    """Return the journal that options name at this moment; it is kept in place of one that was.

    Raises:
        JournalError: There is none, or it cannot be read.
        EchoicError: The channel or its recorder cannot be reached.
    """
    hub = None if options.journal else worker_hub(options.names)
    made = Journal(options.journal, options.channel) if hub is None else hub.open(options.channel).journal()
    with _lock:
        former = [_kept.pop(_key(options), None)]
        while len(_kept) >= JOURNALS_MAX:
            former.append(_kept.pop(next(iter(_kept))))
        _kept[_key(options)] = Kept(made, hub)
    for each in former:
        if each is not None:
            each.journal.close()
    return made


def _key(options: SourceOptions) -> Key:
    return options.journal, options.channel, options.names
