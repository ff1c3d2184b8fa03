"""Where the name server is: an option, else the environment, else a file, else this machine.

    --names HOST:PORT  >  $ECHOIC_NAMES  >  names = "HOST:PORT" in $XDG_CONFIG_HOME/echoic.toml  >  127.0.0.1:7400

The file is ~/.config/echoic.toml when XDG_CONFIG_HOME is not set.
"""

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from cyclopts import Parameter

from echoic.errors import AddressError

__all__ = ["NAMES_DEFAULT", "NOWHERE", "AsJson", "Flag", "Text", "Where", "names_address"]

NAMES_DEFAULT: Final = "127.0.0.1:7400"

Flag: TypeAlias = Annotated[bool, Parameter(negative=(), show_default=False)]
Text: TypeAlias = Annotated[str, Parameter(show_default=False)]
AsJson: TypeAlias = Annotated[bool, Parameter(name="--json", negative=(), show_default=False)]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Where:
    """The options that all verbs about channels have."""

    names: Annotated[
        str | None, Parameter(help="The name server, HOST:PORT. [default: $ECHOIC_NAMES, echoic.toml, 127.0.0.1:7400]")
    ] = None
    listen: Annotated[
        str, Parameter(help="Where other hubs reach this one; port 0 takes a free one.", show_default=True)
    ] = "127.0.0.1:0"
    insecure: Annotated[
        bool,
        Parameter(help="Accept that strangers can read and write, on addresses other machines reach.", negative=()),
    ] = False


NOWHERE: Final = Where()


def names_address(where: Where) -> str:
    """Return the address of the name server.

    Raises:
        AddressError: What was set is not an address, or the file cannot be read.
    """
    from echoic.links import parse_address

    address, origin = _chosen(where)
    try:
        parse_address(address)
    except AddressError as error:
        raise AddressError(f"{error} - from {origin}") from error
    return address


def _chosen(where: Where) -> tuple[str, str]:
    """Return the address and who chose it."""
    if where.names is not None:
        return where.names, "--names"
    if environment := os.environ.get("ECHOIC_NAMES"):
        return environment, "ECHOIC_NAMES"
    path = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "echoic.toml"
    try:
        settings = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return NAMES_DEFAULT, "the default"
    except (OSError, ValueError) as error:
        raise AddressError(f"cannot read {path}: {error}") from error
    named = settings.get("names", NAMES_DEFAULT)
    if not isinstance(named, str):
        raise AddressError(f"expected `names` to be text like {NAMES_DEFAULT}, got {named!r} - from {path}")
    return named, str(path)
