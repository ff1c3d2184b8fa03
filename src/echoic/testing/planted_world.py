"""Mistakes to be planted in the whole and found by a few worlds: a test of the tests.

Each is one thing that the product must do, and does not. Whether a world finds it says whether the rule that it breaks
is looked at where all parts run together.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple

from echoic.channels import attaching
from echoic.channels.manager import Manager
from echoic.channels.session import Session as HubSession
from echoic.testing.simulated_disk import SimulatedFile
from echoic.testing.world.group import DiskStorage
from echoic.toolbus.references.registry import Registry, Released
from echoic.toolbus.sessions import Session as ToolSession

__all__ = ["BUGS", "planted"]


class Bug(NamedTuple):
    """Where a mistake is planted, and what is there then."""

    place: object
    name: str
    wrong: Callable[..., object]


def _does_nothing(*_: object) -> None:
    """Do nothing where something must be done."""


def _says_nothing_again(self: ToolSession, count: int) -> tuple[object, ...]:
    self.seen(count)
    return ()


def _forgets_the_last(self: ToolSession, count: int) -> tuple[object, ...]:
    return _again(self, count)[:-1]


def _gives_all_up(self: Registry) -> tuple[Released, ...]:
    for owner in {entry.owner for entry in self.entries()}:
        for reference in self.of(owner):
            self._over[owner, reference.variable] = None
    return _finished(self)


_again: Final = ToolSession.again
_finished: Final = Registry.finished

BUGS: Final[Mapping[str, Bug]] = {
    "a session between hubs that sends nothing again": Bug(HubSession, "resume", HubSession.told),
    "a hub that sends a recorder nothing again": Bug(attaching, "resend", _does_nothing),
    "a recorder that does not wait for its disk": Bug(SimulatedFile, "sync", _does_nothing),
    "a channel that is not registered again": Bug(Manager, "register_again", _does_nothing),
    "a member that does not wait for its disk": Bug(DiskStorage, "sync", _does_nothing),
    "a tool and a bus that say nothing again": Bug(ToolSession, "again", _says_nothing_again),
    "a tool and a bus that do not say the last thing again": Bug(ToolSession, "again", _forgets_the_last),
    "a bus that gives values up that it refers to": Bug(Registry, "finished", _gives_all_up),
}
"""By what is wrong."""


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Plant a mistake as long as the context lasts."""
    bug = BUGS[name]
    right = getattr(bug.place, bug.name)
    setattr(bug.place, bug.name, bug.wrong)
    try:
        yield
    finally:
        setattr(bug.place, bug.name, right)
