"""`echoic metrics`: what goes through all channels, for Prometheus to scrape."""

from typing import Annotated

from cyclopts import Parameter

from echoic.cli.meeting import check_open, stay, visit
from echoic.cli.screen import json_text, say
from echoic.cli.served import PAIR_REMEDY, SERVED, Served
from echoic.cli.where import AsJson
from echoic.interop.metrics import LISTEN_DEFAULT, SystemCollector, exposition, serve_metrics
from echoic.monitor import browse

__all__ = ["metrics"]


def metrics(
    *,
    listen: str = LISTEN_DEFAULT,
    once: Annotated[bool, Parameter(name=["--once", "-1"], negative=(), show_default=False)] = False,
    as_json: AsJson = False,
    served: Served = SERVED,
) -> None:
    """Serve what goes through all channels to Prometheus, until Ctrl-C.

    At each scrape all hubs are asked that take part in channels of the name server. They count anyway, so publishing is
    not slowed. Programs that want only their own hub told have `echoic.interop.metrics.start_metrics`.

    Try:
        echoic metrics
        echoic metrics --once | grep saved_bytes
    and in prometheus.yml
        scrape_configs: [{job_name: echoic, static_configs: [{targets: ["127.0.0.1:9464"]}]}]

    Args:
        listen: Where Prometheus scrapes, HOST:PORT; port 0 takes a free one.
        once: Print what a scrape would get, and end.
        as_json: Print the address as JSON.
        served: Who may scrape, and which hubs are told of.
    """
    if not once:
        check_open(listen, insecure=served.insecure, identity=served.pair, remedy=PAIR_REMEDY)
    with visit(served.where, "metrics") as hub:
        if once:
            browse(hub)  # without names there is nothing to look at, and an empty page would not say so
            print(exposition(SystemCollector(hub)), end="")
            return
        with serve_metrics(hub, listen, certificate=served.pair, insecure=served.insecure) as server:
            if as_json:
                print(json_text({"url": server.url, "names": hub.names[0]}), flush=True)
            say(f"serving metrics of {hub.names[0]} at {server.url}, Ctrl-C ends")
            stay()
