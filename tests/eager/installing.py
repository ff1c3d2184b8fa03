"""What tests of running modulators share: parcels of them, and hubs that are nothing but a policy."""

import shutil
from collections.abc import Callable
from typing import Any

from echoic import event
from echoic.channels import Runner
from echoic.eager import Limits, Modulator, SharedObject, SharedReference, SigningKey, pack
from echoic.eager.install import install
from echoic.formats import Format
from echoic.wire import Batch

KEY = SigningKey.generate()
STRANGER = SigningKey.generate()
PARENT = "127.0.0.1:1/numbers"
PATIENT = Limits(seconds=20, load_seconds=20, start_seconds=60)
"""For what is not about time, on a machine that does other work."""
CONFINING = shutil.which("bwrap") is not None
"""Whether this machine has bubblewrap; `./run test` installs it."""


@event
class Number:
    value: int
    text: str = ""


@event
class Point:
    x: float
    y: float


def numbers(*values: int) -> Batch:
    return Batch.of([Number(value, str(value)) for value in values], Number)


def values(batch: Batch | None) -> list[int]:
    return [event.value for event in batch] if batch is not None else []


class NoSharedObjects:
    """A host that has none."""

    def copy(self, reference: SharedReference, cls: type[SharedObject]) -> Any:
        raise AssertionError(f"nobody should have asked for {reference}")


def grant_nothing(service: str, source: int) -> object | None:
    return None


def parcel_of(modulator: Modulator, *, key: SigningKey = KEY, declared: type = Number) -> bytes:
    return pack(modulator, PARENT, Format.of(declared), key)[0]


def run(
    modulator: Modulator,
    *,
    trusted: tuple[str, ...] = (),
    sandboxed: tuple[str, ...] = (),
    declared: type = Number,
    grant: Callable[[str, int], object | None] = grant_nothing,
    **options: Any,
) -> Runner:
    settings: dict[str, Any] = {
        "parent": PARENT,
        "sources": (1,),
        "shared": NoSharedObjects(),
        "limits": PATIENT,
        "hub": "127.0.0.1:1",
    }
    return install(
        parcel_of(modulator, declared=declared),
        trusted=trusted,
        sandboxed=sandboxed,
        input=Format.of(declared),
        grant=grant,
        **(settings | options),
    )


def run_here(modulator: Modulator, **options: Any) -> Runner:
    return run(modulator, trusted=(KEY.public,), **options)


def run_confined(modulator: Modulator, **options: Any) -> Runner:
    return run(modulator, sandboxed=("*",), **options)


PLACES = {"in process": run_here, "confined": run_confined}
"""The two places where modulators run, which must behave alike."""
