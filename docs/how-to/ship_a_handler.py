"""The program of the page "Ship a handler": a model in one process, a viewer in another."""

import multiprocessing
import os
import tempfile
import threading
from multiprocessing.connection import Connection

import echoic
from echoic.eager import TrustedKey, sandboxed_keys, trusted_keys, write_trust


@echoic.event
class Cell:
    layer: int
    temperature: float


class Box(echoic.SharedObject):  # what the viewer has in common with its code inside the model
    first_layer: int = 0
    last_layer: int = 0


class Warmer(echoic.Modulator):  # what is sent into the model
    """Passes the cells of some layers that are warmer than any before, each layer for itself."""

    box: Box
    least: float = -273.15

    def start(self) -> None:
        self.warmest = {}

    def enqueue(self, event: Cell) -> None:
        inside = self.box.first_layer <= event.layer <= self.box.last_layer
        if inside and event.temperature > self.warmest.get(event.layer, self.least):
            self.warmest[event.layer] = event.temperature
            super().enqueue(event)


def model(pipe: Connection) -> None:
    """Run in a process of its own, which makes nothing of `Warmer`; its operator has listed the viewer's key."""
    policy = echoic.Policy(trusted_keys=trusted_keys(), sandboxed_keys=sandboxed_keys())
    with echoic.Hub(name="model", policy=policy) as hub:
        cells = hub.create("cells", Cell)
        source = cells.source()
        pipe.send(cells.id)
        step = 0
        while not pipe.poll(0.001):
            step += 1
            source.submit_batch([Cell(layer, step % 40) for layer in range(8)])


def view(channel: str, key: echoic.SigningKey) -> None:
    """Look at the layers 0 and 1, then at 5, then at everything."""
    heard = {layer: threading.Event() for layer in range(8)}

    def show(*wanted: int) -> None:
        assert all(heard[layer].wait(10) for layer in wanted)
        print("heard of the layers", [layer for layer, event in heard.items() if event.is_set()])

    with echoic.Hub(name="viewer", key=key) as hub:
        box = Box(0, 1)
        cells = hub.open(channel, Cell)
        handle = cells.subscribe(lambda cell: heard[cell.layer].set(), modulator=Warmer(box, least=10.0))
        show(0, 1)

        box.first_layer = box.last_layer = 5
        box.publish()  # to every source, without waiting
        show(5)

        (counts,) = handle.derivations().values()
        print("events were spared:", counts.events_out < counts.events_in)

        handle.reset()  # no modulator, no demodulator: every event comes
        show(*range(8))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ECHOIC_HOME"] = folder  # where keys are; otherwise ~/.config/echoic
        viewer_key = echoic.SigningKey.generate()  # in earnest: SigningKey.load(key_path("viewer"))
        write_trust([TrustedKey(viewer_key.public, "viewer")])  # what `echoic keys trust` does
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(target=model, args=(theirs,))
        process.start()
        view(ours.recv(), viewer_key)
        ours.send("enough")
        process.join()
