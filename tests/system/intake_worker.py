"""A process with an intake, or a query that writes to one, epoch after epoch, and begins again where it was killed."""

import json
import logging
import secrets
import sys
import time
from pathlib import Path
from random import Random

import numpy

import echoic
from echoic.errors import EchoicError
from echoic.formats import Format
from echoic.hub import IntakeClient
from echoic.hub.intake_book import Attempt
from echoic.hub.intake_messages import CarriedPart, bodies_of
from echoic.testing.kill_roles import Tick
from echoic.wire import Batch

PARTITIONS = 3
PORTION_BYTES = 20_000
NUMBERS = 100_000  # of an epoch at most, so that its rows tell which it is


def say(**values: object) -> None:
    print(json.dumps(values), flush=True)


def rows_of(epoch: int, partition: int) -> numpy.ndarray:
    """Return the rows of a partition, which depend on nothing else."""
    count = Random(epoch * PARTITIONS + partition).choice([0, 1, 7, 60, 5000])
    rows = numpy.zeros(count, Format.of(Tick).dtype)
    rows["producer"] = partition
    rows["number"] = epoch * NUMBERS + numpy.arange(count)
    return rows


def keep(options: dict) -> None:
    """Have an intake until killed."""
    with echoic.Hub(options["listen"]) as hub:
        while True:
            try:
                intake = hub.intake("ticks", options["path"], Tick, partitions=2)
            except echoic.errors.JournalError as error:
                if "in use" not in str(error):  # by one that was killed a moment ago
                    raise
                time.sleep(0.01)
                continue
            break
        say(id=intake.channel.id, address=hub.address)
        sys.stdin.readline()


def write(options: dict) -> None:
    """Write epochs, one at least, until a file asks to stop; what is committed is noted in a file, as Spark does."""
    random, noted, stop = Random(options["seed"]), Path(options["noted"]), Path(options["stop"])
    epoch = int(noted.read_text()) if noted.exists() else 0
    retries, going_on = 0, True
    say(epoch=epoch)
    with echoic.Hub() as hub:
        client = IntakeClient(hub, options["channel"], timeout=30)
        while going_on:
            try:
                write_epoch(client, epoch, random)
            except EchoicError:
                retries += 1
                continue
            epoch += 1
            going_on = not stop.exists()
            written = noted.with_suffix(".tmp")
            written.write_text(str(epoch))
            written.rename(noted)
            if random.random() < 0.2:
                epoch -= 1  # as a driver does that was killed before it noted its last commit
    sys.stdin.readline()
    say(epochs=int(noted.read_text()), retries=retries)


def write_epoch(client: IntakeClient, epoch: int, random: Random) -> None:
    """Stage an epoch, some of it twice, some of it in vain, and commit it."""
    parts = []
    for partition in range(PARTITIONS):
        bodies = list(bodies_of(Batch.of(rows_of(epoch, partition), Tick), PORTION_BYTES))
        attempt = secrets.randbits(62)
        if len(bodies) > 1 or random.random() < 0.5:
            for index, body in enumerate(bodies):
                client.stage(Attempt("query", epoch, partition, attempt), index, body)
                if random.random() < 0.3:
                    client.stage(Attempt("query", epoch, partition, attempt + 1), 0, body)
            parts.append(CarriedPart(partition, attempt, len(bodies)))
        else:
            parts.append(CarriedPart(partition, attempt, len(bodies), tuple(bodies)))
    if random.random() < 0.05:
        client.abort("query", epoch)
    client.commit("query", epoch, parts)
    if random.random() < 0.2:
        client.commit("query", epoch, parts)


ROLES = {"keep": keep, "write": write}


def main() -> None:
    logging.disable(logging.ERROR)
    options = json.loads(sys.stdin.readline())
    ROLES[options["role"]](options)


if __name__ == "__main__":
    main()
