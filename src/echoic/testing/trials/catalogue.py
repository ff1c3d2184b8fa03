"""The campaign: every fault that echoic is tried by, and what must hold through it.

A fault that is not listed is a bug that is not found. Each row is run small with the tests (`tests/reliability`), and
large before a release (`echoic soak NAME --release`, or the test with `--release`). The results are in
`docs/reliability.md`.
"""

from typing import Final

from echoic.errors import LocalError
from echoic.testing.trials.trial import Trial

__all__ = ["TRIALS", "trial_named"]

TRIALS: Final[tuple[Trial, ...]] = (
    Trial(
        number=1,
        name="kills",
        fault="SIGKILL of sources, sinks, name server, manager, recorder at random times",
        passes_when="nothing acknowledged is lost, doubled or out of order, and the bytes are those submitted",
        unit="kills",
        test_size=50,
        release_size=200,
        place="echoic.testing.trials.kills:run",
    ),
    Trial(
        number=2,
        name="power_loss",
        fault="power is lost: a simulated disk drops what was not synced, and tears the last write",
        passes_when="every acknowledged event is there",
        unit="losses of power",
        test_size=1000,
        release_size=50_000,
        place="echoic.testing.trials.power_loss:run",
    ),
    Trial(
        number=3,
        name="safety",
        fault="loss, doubles, reordering, one-way cuts, crashes and leaps of the clock, on virtual time",
        passes_when="every rule of every part holds at every step",
        unit="seeds",
        test_size=1000,
        release_size=100_000,
        place="echoic.testing.trials.safety:run",
    ),
    Trial(
        number=4,
        name="liveness",
        fault="the same; then all is healed, or in worlds a healthy core",
        passes_when="channels, derived channels and worlds go on within ten virtual seconds",
        unit="seeds",
        test_size=200,
        release_size=20_000,
        place="echoic.testing.trials.liveness:run",
    ),
    Trial(
        number=5,
        name="partitions",
        fault="one- and two-way cuts between network namespaces, and flapping ones",
        passes_when="the majority goes on, the minority stops, and both are one again within five seconds",
        unit="cuts",
        test_size=10,
        release_size=100,
        place="tests/reliability/test_05_partitions.py",
    ),
    Trial(
        number=6,
        name="half_open",
        fault="a firewall that drops every packet of a link, so that neither end is told",
        passes_when="it is noticed within five seconds, and nothing is lost when it is healed",
        unit="cuts",
        test_size=5,
        release_size=50,
        place="tests/reliability/test_06_half_open.py",
    ),
    Trial(
        number=7,
        name="frames",
        fault="mutated, cut and spliced frames, below and above their checksums",
        passes_when="nothing but the declared errors, and memory grows by less than 20 MB",
        unit="frames",
        test_size=20_000_000,
        release_size=1_000_000_000,
        place="echoic.testing.trials.frames:run",
    ),
    Trial(
        number=8,
        name="coverage",
        fault="input that a coverage-guided fuzzer finds, for every parser",
        passes_when="nothing but the declared errors",
        unit="seconds for each parser",
        test_size=1,
        release_size=120,
        place="echoic.testing.trials.coverage:run",
    ),
    Trial(
        number=9,
        name="ecode",
        fault="random E-Code, by native code, generated Python and a C compiler",
        passes_when="equal results, and nothing outside of its record is touched",
        unit="programs",
        test_size=2000,
        release_size=200_000,
        place="echoic.testing.trials.ecode:run",
    ),
    Trial(
        number=10,
        name="hostile_code",
        fault="shipped code that loops, hoards, nests, divides by zero and reads out of bounds",
        passes_when="it is stopped within 50 ms, and other sinks keep 95 % of their rate",
        unit="programs",
        test_size=40,
        release_size=400,
        place="echoic.testing.trials.hostile_code:run",
    ),
    Trial(
        number=11,
        name="slow_sinks",
        fault="sinks that stop reading (SIGSTOP), under each rule",
        passes_when="memory stays within 10 % of the limit, other sinks keep 90 % of their rate, gaps are exact",
        unit="events for each rule",
        test_size=1_000_000,
        release_size=20_000_000,
        place="echoic.testing.trials.slow_sinks:run",
    ),
    Trial(
        number=12,
        name="connections",
        fault="many connections that open, idle and close, plain and by TLS",
        passes_when=(
            "all are answered, file descriptors and threads return, and so does the room: a second crowd that has gone "
            "leaves no more than 10 % of what the first took"
        ),
        unit="plain connections",
        test_size=2000,
        release_size=8000,
        place="echoic.testing.trials.connections:run",
    ),
    Trial(
        number=13,
        name="many_channels",
        fault="many channels between two hubs",
        passes_when="an event takes at most twice as long as with one channel",
        unit="channels",
        test_size=4096,
        release_size=50_000,
        place="echoic.testing.trials.many_channels:run",
    ),
    Trial(
        number=14,
        name="disk_full",
        fault="a file system without room",
        passes_when="the producer is told, nothing acknowledged is lost, and it goes on when there is room",
        unit="full disks",
        test_size=20,
        release_size=200,
        place="tests/reliability/test_14_disk_full.py",
    ),
    Trial(
        number=15,
        name="bit_rot",
        fault="one flipped bit anywhere in a journal",
        passes_when="it is detected, never delivered, and recovery keeps the rest",
        unit="flips",
        test_size=10_000,
        release_size=1_000_000,
        place="echoic.testing.trials.bit_rot:run",
    ),
    Trial(
        number=16,
        name="clocks",
        fault="clocks that leap by an hour, run backwards and are stepped",
        passes_when="order is by sequence alone, and no lease is lost",
        unit="leaps",
        test_size=100,
        release_size=10_000,
        place="echoic.testing.trials.clocks:run",
    ),
    Trial(
        number=17,
        name="steady",
        fault="steady load with faults",
        passes_when="memory, file descriptors and threads stay flat, and so does the 99th percentile",
        unit="seconds",
        test_size=180,
        release_size=7200,
        place="echoic.testing.trials.steady:run",
    ),
    Trial(
        number=18,
        name="strangers",
        fault="slowloris, claims of 16 MiB, garbage, handshakes of TLS that are left and floods of connections, 60 a "
        "second, before anybody has said who he is",
        passes_when="honest peers keep 80 % of their rate, and memory stays bounded",
        unit="seconds",
        test_size=30,
        release_size=600,
        place="echoic.testing.trials.strangers:run",
    ),
    Trial(
        number=19,
        name="tls_matrix",
        fault=(
            "wrong authority, expired, revoked, none, TLS 1.2, wrong name, on every kind of connection; "
            "certificates that expire while it stands"
        ),
        passes_when="each is refused or hung up on, and nothing is told",
        unit="rounds of all cells",
        test_size=1,
        release_size=10,
        place="echoic.testing.trials.tls_matrix:run",
    ),
    Trial(
        number=20,
        name="acl_matrix",
        fault="every right of every actor, granted and not",
        passes_when="what is not granted is refused and told to the auditor; other trials hold with rights on too",
        unit="rounds of all cells",
        test_size=1,
        release_size=10,
        place="echoic.testing.trials.acl_matrix:run",
    ),
    Trial(
        number=21,
        name="escapes",
        fault="shipped Python that reaches for files, network, processes, signals, memory and time",
        passes_when="all is refused, nobody else notices, and an honest one starts within 50 ms",
        unit="attempts",
        test_size=60,
        release_size=600,
        place="echoic.testing.trials.escapes:run",
    ),
    Trial(
        number=22,
        name="no_pickle",
        fault="pickles sent to every port",
        passes_when="they are bad frames and nothing else, and nothing on the way of a wire imports pickle",
        unit="pickles for each port",
        test_size=15,
        release_size=1500,
        place="echoic.testing.trials.no_pickle:run",
    ),
    Trial(
        number=23,
        name="viewer",
        fault="markup in events, foreign pages, no token, in a real browser",
        passes_when="nothing runs, and who is not let in is told nothing",
        unit="hostile texts",
        test_size=15,
        release_size=150,
        place="tests/reliability/test_23_viewer.py",
    ),
    Trial(
        number=24,
        name="upgrades",
        fault="hubs, types and journals of other versions, both ways",
        passes_when="all understand each other, or say that they do not",
        unit="pairs",
        test_size=10,
        release_size=100,
        place="echoic.testing.trials.upgrades:run",
    ),
    Trial(
        number=25,
        name="spark_restart",
        fault="the driver of a pipeline is killed in the middle of a batch",
        passes_when="the table is what was recorded, each event once",
        unit="kills",
        test_size=5,
        release_size=50,
        place="tests/reliability/test_25_spark_restart.py",
    ),
)


def trial_named(name: str) -> Trial:
    """Return a trial by its name or number.

    Raises:
        LocalError: There is none.
    """
    for trial in TRIALS:
        if name in (trial.name, str(trial.number)):
            return trial
    from echoic.ecode.syntax.nearest import did_you_mean  # late: a compiler comes with it

    names = [each.name for each in TRIALS]
    raise LocalError(f"there is no trial `{name[:40]}`{did_you_mean(name, names)}, expected one of: {', '.join(names)}")
