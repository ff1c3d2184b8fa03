"""A process that records a channel, or is a source with a name of one, told by lines of JSON what to do."""

import json
import logging
import sys

import echoic
from echoic.errors import EchoicError
from echoic.testing.kill_roles import Tick, ticks


def say(**values: object) -> None:
    print(json.dumps(values), flush=True)


def commands() -> list[str]:
    return sys.stdin.readline().split() or ["stop"]


def manage(hub: echoic.Hub, options: dict) -> None:
    say(id=hub.create("ticks", Tick).id, address=hub.address)
    while commands() != ["stop"]:
        say(ok=True)


def record(hub: echoic.Hub, options: dict) -> None:
    channel = hub.create("ticks", Tick) if options.get("create") else hub.open(options["channel"], Tick)
    while True:
        try:
            recording = hub.record(channel, options["path"])
        except echoic.errors.UnreachableError:
            continue  # a source that was killed has not been missed yet
        except EchoicError as error:
            say(error=str(error), kind=type(error).__name__)
            return
        break
    say(id=channel.id, address=hub.address, journal=recording.journal, heads=recording.heads)
    while commands() != ["stop"]:
        say(heads=recording.heads, trouble=recording.trouble)


def publish(hub: echoic.Hub, options: dict) -> None:
    channel, producer = hub.open(options["channel"], Tick), options["producer"]
    source = channel.source(name=f"feed-{producer}")
    say(position=source.position)
    while (words := commands()) != ["stop"]:
        problem = ""
        try:
            if words[0] == "submit":
                for first in range(source.position, source.position + int(words[1]), 100):
                    source.submit_batch(ticks(producer, first, 100))
            elif words[0] == "drain":
                source.drain(float(words[1]))
        except EchoicError as error:
            problem = str(error)
        unconfirmed = source.statistics().unconfirmed_bytes
        say(position=source.position, problem=problem, trouble=source.trouble, unconfirmed=unconfirmed)


ROLES = {"manage": manage, "record": record, "publish": publish}


def main() -> None:
    logging.disable(logging.ERROR)
    options = json.loads(sys.stdin.readline())
    with echoic.Hub(options.get("listen", "127.0.0.1:0")) as hub:
        ROLES[options["role"]](hub, options)


if __name__ == "__main__":
    main()
