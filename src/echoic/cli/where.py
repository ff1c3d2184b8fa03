"""The options that say where things are, which most verbs have; `echoic.cli.settings` says what counts without them."""

import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from cyclopts import Parameter

from echoic.cli.settings import NAMES_DEFAULT, Surroundings, choose, choose_identity
from echoic.errors import AddressError, ChannelNotFoundError

__all__ = [
    "NAMES_DEFAULT",
    "NOWHERE",
    "AsJson",
    "ContextName",
    "Flag",
    "IdentityName",
    "RightsPath",
    "Text",
    "Where",
    "chosen",
    "chosen_rights",
    "names_address",
    "repeated",
    "rights_there",
    "surroundings",
]

Flag: TypeAlias = Annotated[bool, Parameter(negative=(), show_default=False)]
Text: TypeAlias = Annotated[str, Parameter(show_default=False)]
AsJson: TypeAlias = Annotated[bool, Parameter(name="--json", negative=(), show_default=False)]


ContextName: TypeAlias = Annotated[
    str | None, Parameter(help="The context to take these from. [default: $ECHOIC_CONTEXT, `echoic context use`]")
]


IdentityName: TypeAlias = Annotated[
    str | None,
    Parameter(
        help="Who this hub is, of `echoic keys issue`; it speaks TLS with other hubs then. "
        "[default: $ECHOIC_IDENTITY, the context's]"
    ),
]


RightsPath: TypeAlias = Annotated[
    Path | None,
    Parameter(
        name="--rights",
        help="A file that says who may do what (`echoic acl`), read again when it changes. [default: $ECHOIC_RIGHTS]",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Where:
    """The options that all verbs about channels have."""

    names: Annotated[
        str | None, Parameter(help="The name server, HOST:PORT. [default: $ECHOIC_NAMES, echoic.toml, 127.0.0.1:7400]")
    ] = None
    listen: Annotated[
        str | None,
        Parameter(help="Where other hubs reach this one; port 0 takes a free one. [default: 127.0.0.1:0]"),
    ] = None
    insecure: Annotated[
        bool,
        Parameter(
            help="Accept that strangers can read and write, on addresses other machines reach.",
            negative=(),
            show_default=False,
        ),
    ] = False
    context: ContextName = None
    identity: IdentityName = None
    rights: RightsPath = None


NOWHERE: Final = Where()


def repeated(where: Where) -> str:
    """Return the options that were typed here and that other verbs need to find the same, with a space before them."""
    typed = {"--names": where.names, "--context": where.context, "--identity": where.identity}
    return "".join(f" {option} {shlex.quote(value)}" for option, value in typed.items() if value is not None)


def names_address(where: Where) -> str:
    """Return the address of the name server.

    Raises:
        AddressError: What was set is not an address, or the file cannot be read.
        ChannelNotFoundError: There is no such context.
    """
    return surroundings(where).names


def surroundings(where: Where) -> Surroundings:
    """Return where the name server is, where to listen, and as whom.

    Raises:
        AddressError: What was set is not an address, or the file cannot be read.
        ChannelNotFoundError: There is no such context.
    """
    from echoic.links import parse_address

    found = chosen(where)
    try:
        parse_address(found.names)
    except AddressError as error:
        raise AddressError(f"{error} - from {found.origin}") from error
    return found


def chosen(where: Where) -> Surroundings:
    """Return what was chosen, as it was written.

    Raises:
        AddressError: The file cannot be read.
        ChannelNotFoundError: There is no such context.
    """
    found = choose(where.names, where.context)
    return replace(
        found,
        listen=where.listen or found.listen,
        insecure=where.insecure or found.insecure,
        identity=choose_identity(where.identity, where.context, found),
    )


def chosen_rights(path: Path | None) -> Path | None:
    """Return the file of rights: of the option, else of the environment; None if hubs go by none.

    Raises:
        ChannelNotFoundError: It is not there.
    """
    said = os.environ.get("ECHOIC_RIGHTS")
    chosen = path if path is not None else Path(said) if said else None
    return None if chosen is None else rights_there(chosen)


def rights_there(path: Path) -> Path:
    """Return the path of a file of rights.

    Raises:
        ChannelNotFoundError: It is not there.
    """
    if not path.exists():
        raise ChannelNotFoundError(f"there is no file of rights {path}; docs/how-to/grant-rights.md shows one")
    return path
