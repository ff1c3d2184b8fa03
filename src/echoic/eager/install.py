"""Where a modulator that has arrived may run, and making it run there (threat model, code ladder L2).

    who signed it         where it runs
    a trusted key         in this process (`environment`)
    a sandboxed key       in a confined process (`sandbox`), or nowhere if none can be confined here
    anybody else          nowhere

The lists are the operator's of the hub. What the modulator itself wishes plays no part, nor does the hub from which it
came: the signature says whose code it is, and it is for one channel. All services that it requires are granted for all
its sources before a line of it is run.
"""

from collections.abc import Collection
from typing import Final

from echoic.channels import Runner
from echoic.eager.environment import Environment
from echoic.eager.limits import Limits
from echoic.eager.parcel import unpack
from echoic.eager.sandbox import Sandbox
from echoic.eager.services import Grant, Services, grant_all
from echoic.eager.shared_object import SharedHost
from echoic.errors import RefusedError
from echoic.formats import Format

__all__ = ["install"]

EVERYBODY: Final = "*"


def install(  # noqa: PLR0913 - all that a hub decides, each by name
    parcel: bytes,
    *,
    trusted: Collection[str],
    sandboxed: Collection[str],
    parent: str,
    input: Format,  # noqa: A002 - the opposite of `output`
    grant: Grant,
    sources: Collection[int],
    shared: SharedHost,
    limits: Limits,
    hub: str,
) -> Runner:
    """Return a modulator at work.

    Args:
        parcel: The signed parcel as it came.
        trusted: Whose code runs in this process.
        sandboxed: Whose code runs in a confined process; `*` stands for everybody's.
        parent: The name of the channel whose sources it is for.
        input: The type of their events.
        grant: Who has services to give.
        sources: The sources there are; others may come later.
        shared: Has the copies of shared objects.
        limits: How much it may use.
        hub: The address of this hub, for messages.

    Raises:
        RefusedError: The signature is wrong, its key is not listed, it is for another channel, a service is missing, or
            no process can be confined here.
        MalformedFrameError: It is no parcel.
        ModulatorError: Its code cannot be loaded.
    """

    def admit(signer: str) -> None:
        if signer not in trusted and signer not in sandboxed and EVERYBODY not in sandboxed:
            raise RefusedError(
                f"the hub at {hub} runs no modulators signed by {signer}; its operator can list the key "
                f"(see `echoic keys trust`)"
            )

    opened, key = unpack(parcel, admit=admit)
    if opened.parent != parent:
        raise RefusedError(f"the modulator `{opened.class_name}` was signed for {opened.parent}, not for {parent}")

    def services(source: int) -> Services:
        return grant_all(opened.requires, source=source, grant=grant, modulator=opened.class_name, hub=hub)

    for source in sources:
        services(source)
    place = Environment if key in trusted else Sandbox
    return place(opened, key=key, events=input, services=services, shared=shared, limits=limits)
