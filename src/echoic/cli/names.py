"""`echoic names`: the name server by itself."""

from echoic.cli.meeting import open_hub, stay
from echoic.cli.screen import json_text, say
from echoic.cli.where import AsJson, Flag, IdentityName, RightsPath, Where, chosen_rights, surroundings
from echoic.errors import UnreachableError

__all__ = ["serve"]


def serve(
    *,
    listen: str | None = None,
    insecure: Flag = False,
    identity: IdentityName = None,
    rights: RightsPath = None,
    as_json: AsJson = False,
) -> None:
    """Serve names until Ctrl-C.

    Every `pub` and `echo` on this machine serves names itself when nobody does; a server of its own is for systems
    that must not depend on any of them.

    Try:
        echoic names serve
        echoic names serve --listen 0.0.0.0:7400 --identity lab --rights rights

    Args:
        listen: Where. [default: where other verbs look for it, 127.0.0.1:7400]
        insecure: Accept that strangers can read and write, on addresses other machines reach.
        identity: Who it is, of `echoic keys issue`; all it says is TLS then.
        rights: A file that says who may enter and see which names (`echoic acl`).
        as_json: Print the address as JSON.
    """
    found = surroundings(Where(names=listen, identity=identity))
    address = found.names
    try:
        hub = open_hub(
            address, address, "names", insecure=insecure, identity=found.identity, rights=chosen_rights(rights)
        )
    except UnreachableError as error:
        raise UnreachableError(f"{error}; perhaps names are served there already (echoic ls)") from error
    with hub:
        if as_json:
            print(json_text({"names": hub.address}), flush=True)
        say(f"serving names at {hub.address}, Ctrl-C ends")
        stay()
