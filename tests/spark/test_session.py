"""How a session is set: what it is told, what it prints, and what it says when it cannot start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from echoic.errors import PipelineError
from echoic.spark.session import session, settings

PROGRAM = """
import os, sys
from pathlib import Path
from pyspark.errors import PySparkException
from echoic.spark.session import end_session, session
spark = session("trial", "local[2]", {"spark.sql.shuffle.partitions": "3"}, log=Path("a folder", "spark.log"))
print(spark.sparkContext.appName, spark.conf.get("spark.sql.shuffle.partitions"))
print(spark.sql("select timestamp'1970-01-01 00:00:01'").first()[0].timestamp())
print(spark.range(4).mapInArrow(lambda batches: batches, "id bigint").count())
try:
    spark.range(3).selectExpr("assert_true(id < 2)").collect()
except PySparkException as error:
    print(error.getCondition())
print(session() is spark)
end_session(spark)
print(len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))
"""


def test_a_local_session_has_as_many_shuffle_partitions_as_cores_and_stays_on_loopback() -> None:
    chosen = settings("local[3]")

    assert chosen["spark.sql.shuffle.partitions"] == "3"
    assert chosen["spark.driver.bindAddress"] == chosen["spark.driver.host"] == "127.0.0.1"
    assert settings("local")["spark.sql.shuffle.partitions"] == "1"
    assert settings("local[2, 4]")["spark.sql.shuffle.partitions"] == "2"
    assert settings("local[*]")["spark.sql.shuffle.partitions"] == str(len(os.sched_getaffinity(0)))
    assert settings("local-cluster[2,3,1024]")["spark.sql.shuffle.partitions"] == "6"


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host:443"])
def test_a_session_on_a_cluster_is_told_nothing_that_only_holds_here(master: str) -> None:
    chosen = settings(master)

    assert "spark.driver.host" not in chosen
    assert "spark.sql.shuffle.partitions" not in chosen
    assert "spark.sql.streaming.checkpointFileManagerClass" not in chosen
    assert chosen["spark.sql.session.timeZone"] == "UTC"


@pytest.mark.parametrize("master", ["local[many]", "host:7077", "", "locale"])
def test_what_is_no_master_is_refused_before_anything_starts(master: str) -> None:
    with pytest.raises(PipelineError, match=r"a master of Spark is local, local\[\*\], .* got '"):
        session(master=master)


@pytest.mark.slow
def test_a_session_prints_nothing_and_leaves_nothing_but_its_log(tmp_path: Path) -> None:
    kept = ("SPARK_SUBMIT_OPTS",)  # by which every Java of the tests compiles lightly
    environment = {
        name: value for name, value in os.environ.items() if name in kept or not name.startswith(("SPARK", "PYSPARK"))
    }

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env={**environment, "TZ": "America/New_York"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert done.stderr == ""
    assert done.stdout.split() == ["trial", "3", "1.0", "4", "USER_RAISED_EXCEPTION", "True", "0"]
    assert [path.name for path in tmp_path.iterdir()] == ["a folder"]
    assert "USER_RAISED_EXCEPTION" in (tmp_path / "a folder" / "spark.log").read_text()


@pytest.mark.slow
def test_java_that_ends_before_spark_has_started_is_one_clear_error(tmp_path: Path) -> None:
    program = (
        "from echoic.errors import PipelineError\n"
        "from echoic.spark import session\n"
        "try:\n"
        "    session(settings={'spark.driver.extraJavaOptions': '-javaagent:missing.jar'})\n"
        "except PipelineError as error:\n"
        "    print(error)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False
    )

    assert "java ended before Spark had started; what it said is above" in done.stdout
    assert "missing.jar" in done.stderr
