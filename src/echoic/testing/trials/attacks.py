"""Modulators that mean harm, each in one way, which its name tells.

Each tries at one moment at which shipped code runs: when it is given an event, when it is asked for one, or when time
has passed. If it succeeds it says so by queueing an event.
"""
# They use what attackers use, and what they do needs no second telling.
# ruff: noqa: ARG005, D101, D102, S103, S108, S112, S605, S606, S607
# ruff: noqa: PTH101, PTH102, PTH104, PTH108, PTH110, PTH118, PTH120, PTH123, PTH208, PTH211
# mypy: disable-error-code="arg-type, attr-defined, no-untyped-call, operator, type-var, var-annotated"

import array
import atexit
import ctypes
import importlib
import mmap
import multiprocessing
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

from echoic.eager import Modulator

__all__ = ["ATTACKS", "MOMENTS", "AnswersTwice", "GoesOnAfterItsAnswer", "Hostile"]


class Hostile(Modulator):
    """What an attacker may know: where a secret lies, and where somebody listens."""

    secret: str = ""
    port: int = 0
    address: str = ""
    abstract: str = ""
    moment: str = "enqueue"

    def enqueue(self, event: object) -> None:
        self.event = event
        if self.moment == "enqueue":
            self.succeed()

    def dequeue(self) -> object | None:
        if self.moment == "dequeue" and self.__dict__.pop("event", None) is not None:
            self.attack()
            return {"value": 1, "text": ""}  # it has succeeded
        return super().dequeue()

    def period(self) -> None:
        if self.moment == "period":
            self.succeed()

    def succeed(self) -> None:
        self.attack()
        Modulator.enqueue(self, {"value": 1, "text": ""})  # it has succeeded

    def attack(self) -> None:
        raise NotImplementedError


class Raises(Hostile):
    def attack(self) -> None:
        raise ValueError("on purpose")


class RaisesWhatCannotBeShown(Hostile):
    def attack(self) -> None:
        def show(_: object) -> str:
            raise KeyboardInterrupt

        raise type("Nasty", (Exception,), {"__str__": show})


class Exits(Hostile):
    def attack(self) -> None:
        sys.exit(3)


class ExitsAtOnce(Hostile):
    def attack(self) -> None:
        os._exit(0)


class Hangs(Hostile):
    def attack(self) -> None:
        while True:
            pass


class HangsIgnoringEverything(Hostile):
    def attack(self) -> None:
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                continue
        while True:
            try:
                while True:
                    pass
            except BaseException:  # noqa: BLE001 - on purpose
                continue


class HangsInC(Hostile):
    def attack(self) -> None:
        sum(range(10**12))


class HangsInARegularExpression(Hostile):
    def attack(self) -> None:
        re.match(r"(a+)+$", "a" * 64 + "b")


class Sleeps(Hostile):
    def attack(self) -> None:
        time.sleep(3600)


class WaitsForever(Hostile):
    def attack(self) -> None:
        threading.Event().wait()


class Allocates(Hostile):
    def attack(self) -> None:
        kept = []
        while True:
            kept.append(bytearray(1024 * 1024))


class AllocatesAtOnce(Hostile):
    def attack(self) -> None:
        array.array("d", bytes(8)) * (1 << 30)


class AllocatesSharedMemory(Hostile):
    def attack(self) -> None:
        kept = []
        while True:
            kept.append(mmap.mmap(-1, 16 * 1024 * 1024))


class RaisesItsLimits(Hostile):
    def attack(self) -> None:
        infinity = resource.RLIM_INFINITY
        resource.setrlimit(resource.RLIMIT_AS, (infinity, infinity))


class Recurses(Hostile):
    def attack(self) -> None:
        self.attack()


class RecursesWithoutLimit(Hostile):
    def attack(self) -> None:
        sys.setrecursionlimit(10**9)
        deep = []
        for _ in range(10**6):
            deep = [deep]
        repr(deep)
        raise RecursionError


class Forks(Hostile):
    def attack(self) -> None:
        os.fork()


class ForksByItself(Hostile):
    def attack(self) -> None:
        result = ctypes.CDLL(None, use_errno=True).fork()
        if result < 0:
            raise OSError(ctypes.get_errno(), "fork")


class RunsACommand(Hostile):
    def attack(self) -> None:
        if os.system("true") != 0:
            raise PermissionError("no command was run")


class RunsAProgram(Hostile):
    def attack(self) -> None:
        subprocess.run([sys.executable, "-c", "pass"], check=True)


