"""Two hosts on one machine: a network namespace for the peers, and a cable to it.

Between hosts links are what they are not on one: TCP in the clear has a checksum for every frame, since that of TCP is
weak, and TLS has none beside its own. Whoever asks what TLS costs asks it there, because on one host nobody needs it. A
cable of the kernel's own (veth) has no speed of its own to hide behind: what is measured is processors.

The address block is the one that is set aside for benchmarks (RFC 2544); it is seen by nobody but the two ends of the
cable, and is gone with it.
"""

import ipaddress
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Final

__all__ = ["Hosts", "can_have_hosts", "two_hosts"]

NUMBERS: Final = itertools.count()
ADDRESSES: Final = ipaddress.ip_network("198.18.0.0/15")
NETWORK_ADDRESSES: Final = 4


@dataclass(frozen=True, slots=True)
class Hosts:
    """This host, and another one.

    Attributes:
        here: The address of this process.
        there: The address of the other host.
        prefix: The words before a command that make it run there.
    """

    here: str
    there: str
    prefix: tuple[str, ...]


@cache
def can_have_hosts() -> bool:
    """Tell whether this machine lets us have another host: that takes root, and Linux with iproute2."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        return False
    try:
        with two_hosts():
            return True
    except RuntimeError:
        return False


@contextmanager
def two_hosts() -> Iterator[Hosts]:
    """Lay a cable to another host, and remove both in the end.

    Raises:
        RuntimeError: That cannot be done here.
    """
    number = next(NUMBERS)
    name, cable = f"echoic-{os.getpid()}-{number}", f"e{os.getpid() % 10**7}-{number}"
    # Others may measure here at the same time; by the number of this process they are told apart.
    place = (os.getpid() * 64 + number) % (ADDRESSES.num_addresses // NETWORK_ADDRESSES)
    here, there = (ADDRESSES[place * NETWORK_ADDRESSES + end] for end in (1, 2))
    with ExitStack() as stack:
        _run(["ip", "netns", "add", name])
        stack.callback(_run, ["ip", "netns", "delete", name])  # and with it the cable
        for command in (
            f"ip link add {cable} type veth peer name far netns {name}",
            f"ip addr add {here}/30 dev {cable}",
            f"ip link set {cable} up",
            f"ip -netns {name} addr add {there}/30 dev far",
            f"ip -netns {name} link set far up",
            f"ip -netns {name} link set lo up",
        ):
            _run(command.split())
        yield Hosts(str(here), str(there), ("ip", "netns", "exec", name))


def _run(command: Sequence[str]) -> None:
    """Run a command.

    Raises:
        RuntimeError: It failed.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"`{' '.join(command)}` ended with {done.returncode}: {done.stderr.strip()}")
