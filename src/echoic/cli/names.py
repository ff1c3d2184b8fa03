"""`echoic names`: the name server by itself."""

import threading

from echoic.cli.finding import browse
from echoic.cli.meeting import open_hub, visit
from echoic.cli.screen import json_text, say
from echoic.cli.tables import print_table
from echoic.cli.where import NOWHERE, AsJson, Flag, Where, names_address
from echoic.errors import UnreachableError

__all__ = ["ls", "serve"]


def serve(*, listen: str | None = None, insecure: Flag = False, as_json: AsJson = False) -> None:
    """Serve names until Ctrl-C.

    Every `pub` and `echo` on this machine serves names itself when nobody does; a server of its own is for systems
    that must not depend on any of them.

    Try:
        echoic names serve
        echoic names serve --listen 0.0.0.0:7400 --insecure

    Args:
        listen: Where. [default: where other verbs look for it, 127.0.0.1:7400]
        insecure: Accept that strangers can read and write, on addresses other machines reach.
        as_json: Print the address as JSON.
    """
    address = names_address(Where(names=listen))
    try:
        hub = open_hub(address, address, "names", insecure=insecure)
    except UnreachableError as error:
        raise UnreachableError(f"{error}; perhaps names are served there already (echoic ls)") from error
    with hub:
        if as_json:
            print(json_text({"names": hub.address}), flush=True)
        say(f"serving names at {hub.address}, Ctrl-C ends")
        threading.Event().wait()


def ls(*, as_json: AsJson = False, where: Where = NOWHERE) -> None:
    """List what the name server knows: names, and the ids they stand for.

    No manager is asked; `echoic ls` asks them.

    Try:
        echoic names ls

    Args:
        as_json: Print a list of objects as JSON.
        where: Where the name server is.
    """
    with visit(where, "names") as hub:
        known = browse(hub)
    if as_json:
        print(json_text([{"name": entry.name, "id": entry.id} for entry in known]))
    else:
        print_table(["CHANNEL", "ID"], [[entry.name, entry.id] for entry in known])