class BecomesAProgram(Hostile):
    def attack(self) -> None:
        os.execv(sys.executable, [sys.executable, "-c", "import os; os.write(1, b'x' * 64)"])


class RunsAProcessPool(Hostile):
    def attack(self) -> None:
        process = multiprocessing.get_context("spawn").Process(target=print)
        process.start()


class StartsThreads(Hostile):
    def attack(self) -> None:
        for _ in range(1000):
            threading.Thread(target=time.sleep, args=(3600,)).start()


class ReadsAccounts(Hostile):
    def attack(self) -> None:
        Path("/etc/passwd").read_text()


class ReadsASecret(Hostile):
    def attack(self) -> None:
        Path(self.secret).read_text()


class ReadsTheProject(Hostile):
    def attack(self) -> None:
        home = Path(importlib.import_module("echoic").__file__).parents[2]
        (home / "pyproject.toml").read_text()


class ReadsKeys(Hostile):
    def attack(self) -> None:
        found = [path for path in ("/root", "/home", "/var", "/run", "/sys", "/dev", "/tmp") if os.path.exists(path)]
        if not any(name.startswith((".ssh", "log", "null")) for path in found for name in os.listdir(path)):
            raise FileNotFoundError(f"nothing in {found}")


class ReadsProcesses(Hostile):
    def attack(self) -> None:
        Path("/proc/self/environ").read_bytes()


class ReadsTheEnvironment(Hostile):
    def attack(self) -> None:
        if not os.environ:
            raise LookupError("there is no environment")


class WritesFiles(Hostile):
    def attack(self) -> None:
        places = ["/written", "/tmp/written", "/dev/shm/written", "/usr/lib/written", self.secret, "written"]
        places.append(os.path.join(os.path.dirname(os.__file__), "written"))
        failures = []
        for place in places:
            try:
                with open(place, "w") as file:
                    file.write("x")
            except OSError as error:
                failures.append(error)
        if len(failures) == len(places):
            raise failures[0]


class WritesWhatWouldBeImported(Hostile):
    def attack(self) -> None:
        folder = os.path.dirname(importlib.import_module("echoic").__file__)
        os.close(os.open(os.path.join(folder, "errors.py"), os.O_WRONLY))


class ChangesFiles(Hostile):
    def attack(self) -> None:
        attempts = (
            lambda: os.unlink(os.__file__),
            lambda: os.chmod(os.__file__, 0o777),
            lambda: os.rename(os.__file__, "/os.py"),
            lambda: os.mkdir("/folder"),
            lambda: os.truncate(os.__file__, 0),
        )
        failures = []
        for attempt in attempts:
            try:
                attempt()
            except OSError as error:
                failures.append(error)
            else:
                return
        raise failures[0]


class LinksElsewhere(Hostile):
    def attack(self) -> None:
        os.symlink("/proc/1/root" + self.secret, "/link")
        Path("/link").read_text()


class Connects(Hostile):
    def attack(self) -> None:
        socket.create_connection(("127.0.0.1", self.port), timeout=5)


class Listens(Hostile):
    def attack(self) -> None:
        socket.socket().bind(("127.0.0.1", 0))


class ConnectsToAUnixSocket(Hostile):
    def attack(self) -> None:
        socket.socket(socket.AF_UNIX).connect(self.address)


class ConnectsToAnAbstractSocket(Hostile):
    def attack(self) -> None:
        socket.socket(socket.AF_UNIX).connect("\0" + self.abstract)


class SendsPackets(Hostile):
    def attack(self) -> None:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", self.port))


class KillsItsParent(Hostile):
    def attack(self) -> None:
        os.kill(os.getppid(), signal.SIGKILL)


class KillsEverything(Hostile):
    def attack(self) -> None:
        os.kill(-1, signal.SIGKILL)


def system_call(*numbers: object) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(*numbers) < 0:
        raise OSError(ctypes.get_errno(), "system call")


