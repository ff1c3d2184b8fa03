"""Values of other processes: through shared memory, with little memory, and lost when their process is killed."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from echoic.terms import ReferenceKind, Term
from echoic.toolbus.references.exchange import Exchange
from echoic.toolbus.references.member import Member
from echoic.toolbus.references.words import Put
from tests.toolbus.references.post import EPOCH, Post

pytestmark = pytest.mark.system
SECONDS = 30
SIZE = 16 * 1024 * 1024
OWNER = Path(__file__).with_name("owner.py")

Start = Callable[[str], tuple["subprocess.Popen[str]", Put]]


@pytest.fixture
def asker() -> Iterator[Member]:
    post = Post()
    yield post.join(2, Exchange())
    post.close()


@pytest.fixture
def start() -> Iterator[Start]:
    """Start owners, and end them after the test."""
    owners: list[subprocess.Popen[str]] = []

    def begin(kind: str) -> tuple["subprocess.Popen[str]", Put]:
        words = [sys.executable, str(OWNER), str(SIZE), kind]
        owner = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        owners.append(owner)
        assert owner.stdout is not None
        variable, endpoint, token = owner.stdout.readline().split()
        path, size = (0,), SIZE
        return owner, Put(
            1, int(variable), 1, (endpoint,), path, ReferenceKind(kind), "", 0, size, bytes.fromhex(token), epoch=EPOCH
        )

    yield begin
    for owner in owners:
        owner.kill()
        owner.communicate()


def memory_of(owner: "subprocess.Popen[str]") -> int:
    """Return how many bytes a process has for itself, without what it shares."""
    for line in Path(f"/proc/{owner.pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError


@pytest.mark.parametrize("kind", ["blob", "str"])
def test_sending_a_value_takes_no_second_copy_of_it(start: Start, asker: Member, kind: str) -> None:
    owner, put = start(kind)
    before, most, done = memory_of(owner), 0, threading.Event()

    def look() -> None:
        nonlocal most
        while not done.is_set():
            most = max(most, memory_of(owner))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(5):
            value = asker.fetch(put).result(SECONDS)
            assert isinstance(value, bytes | str)
            assert len(value) == SIZE
    finally:
        done.set()
        looking.join()
    assert most - before < 4 * 1024 * 1024
    assert asker.statistics().direct == 5


def test_the_value_of_a_process_that_is_killed_is_lost_and_nobody_hangs(start: Start, asker: Member) -> None:
    owner, put = start("blob")
    owner.send_signal(signal.SIGSTOP)
    coming = asker.fetch(put)
    owner.kill()
    assert coming.result(SECONDS) == Term("lost-value", "tool 1 is gone")
    assert asker.fetch(put).result(SECONDS) == Term("lost-value", "tool 1 is gone")
