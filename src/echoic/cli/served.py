"""The options of verbs that serve other tools than hubs: where these may reach them, and which system is told of."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from echoic.cli.where import IdentityName, RightsPath, Where
from echoic.errors import LocalError

__all__ = ["PAIR_REMEDY", "SERVED", "Served"]

PAIR_REMEDY: Final = "name a --certificate and its --key"
"""What makes it TLS where no identity does, for messages."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Served:
    """Who is served, and from where."""

    certificate: Annotated[
        Path | None, Parameter(help="A PEM file for TLS, which addresses that other machines reach need.")
    ] = None
    key: Annotated[Path | None, Parameter(help="The PEM file of its key.")] = None
    insecure: Annotated[
        bool,
        Parameter(
            help="Accept that strangers can read along, on addresses other machines reach.",
            negative=(),
            show_default=False,
        ),
    ] = False
    hub_listen: Annotated[
        str | None, Parameter(help="Where other hubs reach this one; port 0 takes a free one. [default: 127.0.0.1:0]")
    ] = None
    names: Annotated[
        str | None, Parameter(help="The name server, HOST:PORT. [default: $ECHOIC_NAMES, echoic.toml, 127.0.0.1:7400]")
    ] = None
    context: Annotated[
        str | None, Parameter(help="The context to take it from. [default: $ECHOIC_CONTEXT, `echoic context use`]")
    ] = None

    identity: IdentityName = None
    rights: RightsPath = None

    @property
    def where(self) -> Where:
        """Where the name server is, and where the hub of the verb listens."""
        return Where(self.names, self.hub_listen, self.insecure, self.context, self.identity, self.rights)

    @property
    def pair(self) -> tuple[Path, Path] | None:
        """The certificate and its key; None if there is neither.

        Raises:
            LocalError: One was named without the other.
        """
        if self.certificate is None and self.key is None:
            return None
        if self.certificate is None or self.key is None:
            raise LocalError("a certificate needs its key, and a key its certificate: name both or neither")
        return self.certificate, self.key


SERVED: Final = Served()
