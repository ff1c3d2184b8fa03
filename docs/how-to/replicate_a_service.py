"""The program of the page "Replicate a service": three replicas in processes of their own, one of which is killed."""

import http.client
import json
import multiprocessing
import time
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import echoic
from echoic.replicas.service import CounterService

spawn = multiprocessing.get_context("spawn")


def replica(me: str, pipe: Connection) -> None:
    """Run in a process of its own: one replica of the service, until it is told to end."""
    with echoic.Hub() as hub:
        pipe.send(hub.address)
        peers = pipe.recv()
        with CounterService(hub, me=me, peers=peers) as service:
            service.group.wait_for(lambda view: view.primary)
            pipe.send(service.address)
            pipe.recv()


def start(names: list[str]) -> dict[str, tuple[BaseProcess, Connection]]:
    """Start the replicas; each has to know where the hubs of all are."""
    replicas = {}
    for name in names:
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=replica, args=(name, theirs))
        process.start()
        replicas[name] = process, ours
    peers = {name: pipe.recv() for name, (_, pipe) in replicas.items()}
    for _, pipe in replicas.values():
        pipe.send(peers)
    return replicas


def ask(address: str, method: str, path: str, **headers: str) -> dict[str, object] | None:
    """Ask a replica; None if it is gone, or cannot answer at the moment."""
    host, port = address.split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): text for name, text in headers.items()})
        response = connection.getresponse()
        answer = json.loads(response.read())
        return answer if response.status == 200 else None
    except OSError:
        return None
    finally:
        connection.close()


def count(addresses: list[str], counter: str, key: str) -> dict[str, object]:
    """Have one increment counted, once, by whichever replica answers."""
    while True:
        for address in addresses:
            answer = ask(address, "POST", f"/counters/{counter}", Idempotency_Key=key)
            if answer is not None:
                return answer
        time.sleep(0.1)


def main() -> None:
    replicas = start(["n1", "n2", "n3"])
    services = {name: pipe.recv() for name, (_, pipe) in replicas.items()}
    addresses = list(services.values())

    for number in range(3):
        answer = count(addresses, "visits", key=f"visit-{number}")
    print(answer)

    leader = str(ask(addresses[0], "GET", "/")["leader"])
    replicas[leader][0].kill()
    print("the leader is killed")
    addresses.remove(services[leader])

    print("again, value", count(addresses, "visits", key="visit-2")["value"])  # as if no answer had come
    print("goes on, value", count(addresses, "visits", key="visit-3")["value"])
    while len(ask(addresses[0], "GET", "/")["members"]) > 2:
        time.sleep(0.05)
    print("members are", len(ask(addresses[0], "GET", "/")["members"]))

    for name, (process, pipe) in replicas.items():
        if name != leader:
            pipe.send("enough")
        process.join()


if __name__ == "__main__":
    main()
