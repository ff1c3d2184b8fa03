"""`echoic foxglove`: channels as topics that Foxglove shows, live."""

from echoic.cli.meeting import attend, check_open, stay
from echoic.cli.screen import json_text, say
from echoic.cli.served import PAIR_REMEDY, SERVED, Served
from echoic.cli.where import AsJson
from echoic.interop.foxglove import LISTEN_DEFAULT, ORIGINS_DEFAULT, Bridge

__all__ = ["foxglove"]


def foxglove(
    *channels: str,
    listen: str = LISTEN_DEFAULT,
    origin: list[str] | None = None,
    as_json: AsJson = False,
    served: Served = SERVED,
) -> None:
    """Let Foxglove look at channels, live, until Ctrl-C. In Foxglove: Open connection, Foxglove WebSocket, the address.

    A channel is subscribed to while a panel shows it, and only then. Needs: pip install 'echoic[foxglove]'

    Try:
        echoic foxglove
        echoic foxglove trades wind --listen 127.0.0.1:9000

    Args:
        channels: Names or ids; all that the name server knows if there are none, also those to come.
        listen: Where Foxglove connects to, HOST:PORT; port 0 takes a free one.
        origin: Whose page may look, beside https://app.foxglove.dev, as in http://localhost:8080; may be given again.
        as_json: Print the address and the channels as JSON.
        served: Who may look, and where channels are looked for.
    """
    origins = (*ORIGINS_DEFAULT, *(origin or ()))
    check_open(listen, insecure=served.insecure, identity=served.pair, remedy=PAIR_REMEDY)
    with (
        attend(served.where, "foxglove") as hub,
        Bridge(hub, channels, listen, certificate=served.pair, insecure=served.insecure, origins=origins) as bridge,
    ):
        if as_json:
            print(json_text({"url": bridge.url, "channels": sorted(bridge.topics)}), flush=True)
        told = ", ".join(sorted(bridge.topics)) or "no channel yet, which is looked for"
        say(f"Foxglove connects to {bridge.url} ({told}), Ctrl-C ends")
        stay()
