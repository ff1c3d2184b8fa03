"""Finding channels by name: in this hub, or at name servers."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from echoic.channels import ChannelId, Done, Resolve, Resolved, register
from echoic.errors import ChannelNotFoundError, DeniedError, UnreachableError

if TYPE_CHECKING:
    from echoic.hub.switchboard import Switchboard

__all__ = ["find_channel", "register_derived_name", "register_name"]

log: Final = logging.getLogger("echoic.hub")


def register_name(switchboard: "Switchboard", names: Sequence[str], id: ChannelId) -> None:
    """Enter a channel at the name servers; one that answers is enough, the others learn of it later.

    Raises:
        ChannelExistsError: The name is taken.
        UnreachableError: None answers.
    """
    if not names:
        return
    problems: list[str] = []
    for server in names:
        try:
            switchboard.wait_for(
                server,
                lambda core, answer, server=server: register(core, server, id.name, str(id), answer),  # type: ignore[misc] # mypy#12557
                Done,
            )
        except UnreachableError as error:
            problems.append(str(error))
    if len(problems) == len(names):
        raise UnreachableError(f"{_no_name_server(problems)}, or create the channel in a hub without one")


def register_derived_name(switchboard: "Switchboard", names: Sequence[str], id: ChannelId) -> None:
    """Enter a derived channel at the name servers, unless only its manager may, which does so by itself.

    Raises:
        ChannelExistsError: The name is taken.
        UnreachableError: None answers.
    """
    try:
        register_name(switchboard, names, id)
    except DeniedError as error:
        log.info("`%s` is left to its manager to enter: %s", id.name, error)
        switchboard.do(lambda core: core.manager.unregister(id.name))


def find_channel(switchboard: "Switchboard", names: Sequence[str], channel: str) -> ChannelId:
    """Return the id of a channel that is given by id or name.

    Raises:
        ChannelNotFoundError: Nobody knows it.
        UnreachableError: No name server answers.
    """
    if "://" in channel:
        return ChannelId.parse(channel)
    with switchboard.lock:
        try:
            switchboard.core.manager.directory.get(channel)
        except ChannelNotFoundError:
            if not names:
                raise
        else:
            return ChannelId(switchboard.address, channel)
    problems: list[str] = []
    for server in names:
        try:
            return ChannelId.parse(switchboard.ask(server, Resolve(channel), Resolved).id)
        except UnreachableError as error:
            problems.append(str(error))
        except ChannelNotFoundError as error:
            raise ChannelNotFoundError(f"{error} - at name server {server} (echoic ls)") from error
    raise UnreachableError(f"{_no_name_server(problems)}, or open the channel by its id")


def _no_name_server(problems: list[str]) -> str:
    return f"no name server answers ({'; '.join(problems)}): start one with `echoic names serve`"
