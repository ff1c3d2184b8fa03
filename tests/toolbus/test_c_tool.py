"""A tool in another language, on the documented protocol alone: `examples/toolbus/sums.c`."""

import shutil
import subprocess
from pathlib import Path

import pytest

from echoic.terms import Term
from tests.hub.parties import eventually
from tests.toolbus.conftest import MakeBus

SOURCE = Path(__file__).resolve().parents[2] / "examples" / "toolbus" / "sums.c"
COMPILER = shutil.which("cc") or shutil.which("gcc")
pytestmark = [pytest.mark.system, pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")]


@pytest.fixture(scope="session")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("c") / "sums"
    subprocess.run([str(COMPILER), "-O1", "-Wall", "-Wextra", "-Werror", "-o", program, SOURCE], check=True, timeout=60)
    return program


def test_it_is_short() -> None:
    assert len(SOURCE.read_text("utf-8").splitlines()) < 150


def test_it_is_started_answers_does_and_ends(sums: Path, make_bus: MakeBus, printed: list[str]) -> None:
    bus = make_bus(
        f"""
        tool sums is {{ command = "{sums}" }}
        process P is let S: sums, N: int, W: str in
            execute(sums, S?)
            . snd-eval(S, add(2, 2)) . rec-value(S, sum(N?)) . printf("%d\\n", N)
            . snd-eval(S, add(-5, 2)) . rec-value(S, sum(N?)) . printf("%d\\n", N)
            . snd-eval(S, fib(80)) . rec-value(S, sum(N?)) . printf("%d\\n", N)
            . snd-eval(S, product(2, f([1.5, "x", <int>]))) . rec-value(S, tool-error(<str>, W?)) . printf("%s\\n", W)
            . snd-do(S, say("hello")) . snd-terminate(S, done) . rec-disconnect(S) . shutdown(done)
        endlet
        toolbus(P)
        """
    )
    assert bus.run(20) is Term("done")
    assert bus.warnings() == ()
    assert printed[:4] == ["4\n", "-3\n", "23416728348467685\n", "sums knows add and fib\n"]
    eventually(lambda: "sums(1) >> hello\n" in printed, "what the tool has printed last")


def test_it_connects_by_itself(sums: Path, make_bus: MakeBus) -> None:
    bus = make_bus(
        """
        tool sums is { }
        process P is let S: sums, N: int in
            rec-connect(S?) . snd-eval(S, add(20, 22)) . rec-value(S, sum(N?)) . shutdown(N)
        endlet
        toolbus(P)
        """
    )
    bus.start()
    host, port = bus.address.split(":")
    done = subprocess.run([sums, "-TB_HOST", host, "-TB_PORT", port], timeout=60, check=False)
    assert bus.wait(60)
    assert bus.value == 42
    assert done.returncode == 0


def test_it_is_refused_with_a_reason(sums: Path, make_bus: MakeBus) -> None:
    bus = make_bus("tool other is { }\nprocess P is let T: other in rec-connect(T?) endlet\ntoolbus(P)")
    bus.start()
    host, port = bus.address.split(":")
    done = subprocess.run([sums, "-TB_HOST", host, "-TB_PORT", port], timeout=60, check=False, capture_output=True)
    assert done.returncode == 1
    assert b"the script has no tool `sums`" in done.stderr


def test_a_signed_token_does_not_leave_the_machine_in_the_clear(sums: Path) -> None:
    words = [sums, "-TB_HOST", "192.0.2.1", "-TB_PORT", "7450"]  # an address of documents, where nobody is
    done = subprocess.run(words, timeout=60, check=False, capture_output=True, env={"TB_TOKEN": "echoic1.claims.seal"})
    assert (done.returncode, done.stderr) == (1, b"sums: a signed token goes through TLS only\n")