class CallsTheKernel(Hostile):
    def attack(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        attempts = {
            "ptrace": lambda: library.ptrace(16, 1, 0, 0),
            "unshare": lambda: library.unshare(0x10000000),
            "mount": lambda: library.mount(b"none", b"/", b"tmpfs", 0, 0),
            "chroot": lambda: library.chroot(b"/"),
            "setuid": lambda: library.setuid(0),
            "personality": lambda: library.personality(0x0400000),
            "prctl": lambda: library.prctl(1, 0, 0, 0, 0),
            "memfd_create": lambda: library.memfd_create(b"x", 0),
            "socketpair": lambda: library.socketpair(1, 1, 0, (ctypes.c_int * 2)()),
        }
        for name, attempt in attempts.items():
            if attempt() >= 0:
                raise SystemError(f"{name} was allowed")
        raise PermissionError("nothing was allowed")

    def succeed(self) -> None:
        try:
            self.attack()
        except SystemError:
            Modulator.enqueue(self, {"value": 1, "text": ""})


class CallsExecve(Hostile):
    def attack(self) -> None:
        name = ctypes.create_string_buffer(sys.executable.encode())
        arguments = (ctypes.c_char_p * 2)(name.value, None)
        system_call({"x86_64": 59, "aarch64": 221}[os.uname().machine], name, arguments, None)


class CallsAs32Bits(Hostile):
    """The numbers of another interface of the kernel: x32's `fork`."""

    def attack(self) -> None:
        system_call(0x40000000 + 57)


class OpensFiles(Hostile):
    def attack(self) -> None:
        kept = []
        while True:
            kept.append(open(os.__file__))  # noqa: SIM115 - on purpose


class FloodsTheHub(Hostile):
    def attack(self) -> None:
        for _ in range(60_000):
            Modulator.enqueue(self, {"value": 1, "text": "x" * 2000})


class NeverHasNothing(Hostile):
    def enqueue(self, event: object) -> None:
        self.event = event

    def dequeue(self) -> object:
        return {"value": 1, "text": ""}


class SendsGarbage(Hostile):
    def attack(self) -> None:
        os.write(1, b"\xff" * 4096)
        time.sleep(3600)


class SendsHalfAnAnswer(Hostile):
    def attack(self) -> None:
        os.write(1, struct.pack("<II", 10, 1000) + b"x")
        time.sleep(3600)


class DripsAnAnswer(Hostile):
    def attack(self) -> None:
        os.write(1, struct.pack("<II", 1000, 0))
        while True:
            os.write(1, b"x")
            time.sleep(0.01)


def send(message: list[object], body: bytes = b"") -> None:
    head = importlib.import_module("msgspec").msgpack.encode(message)
    os.write(1, struct.pack("<II", len(head), len(body)) + head + body)


class SendsNestedValues(Hostile):
    def attack(self) -> None:
        head = b"\x91" * 200_000 + b"\xc0"
        data = struct.pack("<II", len(head), 0) + head
        while data:
            data = data[os.write(1, data) :]
        time.sleep(3600)


class ForgesABatch(Hostile):
    def attack(self) -> None:
        send([13, 1, True, [], False], struct.pack("<QII", 0, 1 << 31, 0))
        time.sleep(3600)


class ForgesTheNumberOfAnAnswer(Hostile):
    def attack(self) -> None:
        send([13, 77, False, [], False])
        time.sleep(3600)


class AsksForWhatItWasNotGranted(Hostile):
    def attack(self) -> None:
        self.services.files.read("x")


class AsksForAnotherSource(Hostile):
    def attack(self) -> None:
        send([15, 2, "files", "read"])
        time.sleep(3600)


class WritesSharedObjectsThatItDoesNotHave(Hostile):
    def attack(self) -> None:
        send([18, "box", ["x"]], b"x")
        time.sleep(3600)


class ClosesItsPipe(Hostile):
    def attack(self) -> None:
        os.close(1)


class StopsReading(Hostile):
    def attack(self) -> None:
        os.close(0)
        raise ValueError("and goes on")


class LeavesSomethingForTheEnd(Hostile):
    def attack(self) -> None:
        atexit.register(time.sleep, 3600)
        sys.exit()


class CannotBeDestroyed(Hostile):
    def attack(self) -> None:
        class Undying:
            def __del__(self) -> None:
                time.sleep(3600)

        Undying()


class ReplacesThePipe(Hostile):
    """Takes over the code around it, and has it send what it likes."""

    def attack(self) -> None:
        pipe = importlib.import_module("echoic.eager.pipe")
        pipe.check_sizes = lambda head, body: None
        pipe.encode = lambda message: b"\xc1" * (1 << 20)


MOMENTS = ("enqueue", "dequeue", "period")
ATTACKS = [
    each
    for each in list(globals().values())
    if isinstance(each, type) and issubclass(each, Hostile) and each is not Hostile
]
"""What is stopped, or refused, in the call in which it is tried."""


class GoesOnAfterItsAnswer(Hostile):
    def attack(self) -> None:
        send([13, 1, False, [], False])
        while True:
            pass


class AnswersTwice(Hostile):
    def attack(self) -> None:
        send([13, 1, False, [], False])
