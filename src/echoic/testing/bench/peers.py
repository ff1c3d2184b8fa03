"""The measuring side: peers as processes that are started, told what to expect, and stopped."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from echoic.testing.bench.contest import Session, Setup
from echoic.testing.bench.control import Argument
from echoic.testing.readable import is_readable

__all__ = ["Peer", "join", "start_chain", "start_peers", "time_counted"]

START_SECONDS_MAX = 60.0
CHANNEL_SECONDS_MAX = 0.005
COUNT_SECONDS_MAX = 120.0
STOP_SECONDS_MAX = 5.0
JOIN_ATTEMPTS_MAX = 200
JOIN_SECONDS = 0.05
SETTLE_SECONDS = 0.1


class Peer:
    """One process that receives events; see `control` for what is said.

    Args:
        target: What it runs, as `module:function`.
        setup: What is measured.
        argument: Whatever else the function wants to know.
        environment: Variables beside those of this process.
        prefix: Words before the command, which make it run elsewhere.
    """

    def __init__(
        self,
        target: str,
        setup: Setup,
        argument: Argument,
        environment: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
    ) -> None:
        self._target = target
        self._start_seconds_max = START_SECONDS_MAX + setup.channels * CHANNEL_SECONDS_MAX
        self._received = b""
        # Whatever can be imported here can be imported there.
        variables = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | dict(environment or {})
        program = [*prefix, sys.executable, "-m", "echoic.testing.bench", target]
        self._process = subprocess.Popen(
            [*program, msgspec.json.encode(setup).decode(), msgspec.json.encode(argument).decode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=variables,
        )

    def address(self) -> dict[str, str | int]:
        """Return what the peer says of itself when it is ready.

        Raises:
            RuntimeError: If it ends or stays silent.
        """
        line = self._await("ready", self._start_seconds_max)
        return msgspec.json.decode(line.removeprefix("ready "), type=dict[str, str | int])

    def expect(self, count: int) -> None:
        """Let the peer count from zero."""
        if self._process.stdin is not None:
            self._process.stdin.write(f"expect {count}\n".encode())
        self._await("expecting", START_SECONDS_MAX)

    def wait_counted(self, seconds_max: float = COUNT_SECONDS_MAX) -> None:
        """Return when the peer has handled what it expects.

        Raises:
            RuntimeError: If it ends.
            TimeoutError: If it takes longer than `seconds_max`.
        """
        self._await("counted", seconds_max)

    def has_counted(self, seconds_max: float = 0.0) -> bool:
        """Tell whether the peer has handled what it expects; once it has, that is not told again.

        Raises:
            RuntimeError: If it ends.
        """
        try:
            self.wait_counted(seconds_max)
        except TimeoutError:
            return False
        return True

    def release(self) -> None:
        """Tell the peer to end."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def stop(self) -> None:
        """End the process, with force if it must be."""
        self.release()
        if self._process.stdout is not None:
            self._process.stdout.close()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _await(self, word: str, seconds_max: float) -> str:
        """Return the line that begins with `word`; other lines are chatter of libraries."""
        deadline = time.monotonic() + seconds_max
        while True:
            line, separator, rest = self._received.partition(b"\n")
            if not separator:
                self._receive(word, deadline - time.monotonic())
                continue
            self._received = rest
            if (text := line.decode(errors="replace")).startswith(word):
                return text

    def _receive(self, word: str, seconds: float) -> None:
        output = self._process.stdout
        if output is None or not is_readable(output, seconds):
            raise TimeoutError(f"peer {self._target} did not say `{word}` in time")
        piece = os.read(output.fileno(), 65_536)
        if not piece:
            raise RuntimeError(f"peer {self._target} ended with status {self._process.wait()}, before `{word}`")
        self._received += piece


@contextmanager
def start_peers(
    target: str,
    setup: Setup,
    arguments: Sequence[Argument],
    environment: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> Iterator[list[Peer]]:
    """Start one peer for each argument, all at once, and stop them in the end."""
    peers: list[Peer] = []
    try:
        for argument in arguments:
            peers.append(Peer(target, setup, argument, environment, prefix))  # noqa: PERF401 - they must be stopped
        yield peers
    finally:
        _stop(peers)


@contextmanager
def start_chain(
    target: str, setup: Setup, argument: Argument, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[Peer, dict[str, str | int]]]:
    """Start the stages of a pipeline, the last one first, each being told the address of the next as `next_...`.

    Yields:
        The last stage, which counts, and the address of the first.
    """
    peers: list[Peer] = []
    address: dict[str, str | int] = {}
    try:
        for _ in range(setup.stages):
            following = {f"next_{key}": value for key, value in address.items()}
            peers.append(Peer(target, setup, {**argument, **following}, environment))
            address = peers[-1].address()
        yield peers[0], address
    finally:
        _stop(peers)


def _stop(peers: Sequence[Peer]) -> None:
    for peer in peers:
        peer.release()
    for peer in peers:
        peer.stop()


def join(peers: Sequence[Peer], submit: Callable[[int], object]) -> None:
    """Submit single events until each peer has seen one: subscriptions take a while to arrive.

    Raises:
        TimeoutError: If a peer sees none.
    """
    for peer in peers:
        peer.expect(1)
    waiting = list(peers)
    for _ in range(JOIN_ATTEMPTS_MAX):
        submit(1)
        waiting = [peer for peer in waiting if not peer.has_counted(JOIN_SECONDS)]
        if not waiting:
            # What was submitted too often must be gone before anything is counted.
            time.sleep(SETTLE_SECONDS)
            return
    raise TimeoutError(f"{len(waiting)} of {len(peers)} peers received nothing in {JOIN_ATTEMPTS_MAX} attempts")


def time_counted(peers: Sequence[Peer], submit: Callable[[int], object]) -> Session:
    """Return a session that takes from the first event submitted until the last is counted by every peer.

    Args:
        peers: Those who count.
        submit: Submits so many events and need not wait for them.
    """

    def session(count: int) -> float:
        for peer in peers:
            peer.expect(count)
        begun = time.perf_counter()
        submit(count)
        for peer in peers:
            peer.wait_counted()
        return (time.perf_counter() - begun) / count

    return session
