"""The Corosync engine on real daemons: three nodes in network namespaces, links cut, processes and daemons killed.

`python -m tests.engines.test_corosync --cuts 12` cuts a link twelve times under load and counts what went wrong.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from echoic.engines.corosync import CorosyncEngine
from echoic.errors import LocalError, UnreachableError
from tests.engines.corosync_cluster import CorosyncCluster, cluster, why_not
from tests.engines.corosync_history import Stories, Story, violations_of

if TYPE_CHECKING:
    from subprocess import Popen

MEMBER = str(Path(__file__).with_name("corosync_member.py"))
needs_corosync = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is Corosync")
pytestmark = [pytest.mark.system, needs_corosync]
KEPT_BYTES_MAX = 64 * 1024 * 1024


class Members:
    """Processes, one on each node, and what they wrote down."""

    def __init__(self, nodes: CorosyncCluster, folder: Path, kept_bytes_max: int = KEPT_BYTES_MAX) -> None:
        self.nodes, self.folder, self.window, self.kept = nodes, folder, 8, kept_bytes_max
        self.bugs: tuple[str, ...] = ()
        self.folder.mkdir()
        self.stories = Stories(folder)
        self.processes: dict[int, Popen[bytes]] = {}
        self.lives = 0

    def start(self, *nodes: int) -> None:
        for node in nodes:
            self.lives += 1
            arguments = (f"n{node}", str(self.lives), str(self.folder), str(self.window), str(self.kept), *self.bugs)
            with (self.folder / f"errors.{node}.{self.lives}").open("wb") as errors:
                self.processes[node] = self.nodes.python(node, MEMBER, *arguments, stderr=errors)

    def kill(self, node: int) -> None:
        self.processes[node].kill()
        self.processes.pop(node).wait(10)

    def living(self) -> list[Story]:
        latest = {story.name: story for story in sorted(self.stories.read(), key=lambda story: story.life)}
        return [latest[f"n{node}"] for node in self.processes if f"n{node}" in latest]

    def wait(self, fact: Callable[[list[Story]], bool], seconds: float = 60.0) -> list[Story]:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            living = self.living()
            if len(living) == len(self.processes) and fact(living):
                return living
            time.sleep(0.1)
        told = "".join(path.read_text()[-800:] for path in sorted(self.folder.glob("errors.*")))
        shown = [(s.name, s.life, len(s.given), list(s.views.items())[-3:], s.restored, s.ended) for s in self.living()]
        raise AssertionError(f"it does not come true: {shown} {told}")

    def run_for(self, seconds: float) -> None:
        """Wait until everybody has been given more, and for some time."""
        before = {(story.name, story.life): len(story.given) for story in self.living()}
        time.sleep(seconds)
        self.wait(lambda all_: all(len(s.given) > before.get((s.name, s.life), 0) for s in all_))

    def finish(self) -> list[Story]:
        """Let all stop to send, wait until all have everything, and check; return what everybody was given."""
        (self.folder / "stop").touch()

        def complete(living: list[Story]) -> bool:
            has = {(sender, life): number for sender, life, number in living[0].given}
            same = all(story.given == living[0].given for story in living)
            return same and all(s.sent is not None and has.get((s.name, s.life), 0) == s.sent for s in living)

        self.wait(complete)
        stories = self.stories.read()
        assert violations_of(stories) == []
        assert max(len(story.given) for story in stories) == len(self.living()[0].given), "somebody had more than all"
        for node in list(self.processes):
            self.kill(node)
        return stories


@pytest.fixture(scope="module")
def three() -> Iterator[CorosyncCluster]:
    with cluster() as made:
        yield made


def in_view(count: int) -> Callable[[list[Story]], bool]:
    return lambda living: all(s.views and s.views[max(s.views)].count(",") == count - 1 for s in living)


def test_three_senders_are_ordered_alike_everywhere(three: CorosyncCluster, tmp_path: Path) -> None:
    members = Members(three, tmp_path / "logs")
    members.start(1, 2, 3)
    members.wait(in_view(3))
    members.run_for(1.0)
    stories = members.finish()
    assert {sender for sender, _, _ in stories[0].given} == {"n1", "n2", "n3"}
    assert all(story.views == {1: "n1,n2,n3"} for story in stories)


def test_a_killed_process_leaves_a_view_and_comes_back_with_all_it_missed(
    three: CorosyncCluster, tmp_path: Path
) -> None:
    members = Members(three, tmp_path / "logs")
    members.start(1, 2, 3)
    members.wait(in_view(3))
    members.run_for(0.3)
    members.kill(3)
    members.wait(in_view(2))
    members.run_for(0.3)
    members.start(3)
    members.wait(in_view(3))
    members.run_for(0.3)
    members.finish()


def test_a_member_that_missed_more_than_is_kept_takes_anothers_state(three: CorosyncCluster, tmp_path: Path) -> None:
    members = Members(three, tmp_path / "logs", kept_bytes_max=50_000)
    members.start(1, 2, 3)
    members.wait(in_view(3))
    members.kill(2)
    members.run_for(0.5)
    members.start(2)
    members.wait(in_view(3))
    stories = members.finish()
    assert [story.restored for story in stories if story.name == "n2"] == [0, 1]


def test_a_cut_off_member_is_given_nothing_and_then_everything(three: CorosyncCluster, tmp_path: Path) -> None:
    members = Members(three, tmp_path / "logs", kept_bytes_max=2_000_000)
    members.start(1, 2, 3)
    members.wait(in_view(3))
    members.run_for(0.3)
    three.cut(3)
    try:
        members.wait(lambda living: all(s.suspended if s.name == "n3" else in_view(2)([s]) for s in living))
        given = {story.name: len(story.given) for story in members.living()}
        time.sleep(0.5)
        later = {story.name: len(story.given) for story in members.living()}
    finally:
        three.heal(3)
    assert later["n3"] == given["n3"]
    assert later["n1"] > given["n1"]
    members.wait(in_view(3))
    members.run_for(0.3)
    members.finish()


def test_the_engine_of_a_killed_daemon_ends_and_the_others_go_on(three: CorosyncCluster, tmp_path: Path) -> None:
    members = Members(three, tmp_path / "logs")
    members.start(1, 2, 3)
    members.wait(in_view(3))
    members.run_for(0.3)
    three.kill_daemon(2)
    try:
        members.wait(lambda living: any(s.name == "n2" and "corosync" in s.ended for s in living))
        members.processes.pop(2).wait(10)
        members.wait(in_view(2))
        members.run_for(0.3)
    finally:
        three.restart_daemon(2)
    members.start(2)
    members.wait(in_view(3))
    members.run_for(0.3)
    members.finish()


@pytest.mark.skipif(Path("/run/corosync.pid").exists(), reason="a daemon runs on this machine")
def test_without_a_daemon_the_error_says_what_to_install() -> None:
    with pytest.raises(UnreachableError, match="Debian package"):
        CorosyncEngine("echoic", "n1", ["n1"], life=1, now_ns=0)


def test_a_member_must_be_one_of_the_configured_ones() -> None:
    with pytest.raises(LocalError, match="to be one of the members"):
        CorosyncEngine("echoic", "n4", ["n1", "n2"], life=1, now_ns=0)


def campaign(cuts: int, kept_bytes_max: int, bug: str | None, folder: Path) -> None:
    """Cut a link again and again under load from all three, and print what came of it."""
    with cluster() as nodes:
        members = Members(nodes, folder / "logs", kept_bytes_max=kept_bytes_max)
        members.window, members.bugs = 256, (bug,) if bug else ()
        members.start(1, 2, 3)
        members.wait(in_view(3))
        for index in range(cuts):
            node = index % 3 + 1
            time.sleep(0.2 + 0.13 * (index % 4))
            nodes.cut(node)
            time.sleep((0.3, 1.5, 2.0, 2.5)[index % 4])
            nodes.heal(node)
            members.wait(in_view(3), 30)
            found = violations_of(members.stories.read())
            if found:
                print(f"after {index + 1} cuts {len(found)} violations: {found[0]}")
                return
        stories = members.finish()
        packs = max(len(story.given) for story in stories)
        views = {position for story in stories for position in story.views}
        restored = sum(story.restored for story in stories)
        print(f"{cuts} cuts: {packs} packs, {len(views)} views, {restored} states taken, 0 violations")


if __name__ == "__main__":
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=12)
    parser.add_argument("--kept-bytes-max", type=int, default=2_000_000)
    parser.add_argument("--bug", help="a planted bug that should be found, as no-ack-wait")
    chosen = parser.parse_args()
    if why_not():
        sys.exit(why_not())
    with tempfile.TemporaryDirectory() as place:
        campaign(chosen.cuts, chosen.kept_bytes_max, chosen.bug, Path(place))
