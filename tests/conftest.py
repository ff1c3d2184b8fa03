"""What tests of several packages share: hubs that are closed when a test ends, and property tests without a clock.

Where the suite runs in several workers, the tests of a file stay together, since they share what is costly to start,
and those of Spark, since they share one session, and those in a browser, likewise. Groups by marks would say the same
in thirty files. Files of Spark that start a Java of their own stay together too, so that not all workers have one at a
time. Files that take long begin early, so that those which are left at the end are short and the workers end together;
the one that mostly waits begins with two trials, and the Javas behind these, when there is an archive of their classes.

Every Java of Spark that a test starts, by itself or by a command, is told to compile lightly, to collect with one
thread, and to take its classes from an archive, if there is one (tests/spark/class_archive.py): it lives for a minute,
and takes half of the computing until it has done its first work.

The tests themselves, sixteen thousand objects with all that they hold, are nothing that a collection of garbage has to
look at: it took half a second each time, and hundreds of tests ask for one. What a file leaves behind, such as
thousands of event types in caches, is put aside likewise: in the end that was as much.

Workers of pytest-xdist send reports as UTF-8, and end in the middle of all tests at a text that is none. Hostile texts
are what some tests here are about, so what a report shows of them is spelled out.
"""

import gc
import os
import signal
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from typing import Protocol

import hypothesis
import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from echoic import Hub

hypothesis.settings.register_profile("echoic", deadline=None)  # no timing decides a test
hypothesis.settings.load_profile("echoic")


@pytest.hookimpl
def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("echoic")
    group.addoption("--release", action="store_true", help="run the trials of tests/reliability at their release size")
    group.addoption("--seed", type=int, default=None, help="the seed of the trials of tests/reliability")


@pytest.hookimpl
def pytest_configure(config: pytest.Config) -> None:
    """Tell every Java how to run; the workers have it from the process that starts them, which makes the archive.

    A shell lets what it starts in the background ignore Ctrl-C, and all that this starts: tests press it all the same.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "SPARK_SUBMIT_OPTS" in os.environ:
        return
    from tests.spark.class_archive import archive_path, make_archive_aside, sharing_options

    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    archive = archive_path()
    if archive is not None:
        options.append(sharing_options(archive))
        if config.getoption("numprocesses", None) and not archive.exists():
            config.add_cleanup(make_archive_aside(archive).wait)
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join(options)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    report.sections = [(heading, spelled_out(text)) for heading, text in report.sections]
    shown = report.longreprtext
    if spelled_out(shown) != shown:
        report.longrepr = spelled_out(shown)
    return report


@pytest.hookimpl
def pytest_collection_finish() -> None:
    put_aside()


@pytest.fixture(scope="module", autouse=True)
def what_stays_is_put_aside() -> Iterator[None]:
    yield
    put_aside()


def put_aside() -> None:
    """Let no collection look again at what has survived this one."""
    gc.collect()
    gc.freeze()


def spelled_out(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


FIRST = ("17_steady", "04_liveness", "03_safety")
"""Of three workers each has one, while an archive for Spark is made."""
TRIALS = ("18_strangers", "07_frames", "09_ecode", "08_coverage", "13_many_channels", "01_kills")
"""Those that take most of a core, by how much; the others follow with their folder."""

# Where few tests take long: processes that are started and killed, seeds by the thousand. Elsewhere many take no time.
LONG = (
    *(f"tests/reliability/test_{name}" for name in FIRST), "Java", "spark", "browser",
    *(f"tests/reliability/test_{name}" for name in TRIALS), "tests/reliability/",
    "tests/ecode/test_fuzz", "tests/ecode/test_native_compiling", "tests/scripts/checking/test_signatures",
    *(f"tests/{name}/" for name in (
        "cli", "system", "documents", "engines", "replicas", "toolbus", "simulation", "quality", "testing", "groups",
        "recorder", "papers",
    )),
)  # fmt: skip
OWN_JAVA = ("cluster", "declarative_pipelines", "java", "packing", "session", "worker_memory")
"""The files of Spark that have nothing to do with the session of the others."""

SPARK_TRIAL = "tests/reliability/test_25_spark_restart.py"


class ByFile(LoadScopeScheduling):
    """Gives each worker whole files, those that take long first; one gets all of Spark, and one all in a browser."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file.startswith("tests/viewer/browser/") or file == "tests/reliability/test_23_viewer.py":
            return "browser"
        if file == SPARK_TRIAL:
            return "Java"
        if not file.startswith("tests/spark/"):
            return file
        return "Java" if file.removeprefix("tests/spark/test_").removesuffix(".py") in OWN_JAVA else "spark"

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(min(self.workqueue, key=turn), last=False)
        super()._assign_work_unit(node)


def turn(scope: str) -> int:
    """The place of a file or its folder in `LONG`; of one folder, those with most tests are first, as in the queue."""
    return next((place for place, folder in enumerate(LONG) if scope.startswith(folder)), len(LONG))


@pytest.hookimpl
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    return ByFile(config, log)


class StartHub(Protocol):
    def __call__(self, listen: str = "127.0.0.1:0", **options: object) -> Hub: ...


@pytest.fixture
def start_hub() -> Iterator[StartHub]:
    with ExitStack() as stack:

        def start(listen: str = "127.0.0.1:0", **options: object) -> Hub:
            hub = Hub(listen, **options)
            stack.callback(hub.close)
            return hub

        yield start


@pytest.fixture(params=["memory", "unix", "tcp"])
def any_link(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let hubs of one process talk over each kind of link."""
    monkeypatch.setenv("ECHOIC_LINKS", request.param)
    return request.param
