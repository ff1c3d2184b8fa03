"""Tools for the tests of values by reference, and processes for them to live in.

    Room        a process of its own, in which objects of this module are made and called, by lines of JSON
    House       a bus, for a room of its own, so that its memory can be measured
    Source      a tool that has large values            Sink      a tool that takes them

A value is told by its digest: a digest is what went in, whatever the way there was. Run as a program this module is the
inside of a room, or one of its tools, as a script's `command` starts it.
"""

import atexit
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from echoic.links import Identity
from echoic.terms import Term, TermList, Value, write_text
from echoic.terms.saf import decode_saf, encode_pieces
from echoic.toolbus import Bus, Tool, do, eval_
from echoic.toolbus.dialling import Exchanging
from echoic.toolbus.references.exchange import Exchange
from echoic.toolbus.tool import Whereabouts
from echoic.values import ValueStore
from echoic.wire import Buffer

HERE = Path(__file__).resolve()
RUN = f"{sys.executable} {HERE}"
SECONDS = 30.0
MEGABYTE = 1024 * 1024


def text_of(size: int, seed: int = 0) -> str:
    """Return a string of a size that depends on a seed, if it is long enough for that."""
    unit = f"{seed}:abcdefghijklmnopqrstuvwxyz;"
    return (unit * (size // len(unit) + 1))[:size]


def blob_of(size: int, seed: int = 0) -> bytes:
    """Return bytes of a size."""
    return text_of(size, seed).encode()


def digest(value: object) -> str:
    """Return what a value is, in few words: kinds, sizes and checksums, at every depth."""
    match value:
        case str():
            return f"str {len(value)} {zlib.crc32(value.encode()):08x}"
        case bytes():
            return f"blob {len(value)} {zlib.crc32(value):08x}"
        case Term(name=name, args=args):
            return f"{name}({', '.join(map(digest, args))})" if args else name
        case TermList() | list() | tuple():
            return f"[{', '.join(map(digest, value))}]"
    return write_text(value)  # type: ignore[arg-type]


class Source(Tool, name="source"):
    """Has values of any size."""

    def __init__(self) -> None:
        self.made: list[object] = []
        self.keeps = True
        self.terminated = ""

        self.made_sizes: list[int] = []

    def _made(self, value: Value) -> Value:
        self.made_sizes.append(len(value))  # type: ignore[arg-type]
        if self.keeps:
            self.made.append(value)
        return value

    @eval_
    def make(self, size: int) -> Term:
        return Term("val", self._made(text_of(size)))

    @eval_
    def make_of(self, size: int, seed: int) -> Term:
        return Term("val", self._made(text_of(size, seed)))

    @eval_
    def make_blob(self, size: int) -> Term:
        return Term("val", self._made(blob_of(size)))

    @eval_
    def make_pair(self, one: int, other: int) -> Term:
        return Term("pair", text_of(one, 1), text_of(other, 2))

    @eval_
    def make_list(self, count: int, size: int) -> Term:
        return Term("val", [text_of(size, seed) for seed in range(count)])

    @eval_
    def echo(self, value: object) -> Term:
        self.made.append(digest(value))
        return Term("val", value)

    @eval_
    def ping(self) -> Term:
        return Term("pong")

    @eval_
    def forget(self) -> Term:
        self.made.clear()
        return Term("pong")

    def say(self, name: str, *arguments: object) -> None:
        """Send an event; `"str 100"` stands for a string of that size, and so does `"blob 100"` for bytes."""
        self.event(name, *map(_spelled, arguments))

    def say_and_wait(self, name: str, *arguments: object) -> str:
        """Send an event, and return the digest of what comes with its acknowledgement."""
        return digest(self.event(name, *map(_spelled, arguments), wait=True, timeout=SECONDS))

    def say_many(self, name: str, count: int, size: int) -> int:
        """Send many events of their own values, each when the one before was acknowledged."""
        for number in range(count):
            self.event(name, number, text_of(size, number), wait=True, timeout=SECONDS)
        return count

    def burst(self, name: str, count: int, size: int) -> None:
        """Send many events at once, and leave."""
        for number in range(count):
            self.event(f"{name}{number}", text_of(size, number))
        self.disconnect()

    def made_digests(self) -> list[str]:
        """Return all that was made and echoed, in order."""
        return [digest(each) for each in self.made]

    def letgo(self) -> None:
        """Keep no more of one's own than the bus demands, from here on too."""
        self.made.clear()
        self.keeps = False

    def on_terminate(self, value: Value) -> None:
        self.terminated = digest(value)


class Sink(Tool, name="sink"):
    """Takes values of any size."""

    def __init__(self) -> None:
        self.digests: list[str] = []
        self.values: list[object] = []
        self.keeps = False
        self.taken = 0
        self.gate = threading.Event()
        self.gate.set()

    @do
    def use(self, value: object) -> None:
        self.taken += 1
        self.gate.wait()
        self.digests.append(digest(value))
        if self.keeps:
            self.values.append(value)

    @do
    def use_both(self, one: object, other: object) -> None:
        self.use(one)
        self.use(other)

    @eval_
    def size_of(self, value: object) -> Term:
        self.digests.append(digest(value))
        return Term("val", len(value))  # type: ignore[arg-type]

    @eval_
    def echo(self, value: object) -> Term:
        self.digests.append(digest(value))
        return Term("val", value)

    @eval_
    def ping(self) -> Term:
        return Term("pong")

    def seen(self) -> list[str]:
        """Return all that was taken, in order."""
        return list(self.digests)

    def keep(self) -> None:
        """Keep what is taken, so that it is alive."""
        self.keeps = True

    def begun(self) -> int:
        """Return how many values have come to a handler, whether it waits or not."""
        return self.taken

    def shut(self) -> None:
        """Do not take anything until `open`: handlers wait."""
        self.gate.clear()

    def open(self) -> None:
        self.gate.set()

    def ask(self, name: str, *arguments: object) -> str:
        """Ask the script, and return the digest of its answer."""
        return digest(self.request(name, *map(_spelled, arguments), wait=True, timeout=SECONDS))


class Mortal(Tool, name="source"):
    """Writes down what it is asked, and gets stuck in its first life; `MORTAL` names the file."""

    @eval_
    def make_of(self, size: int, seed: int) -> Term:
        diary = Path(os.environ["MORTAL"])
        lives = set(diary.read_text().split()[::2]) if diary.exists() else set()
        with diary.open("a") as file:
            file.write(f"{os.getpid()} {seed}\n")
        if seed == 1 and lives <= {str(os.getpid())}:
            threading.Event().wait()
        return Term("val", text_of(size, seed))


class Asker(Sink, name="asker"):
    """A sink under another name."""


class House:
    """A bus in a process of its own."""

    def __init__(self, script: str, **options: Any) -> None:
        self._printed: list[str] = []
        self._lock = threading.Lock()
        if "identity" in options:
            options["identity"] = Identity(*map(Path, options["identity"]))
        self.bus = Bus.from_script(script, seed=1, output=self._print, **options)
        self.bus.start()

    def _print(self, text: str) -> None:
        with self._lock:
            self._printed.append(text)

    def address(self) -> str:
        return self.bus.address

    def printed(self) -> str:
        with self._lock:
            return "".join(self._printed)

    def wait(self, seconds: float = SECONDS) -> bool:
        return self.bus.wait(seconds)

    def value(self) -> str:
        return digest(self.bus.value)

    def warnings(self) -> list[str]:
        return list(self.bus.warnings())

    def references(self) -> int:
        return len(self.bus.references())

    def fetched(self) -> int:
        return self.bus.statistics().fetched


def _spelled(argument: object) -> object:
    match argument:
        case str() if argument.startswith("str "):
            return text_of(*map(int, argument.split()[1:]))
        case str() if argument.startswith("blob "):
            return blob_of(*map(int, argument.split()[1:]))
    return argument


# Memory


def memory_of(process: int) -> dict[str, int]:
    """Return how many bytes of memory a process has, `rss`, and has had at most, `peak`."""
    words = {line.split(":")[0]: line.split()[1:] for line in Path(f"/proc/{process}/status").read_text().splitlines()}
    return {"rss": int(words["VmRSS"][0]) * 1024, "peak": int(words["VmHWM"][0]) * 1024}


def forget_peak(process: int) -> int:
    """Let the peak of a process begin anew, and return what it is then."""
    Path(f"/proc/{process}/clear_refs").write_text("5")
    return memory_of(process)["peak"]


# Rooms


class Room:
    """A process with objects of this module in it."""

    def __init__(self, environment: dict[str, str] | None = None, prefix: tuple[str, ...] = ()) -> None:
        self.process = subprocess.Popen(
            [*prefix, sys.executable, str(HERE), "room"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self._lock = threading.Lock()

    def make(self, kind: str, key: str = "", **arguments: object) -> Self:
        """Make an object; `key` is what it is called here, its class otherwise."""
        self._ask({"make": kind, "key": key or kind, "arguments": arguments})
        return self

    def call(self, key: str, method: str, *arguments: object) -> Any:
        """Call a method of an object, and return what it returns."""
        return self._ask({"call": method, "key": key, "arguments": arguments})

    def get(self, key: str, attribute: str) -> Any:
        """Return an attribute of an object."""
        return self._ask({"get": attribute, "key": key})

    def connect(self, kind: str, address: str, key: str = "", **options: object) -> int:
        """Make a tool, connect it, let it serve in a thread, and return its number."""
        self.make(kind, key)
        return self._ask({"connect": address, "key": key or kind, "arguments": options})

    def exchange(self) -> dict[str, int]:
        """Return what the process keeps for others: `values` and `bytes`, and what it has moved."""
        return self._ask({"exchange": 1})

    def same(self, one: str, other: str) -> bool:
        """Whether what a source has made last and what a sink has got last are one object."""
        return self._ask({"same": [one, other]})

    def enter(self) -> None:
        """Give the process the folder for sockets that this one has."""
        self._ask({"folder": os.environ.get("XDG_RUNTIME_DIR", "")})

    def leave(self) -> bool:
        """Let all objects go; False if that is not possible."""
        with contextlib.suppress(AssertionError, OSError):
            self._ask({"leave": 1})
            return True
        return False

    def memory(self) -> dict[str, int]:
        return memory_of(self.process.pid)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        self.process.kill()
        self.process.wait()

    def _ask(self, question: dict[str, object]) -> Any:
        with self._lock:
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        assert line, f"the room has ended: {self.process.poll()}"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["result"]


def _live() -> None:
    """Be the inside of a room."""
    objects: dict[str, Any] = {}
    for line in sys.stdin:
        try:
            answer: dict[str, object] = {"result": _answer(json.loads(line), objects)}
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            answer = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    os._exit(0)


def _answer(question: dict[str, Any], objects: dict[str, Any]) -> object:
    key, arguments = question.get("key", ""), question.get("arguments", {})
    match question:
        case {"make": kind}:
            objects[key] = globals()[kind](**arguments)
            return None
        case {"call": method}:
            return getattr(objects[key], method)(*arguments)
        case {"get": attribute}:
            return getattr(objects[key], attribute)
        case {"connect": address}:
            return _connect(objects[key], address, arguments, objects)
        case {"folder": folder}:
            os.environ["XDG_RUNTIME_DIR"] = folder
            return None
        case {"leave": _}:
            return _leave(objects)
        case {"same": [one, other]}:
            return objects[one].made[-1] is objects[other].values[-1]
        case {"exchange": _}:
            statistics = objects.get("exchange", Exchange.of_process()).store.statistics()
            bytes_kept = statistics.heap_bytes + statistics.shared_bytes + statistics.file_bytes
            return {"values": statistics.values, "bytes": bytes_kept, "spilled": statistics.spilled}
    raise ValueError(f"what is {question}?")


def _connect(tool: Tool, address: str, options: dict[str, Any], objects: dict[str, Any]) -> int:
    if "identity" in options:
        options["identity"] = Identity(*map(Path, options["identity"]))
    exchanging = exchanging_of(options, objects)
    tool.connect(address, exchanging=exchanging, **options)
    tool.start()
    return tool.number


def _leave(objects: dict[str, Any]) -> None:
    for each in objects.values():
        if isinstance(each, House):
            each.bus.close()
        elif isinstance(each, Tool):
            each.close()
    objects.clear()


def exchanging_of(options: dict[str, Any], objects: dict[str, Any]) -> Exchanging:
    """Take from options what is about values: `threshold`, `data_listen`, `pool_bytes` and `budget_bytes`."""
    pool_bytes, budget_bytes = options.pop("pool_bytes", 0), options.pop("budget_bytes", 0)
    if pool_bytes or budget_bytes:
        store = ValueStore(encode=encode_values, decode=decode_values, budget_bytes=budget_bytes or 256 * MEGABYTE)
        objects["exchange"] = Exchange(store=store, pool_bytes=pool_bytes)
    told = Whereabouts((), os.environ)
    threshold, listen = options.pop("threshold", told.threshold), options.pop("data_listen", told.data_listen)
    return Exchanging(threshold, listen, objects.get("exchange"), insecure=told.insecure)


def encode_values(values: tuple[Value, ...]) -> list[Buffer]:
    return list(encode_pieces(TermList(*values)))


def decode_values(pieces: Sequence[Buffer]) -> tuple[Value, ...]:
    return tuple(decode_saf(b"".join(pieces)))  # type: ignore[arg-type]


def until(condition: Callable[[], object], seconds: float = SECONDS) -> bool:
    """Wait until something is so; False if it does not come to be."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


_idle: list[Room] = []
"""Rooms that were left in order: to start a process takes longer than most tests."""


@contextlib.contextmanager
def rooms(count: int, environment: dict[str, str] | None = None, *, fresh: bool = False) -> Iterator[list[Room]]:
    """Open so many rooms, or take some where nobody is any more; never with `fresh` or an environment."""
    fresh = fresh or environment is not None
    taken = [_idle.pop() if _idle and not fresh else Room(environment) for _ in range(count)]
    try:
        for room in taken:
            room.enter()
        yield taken
        _idle.extend(room for room in taken if not fresh and room.leave())
    finally:
        for room in taken:
            if room not in _idle:
                room.close()


@atexit.register
def _close_idle() -> None:
    for room in _idle:
        room.close()


if __name__ == "__main__":
    if sys.argv[1] == "room":
        _live()
    else:
        globals()[sys.argv[1]].run()
