"""A process with a hub, told by lines of JSON what to be: a manager, a name server, a source, a sink or a nuisance.

Run as a program it reads one line of options from its input and answers with lines of JSON. A sink tells what it has
seen when it is asked, perhaps of a channel that it derives, a source publishes until it is told to stop. A nuisance
derives whatever it is told and does nothing else.

With the folder of a charter and a role it has that role's certificate and rights. One that is told to be patient waits
ten minutes for a peer from which nothing comes, which no hub should.
"""

import json
import resource
import sys
import threading
import time
from pathlib import Path

import echoic
from echoic.links import sockets

PAUSE_EVERY = 200
PATIENT_SECONDS = 600


@echoic.event
class Tick:
    producer: echoic.int64
    number: echoic.int64
    payload: bytes


def say(**values: object) -> None:
    print(json.dumps(values), flush=True)


def commands() -> str:
    line = sys.stdin.readline()
    return line.strip() or "stop"


def memory_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def manage(hub: echoic.Hub, options: dict) -> None:
    say(id=hub.create(options["channel"], Tick).id if options.get("channel") else "", address=hub.address)
    while commands() != "stop":
        say(ok=True)


def publish(hub: echoic.Hub, options: dict) -> None:
    channel = hub.create(options["channel"], Tick) if options.get("create") else hub.open(options["channel"], Tick)
    payload = bytes(options.get("size", 16))
    pause = options.get("pause", 0.001)
    stop = threading.Event()
    counts = {"submitted": 0}

    def run() -> None:
        with channel.source() as source:
            say(id=channel.id, address=hub.address, source=source.id)
            while not stop.is_set():
                source.submit(Tick(options["producer"], counts["submitted"], payload))
                counts["submitted"] += 1
                if counts["submitted"] % options.get("pause_every", PAUSE_EVERY) == 0:
                    time.sleep(pause)
            source.flush()

    thread = threading.Thread(target=run)
    thread.start()
    while True:
        command = commands()
        if command == "stop":
            break
        if command == "halt":
            stop.set()
            thread.join()
        links = [link.connected for link in hub.statistics().links]
        peers = [link.who for link in hub.statistics().links]
        derivations = {
            counts.name: {"events": counts.events_in, "faults": counts.faults, "suspended": counts.suspended}
            for counts in hub.report(hub.address).derivations
        }
        say(submitted=counts["submitted"], memory=memory_bytes(), links=links, peers=peers, derivations=derivations)
    stop.set()
    thread.join(10)


def watch(hub: echoic.Hub, options: dict) -> None:
    channel = hub.create(options["channel"], Tick) if options.get("create") else hub.open(options["channel"], Tick)
    if options.get("code"):
        channel = channel.derive(options["code"], placement=options.get("placement", "source"))
    seen: dict[int, int] = {}
    problems: list[str] = []
    spans: dict[int, list[list[int]]] = {}
    gaps: list[tuple[int, int]] = []
    lock = threading.Lock()

    def handle(batch: echoic.Batch) -> None:
        with lock:
            for tick in batch:
                following = seen.get(tick.producer)
                first.setdefault(tick.producer, tick.number)
                if following is not None and tick.number < following:
                    problems.append(f"{tick.producer}: {tick.number} after {following - 1}")
                if following == tick.number:
                    spans[tick.producer][-1][1] = tick.number
                else:
                    spans.setdefault(tick.producer, []).append([tick.number, tick.number])
                seen[tick.producer] = tick.number + 1
                counted[tick.producer] = counted.get(tick.producer, 0) + 1

    counted: dict[int, int] = {}
    first: dict[int, int] = {}

    def note(gap: object) -> None:
        with lock:
            gaps.append((gap.first, gap.last))

    sink = channel.subscribe(handle, batch=True, slow=options.get("slow", "block"), on_gap=note)
    say(id=channel.id, address=hub.address)
    while commands() != "stop":
        with lock:
            say(
                next={str(producer): number for producer, number in seen.items()},
                counted={str(producer): number for producer, number in counted.items()},
                spans={str(producer): those for producer, those in spans.items()},
                gaps=gaps,
                first={str(producer): number for producer, number in first.items()},
                problems=problems[:5],
                memory=memory_bytes(),
                closed=sink.closed,
            )


def assail(hub: echoic.Hub, options: dict) -> None:
    channel, refused = hub.open(options["channel"], Tick), 0
    for code in options["codes"]:
        try:
            channel.derive(code, share=False).subscribe(lambda batch: None, batch=True)
        except echoic.errors.EchoicError:
            refused += 1
    say(id=channel.id, address=hub.address, refused=refused)
    while commands() != "stop":
        say(ok=True)


ROLES = {"manage": manage, "publish": publish, "watch": watch, "assail": assail}


def party(options: dict) -> dict:
    if not options.get("charter"):
        return {}
    from echoic.testing.charter import Charter  # a third of a second, which few need

    return Charter(Path(options["charter"])).party(options["identity"])


def be_patient() -> None:
    sockets.VANISHED_SECONDS = PATIENT_SECONDS


def main() -> None:
    options = json.loads(sys.stdin.readline())
    if options.get("patient"):
        be_patient()
    listen, names = options.get("listen", "127.0.0.1:0"), options.get("names", ())
    with echoic.Hub(listen, names=names, insecure=options.get("insecure", False), **party(options)) as hub:
        ROLES[options["role"]](hub, options)


if __name__ == "__main__":
    main()
