"""Shared objects between real hubs: in one process, and one in a process of its own."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import echoic
from echoic.eager import SharedReference
from echoic.errors import ClosedError, LocalError, RefusedError, UnreachableError
from tests.hub.parties import eventually

ROOT = Path(__file__).parents[2]


class Box(echoic.SharedObject):
    start: int = 0
    end: int = 4
    name: str = "all"


class Other(echoic.SharedObject):
    depth: float = 0.0


@pytest.fixture
def hubs() -> Iterator[tuple[echoic.Hub, echoic.Hub]]:
    with echoic.Hub() as home, echoic.Hub() as away:
        yield home, away


def copy(hub: echoic.Hub, box: Box) -> Box:
    return hub.follow(box.reference("box"), Box)


def test_what_is_published_anywhere_is_seen_everywhere(hubs: tuple[echoic.Hub, echoic.Hub]) -> None:
    box = Box(1)
    hubs[0].share(box)
    other = copy(hubs[1], box)
    assert (other.start, other.id, other.version) == (1, box.id, 0)
    box.end = 9
    box.publish()
    eventually(lambda: other.end == 9)
    other.name = "some"
    other.publish()
    assert other.name == "some"
    eventually(lambda: box.name == "some")
    assert other.pull() == 2
    assert (box.version, box.end, box.stale, other.stale) == (2, 9, False, False)


def test_copies_in_one_hub_are_the_same_values_at_once(hubs: tuple[echoic.Hub, echoic.Hub]) -> None:
    box = Box()
    hubs[0].share(box)
    beside, away, further = copy(hubs[0], box), copy(hubs[1], box), copy(hubs[1], box)
    beside.start = 7
    beside.publish()
    assert (box.start, box.version) == (7, 1)
    away.name = "x"
    away.publish()
    assert further.name == "x"


def test_a_pull_brings_what_a_lazy_master_has_not_told(hubs: tuple[echoic.Hub, echoic.Hub]) -> None:
    box = Box()
    hubs[0].share(box, policy="lazy")
    other = copy(hubs[1], box)
    other.pull()
    for number in range(1, 200):
        box.start = number
        box.publish()
    assert other.pull() == 199
    assert other.start == 199
    box.start = 1000
    box.publish()
    eventually(lambda: other.start == 1000)


def test_callbacks_may_wait_and_fail_without_harm(
    hubs: tuple[echoic.Hub, echoic.Hub], caplog: pytest.LogCaptureFixture
) -> None:
    box, heard, go_on = Box(), [], threading.Event()
    hubs[0].share(box)
    other = copy(hubs[1], box)
    other.pull()

    def wait(changed: Box) -> None:
        go_on.wait(10)
        heard.append((changed.pull(), changed.start))
        raise ValueError("a callback fails")

    other.on_change(wait)
    for number in range(1, 50):
        box.start = number
        box.publish()
    eventually(lambda: other.start == 49)
    go_on.set()
    eventually(lambda: heard[-1:] == [(49, 49)])
    assert len(heard) < 49
    box.start = 50
    box.publish()
    eventually(lambda: heard[-1] == (50, 50))
    assert "a callback fails" in caplog.text


def test_writers_in_several_threads_and_hubs_lose_nothing(hubs: tuple[echoic.Hub, echoic.Hub]) -> None:
    box = Box()
    hubs[0].share(box)
    copies = {"start": copy(hubs[1], box), "end": box, "name": copy(hubs[1], box)}

    def work(field: str, one: Box) -> None:
        for number in range(500):
            setattr(one, field, str(number) if field == "name" else number)
            one.publish()

    threads = [threading.Thread(target=work, args=item) for item in copies.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    version = copies["start"].pull()
    assert (box.start, box.end, box.name, box.version) == (499, 499, "499", version)
    assert copies["name"].snapshot() == copies["start"].snapshot() == box.snapshot()


def test_a_broken_link_is_made_up_for(hubs: tuple[echoic.Hub, echoic.Hub]) -> None:
    box = Box()
    hubs[0].share(box)
    other = copy(hubs[1], box)
    other.pull()
    for number in range(1, 6):
        for link in hubs[number % 2]._switchboard.links():  # noqa: SLF001 - to break it
            if link.connection is not None:
                link.connection.close()
        box.start, other.end = number, number
        box.publish()
        other.publish()
        eventually(lambda number=number: other.start == number and box.end == number)
    eventually(lambda: not other.stale and other.version == box.version)


def test_sharing_twice_changes_nothing_and_elsewhere_is_a_mistake(hubs: tuple[echoic.Hub, echoic.Hub]) -> None:
    box = Box()
    hubs[0].share(box)
    id = box.id
    hubs[0].share(box)
    assert box.id == id
    assert id.startswith(f"{hubs[0].address}/shared/1-")
    with pytest.raises(LocalError, match="shared by another hub"):
        hubs[1].share(box)
    with pytest.raises(LocalError, match="got 'slowly'"):
        hubs[0].share(Box(), policy="slowly")


def test_a_reference_that_does_not_fit_is_refused(hubs: tuple[echoic.Hub, echoic.Hub]) -> None:
    box = Box()
    hubs[0].share(box)
    reference = box.reference("box")
    for wrong in (
        msgspec.structs.replace(reference, format=b"nonsense"),
        msgspec.structs.replace(reference, values=b""),
        msgspec.structs.replace(reference, id="somewhere"),
    ):
        with pytest.raises(RefusedError, match="`Box` cannot be had here"):
            hubs[1].follow(wrong, Box)
    with pytest.raises(RefusedError, match="expected the fields"):
        hubs[1].follow(reference, Other)
    assert len(hubs[1]._switchboard.core.sharing) == 0  # noqa: SLF001 - nothing may be left of it


def test_the_last_copy_that_is_closed_ends_the_watching(hubs: tuple[echoic.Hub, echoic.Hub]) -> None:
    box = Box()
    hubs[0].share(box)
    one, two = copy(hubs[1], box), copy(hubs[1], box)
    one.pull()
    master = hubs[0]._switchboard.core.sharing.get(box.id)  # noqa: SLF001 - who watches is not public
    one.close()
    assert len(master.watchers) == 1
    two.close()
    eventually(lambda: not master.watchers)
    third = copy(hubs[1], box)
    third.pull()
    box.close()
    eventually(lambda: third.stale)
    third.start = 5
    with pytest.raises(UnreachableError, match="not shared any more"):
        third.publish()


def test_copies_of_a_hub_that_was_closed_keep_their_values() -> None:
    box = Box(3)
    with echoic.Hub() as away:
        with echoic.Hub() as home:
            home.share(box)
            other = copy(away, box)
            other.pull()
        assert box.stale
        box.start = 4
        with pytest.raises(ClosedError, match="the hub was closed"):
            box.publish()
        eventually(lambda: other.stale)
        assert (other.start, other.end) == (3, 4)
        with pytest.raises(UnreachableError):
            other.pull()


PROGRAM = """
import sys, msgspec, echoic
from echoic.eager import SharedReference
class Box(echoic.SharedObject):
    start: int = 0
    end: int = 4
    name: str = "all"
with echoic.Hub() as hub:
    reference = msgspec.msgpack.decode(bytes.fromhex(sys.argv[1]), type=SharedReference)
    box = hub.follow(reference, Box)
    box.pull()
    print(box.start, flush=True)
    sys.stdin.readline()
    box.pull()
    print(box.start, box.name, flush=True)
    box.name = "from the child"
    box.publish()
    box.pull()
"""


@pytest.mark.system
def test_a_copy_in_another_process_follows_and_writes(hubs: tuple[echoic.Hub, echoic.Hub]) -> None:
    box = Box(1)
    hubs[0].share(box)
    told = msgspec.msgpack.encode(box.reference("box")).hex()
    assert msgspec.msgpack.decode(bytes.fromhex(told), type=SharedReference).id == box.id
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, told], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    with child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "1\n"
        box.start = 8
        box.publish()
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "8 all\n"
        eventually(lambda: box.name == "from the child")
    assert child.returncode == 0
