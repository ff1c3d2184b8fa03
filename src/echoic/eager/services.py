"""Services: what a modulator may use of the place where it runs (JECho, section 4.1, resource control interface).

A modulator names the services it `requires`. Whoever runs it grants them, the hub first and else the delegate of the
source, or it is not installed. What is granted is a *capability*: not the object, but its public face.

    self.services.clock.now()          a public method, called
    self.services.grid.layers          a public attribute, if it is a plain value
    self.services.grid._data           refused: not public
    self.services.files                refused: never required, therefore never granted

The face is the same in process and in a confined process, where each use is a message to the hub and back; only there,
arguments and results must be plain: None, bool, int, float, str, bytes, and lists and dictionaries of them. In process
the face is a matter of order and not of security, because Python can look behind any object; code that is not trusted
is not run there.
"""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from echoic.errors import LocalError, RefusedError

__all__ = ["Capability", "Face", "Grant", "Services", "grant_all", "plain"]

DEPTH_MAX: Final = 16
SCALARS: Final = (bool, int, float, str, bytes)
INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**64 - 1


class Grant(Protocol):
    """Who has services to give."""

    def __call__(self, service: str, source: int) -> object | None:
        """Return the service for a source, None if there is none of this name."""
        ...


class Capability(Protocol):
    """A service as a modulator has it."""

    def __getattr__(self, name: str) -> object:
        """Return a method or a plain value.

        Raises:
            RefusedError: There is no such thing, or it is not for others.
        """
        ...


class Face:
    """The public face of an object of this process."""

    __slots__ = ("_name", "_target")

    def __init__(self, name: str, target: object) -> None:
        self._name = name
        self._target = target

    def __getattr__(self, name: str) -> object:
        """Return a public method, or the plain value of a public attribute.

        Raises:
            RefusedError: There is no such thing, or it is not for others.
        """
        found = self._look(name)
        if callable(found):
            return _caller(found)
        return plain(found, f"`{self._name}.{name}`")

    def __repr__(self) -> str:
        return f"<service {self._name}>"

    def _look(self, name: str) -> object:
        if name.startswith("_"):
            raise RefusedError(f"`{name}` is not public - at service `{self._name}`")
        target = self._target
        missing = object()
        found = target.get(name, missing) if isinstance(target, Mapping) else getattr(target, name, missing)
        if found is missing:
            raise RefusedError(f"there is no `{name}` - at service `{self._name}`")
        return found


def _caller(function: Callable[..., object]) -> Callable[..., object]:
    """Return a function that calls another one and shows nothing of it."""

    def call(*arguments: object, **named: object) -> object:
        return function(*arguments, **named)

    return call


class Services:
    """The services that were granted, by name.

    `self.services.clock` in a modulator that `requires` it.
    """

    __slots__ = ("_granted",)

    def __init__(self, granted: Mapping[str, Capability]) -> None:
        self._granted: Final = dict(granted)

    def __getattr__(self, name: str) -> Capability:
        """Return a service.

        Raises:
            RefusedError: It was not granted.
        """
        if name.startswith("__"):
            raise AttributeError(name)  # asked by Python itself, on the way to copying or showing
        found = self._granted.get(name)
        if found is None:
            had = ", ".join(f"`{known}`" for known in sorted(self._granted)) or "none"
            raise RefusedError(f"the service `{name}` was not granted, those that were: {had}; name it in `requires`")
        return found

    def __dir__(self) -> list[str]:
        return sorted(self._granted)

    def __repr__(self) -> str:
        return f"<services {', '.join(sorted(self._granted)) or 'none'}>"


def grant_all(requires: tuple[str, ...], *, source: int, grant: Grant, modulator: str, hub: str) -> Services:
    """Return the services that a modulator requires, for one of its sources.

    Raises:
        RefusedError: One of them is granted neither by the hub nor by the source.
    """
    granted: dict[str, Capability] = {}
    for name in requires:
        target = grant(name, source)
        if target is None:
            raise RefusedError(
                f"the modulator `{modulator}` requires the service `{name}`, which neither the hub at {hub} nor its "
                f"source {source} grants"
            )
        granted[name] = Face(name, target)
    return Services(granted)


def plain(value: object, place: str, depth: int = 0) -> object:
    """Return a value that can go over a pipe: scalars, and lists and dictionaries of them.

    Raises:
        LocalError: It is none.
    """
    if depth > DEPTH_MAX:
        raise LocalError(f"a plain value is nested more than {DEPTH_MAX} deep - at {place}")
    if value is None or type(value) in SCALARS:
        if type(value) is int and not INTEGER_MIN <= value <= INTEGER_MAX:
            raise LocalError(f"an integer needs more than 64 bits - at {place}")
        return value
    if isinstance(value, list | tuple):
        return [plain(item, place, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_key(key, place): plain(item, place, depth + 1) for key, item in value.items()}
    raise LocalError(
        f"expected None, bool, int, float, str, bytes, or lists and dictionaries of them, got "
        f"`{type(value).__name__}` - at {place}"
    )


def _key(key: object, place: str) -> object:
    if type(key) not in SCALARS:
        raise LocalError(f"expected a text or number as key, got `{type(key).__name__}` - at {place}")
    return plain(key, place)
