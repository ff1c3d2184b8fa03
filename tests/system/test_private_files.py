"""What is kept of events and states is its owner's alone, whatever the umask, or a prepared group may read it too."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic.formats import Format
from echoic.recorder import Disk, Journal
from echoic.replicas import database_of
from echoic.spark.pipeline.state import write_json
from echoic.toolbus import Bus, Recording
from tests.conftest import StartHub
from tests.hub.intake_parties import Writer
from tests.hub.parties import Tick

pytestmark = pytest.mark.system

SCRIPT = 'process P is printf("done") . shutdown(1)\ntoolbus(P)'


@pytest.fixture
def careless() -> Iterator[None]:
    """A umask that hides nothing."""
    before = os.umask(0)
    yield
    os.umask(before)


def keep_everything(place: Path, start_hub: StartHub) -> None:
    """Keep something in each of the ways there are; most make the folder that they keep it in."""
    hub = start_hub()
    hub.create("ticks", Tick)
    hub.record("ticks", place / "journals")
    with hub.open("ticks", Tick).source() as source:
        source.submit_sync(Tick(1, 1))
    hub.intake("rows", place / "intakes", Tick)
    writer = Writer(hub, "rows")
    writer.stage(0, [1])
    writer.commit(0)
    group = hub.join("ledger", Tick, me="a", peers={"a": hub.address}, path=place / "member")
    group.submit_sync(Tick(1, 1))
    hub.close()
    Disk(place / "journals").lock("ticks/held").release()
    database = database_of(f"sqlite:{place}/log.db")
    database.prepare("ticks", Format.of(Tick))
    with Recording(place / "words") as words, Bus.from_script(SCRIPT, log=place / "run", output=lambda _: None) as bus:
        bus.on_word(words.add)
        bus.run(10)
    write_json(place / "pipeline" / "run.json", {"run": 1})


def modes(place: Path) -> dict[str, set[str]]:
    """Return which modes the files and the folders have."""
    found: dict[str, set[str]] = {"files": set(), "folders": set()}
    for each in place.rglob("*"):
        mode = f"{stat.S_IMODE(each.stat().st_mode):04o}"
        found["folders" if each.is_dir() else "files"].add(mode)
    return found


@pytest.mark.usefixtures("careless")
def test_what_is_kept_is_its_owners_alone(tmp_path: Path, start_hub: StartHub) -> None:
    place = tmp_path / "kept"
    place.mkdir(0o755)
    keep_everything(place, start_hub)
    assert len(list(place.rglob("*"))) > 15
    assert modes(place) == {"files": {"0600"}, "folders": {"0700"}}
    assert stat.S_IMODE(place.stat().st_mode) == 0o755, "what somebody made stays as it is"


@pytest.mark.usefixtures("careless")
def test_the_group_of_a_folder_that_hands_it_down_may_read_what_is_kept(tmp_path: Path, start_hub: StartHub) -> None:
    place = tmp_path / "kept"
    place.mkdir()
    place.chmod(0o2750)
    keep_everything(place, start_hub)
    assert modes(place) == {"files": {"0640"}, "folders": {"2750"}}
    assert {each.stat().st_gid for each in place.rglob("*")} == {place.stat().st_gid}


@pytest.mark.usefixtures("careless")
def test_what_is_put_right_again_stays_private(tmp_path: Path, start_hub: StartHub) -> None:
    hub = start_hub()
    hub.create("ticks", Tick)
    hub.record("ticks", tmp_path / "journals")
    with hub.open("ticks", Tick).source() as source:
        source.submit_sync(Tick(1, 1))
    hub.close()
    (segment,) = (tmp_path / "journals").rglob("*.segment")
    with segment.open("ab") as file:
        file.write(b"torn")
    again = start_hub()
    again.create("ticks", Tick)
    again.record("ticks", tmp_path / "journals")
    again.close()
    assert len(list(Journal(tmp_path / "journals", "ticks").read())) == 1
    assert modes(tmp_path / "journals") == {"files": {"0600"}, "folders": {"0700"}}
