"""Trial 25: the driver of a pipeline is killed in the middle of a batch; each event is in the table once.

The others take their turn too: Python workers, the recorder and the intake are killed once each. The driver is killed
last, and the one in its place has to finish: to start a further one for that takes as long as a kill. The campaign
(`python -m tests.spark.kill_campaign --kills 30`) does the same to everybody often.

All of them have certificates and just the rights that they need: to start everybody a second time, plain, would take
longer than the kills, and plain ones are started by all other tests of Spark. With `--release` half of it is plain.
"""

import random
import time
from pathlib import Path

import msgspec
import pyarrow
import pyarrow.parquet
import pytest

from echoic.spark import committed_files
from echoic.testing.trials import commit_name
from tests.reliability.trying import sized
from tests.spark import kill_campaign
from tests.spark.kill_campaign import GRANTS, CampaignReport, Kind, differences_in, run_campaign

pytestmark = [pytest.mark.system, pytest.mark.slow]

OTHERS: tuple[Kind, ...] = ("workers", "recorder", "intake")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pipeline")


@pytest.fixture(scope="module")
def report(request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> CampaignReport:
    given = request.config.getoption("--seed")
    seed = time.time_ns() % 2**32 if given is None else given
    plain = sized(request, "spark_restart") // 2 if request.config.getoption("--release") else 0
    drivers: list[Kind] = ["driver"] * (sized(request, "spark_restart") - plain)
    kinds = [*drivers[1:], *OTHERS]
    random.Random(seed).shuffle(kinds)
    secured = run_campaign(folder, [*kinds, "driver"], seed, secured=True)
    if not plain:
        return secured
    without = run_campaign(tmp_path_factory.mktemp("plain"), ["driver"] * plain, seed)
    kills = {**secured.kills, "driver": secured.kills["driver"] + without.kills["driver"]}
    return msgspec.structs.replace(secured, kills=kills, wrong=secured.wrong + without.wrong)


def test_the_table_is_what_was_recorded_each_event_once(request: pytest.FixtureRequest, report: CampaignReport) -> None:
    assert report.kills == {"driver": sized(request, "spark_restart"), **dict.fromkeys(OTHERS, 1)}
    assert report.recorded > 0
    assert not report.wrong, f"{report.wrong}: --seed {report.seed}, at commit {commit_name()}"
    print("spark_restart", report)


@pytest.mark.parametrize(("rows", "told"), [(-1, "lacks 1 of"), (1, "has 1 more than")], ids=["lost", "doubled"])
def test_a_row_that_is_lost_or_doubled_is_found(report: CampaignReport, folder: Path, rows: int, told: str) -> None:
    assert report.recorded > 0
    file = next(each for each in committed_files(str(folder / "tables" / "ticks")))
    kept = Path(file).read_bytes()
    table = pyarrow.parquet.read_table(file)
    changed = table.slice(1) if rows < 0 else pyarrow.concat_tables([table, table.slice(0, 1)])
    try:
        pyarrow.parquet.write_table(changed, file)
        assert any(told in wrong for wrong in differences_in(folder))
    finally:
        Path(file).write_bytes(kept)


def test_a_right_that_is_missing_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kill_campaign, "GRANTS", {**GRANTS, "exchange": ["publish ticks"]})
    with pytest.raises(AssertionError, match="`exchange` may not admin `ticks`"):
        run_campaign(tmp_path, ["driver"], 0, secured=True)
