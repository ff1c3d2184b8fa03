"""`echoic bus refs` with a real bus and real tools: large values that stay with tools while a script refers to them."""

import json
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic.cli.bus_refs import OLD_SECONDS, _lines
from echoic.cli.bus_run import threshold_of
from echoic.errors import LocalError
from tests.cli.terminals import Desk, desk, poll, type_here

CAMERA = """
from typing import Annotated
from echoic.toolbus import Term, Tool, eval_

class Camera(Tool, name="camera"):
    @eval_
    def shoot(self, number: int) -> Annotated[Term, "picture(int,blob)"]:
        return Term("picture", number, bytes([number]) * 300_000)

Camera.run()
"""
PRINTER = """
from typing import Annotated
from echoic.toolbus import Term, Tool, eval_

class Printer(Tool, name="printer"):
    @eval_
    def show(self, picture: bytes) -> Annotated[Term, "shown(int,int)"]:
        return Term("shown", picture[0], len(picture))

Printer.run()
"""
STUDIO = """
tool camera is { command = "python camera.py" }
tool printer is { command = "python printer.py" }
process Studio is
  let C: camera, P: printer, N: int, First: blob, Second: blob, Size: int in
    execute(camera, C?) . execute(printer, P?) .
    snd-eval(C, shoot(7)) . rec-value(C, picture(N?, First?)) .
    snd-eval(C, shoot(8)) . rec-value(C, picture(N?, Second?)) .
    snd-eval(P, show(First)) . rec-value(P, shown(N?, Size?)) . printf("%d: %d bytes\\n", N, Size) .
    END
  endlet
toolbus(Studio)
"""


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.chdir(tmp_path)
    Path("camera.py").write_text(CAMERA)
    Path("printer.py").write_text(PRINTER)
    Path("studio.tb").write_text(STUDIO)
    with tempfile.TemporaryDirectory() as runtime, desk() as made:  # the address of a socket must be short
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        yield made


@pytest.mark.system
def test_values_that_a_script_refers_to_are_listed(system: Desk) -> None:
    end = 'Second := First . printf("again\\n") . read("? ", N?) . shutdown("done")'
    running = system.start("bus", "run", "studio.tb", "-D", f"END={end}", "--threshold", "100KB").shows("again")
    poll(lambda: json.loads(type_here("bus", "refs", "--json")[1])["count"] == 1, "one value to be forgotten")
    answer = json.loads(type_here("bus", "refs", "studio", "--json")[1])
    (picture,) = answer["references"]
    assert (picture["owner"], picture["bytes"], picture["in_flight"]) == ("camera(1)", 300_000, [])
    assert "blob" in picture["signature"]
    assert any("Studio" in holder for holder in picture["holders"])
    assert (answer["bytes"], picture["age_seconds"] > 0) == (300_000, True)

    code, out, err = type_here("bus", "refs")
    assert (code, err) == (0, "")
    head, line, total = out.splitlines()
    assert head.split() == ["OWNER", "VARIABLE", "SIGNATURE", "SIZE", "AGE", "HELD", "BY", "ON", "ITS", "WAY", "TO"]
    assert line.startswith("camera(1)")
    assert "300.00 KB" in line
    assert total == "1 value, 300.00 KB"
    assert type_here("bus", "refs", "--older", "1h") == (0, "no value is referred to by studio.tb\n", "")

    state = json.loads(type_here("bus", "console", "--json")[1])["statistics"]
    assert (state["references"], state["fetched"]) == (1, 0)
    assert "references:  1 values are with tools; the bus itself has needed 0" in type_here("bus", "console")[1]
    running.type("1")
    assert running.ends() == 0, running.err
    assert running.out.startswith("7: 300000 bytes\n")
    assert type_here("bus", "refs")[::2] == (3, "error: no bus runs here (echoic bus run --help)\n")


@pytest.mark.system
@pytest.mark.parametrize("threshold", ["0", "1MB", "none", "auto"])
def test_a_script_does_the_same_with_every_threshold(system: Desk, threshold: str) -> None:
    ran = system.run("bus", "run", "studio.tb", "-D", 'END=shutdown("done")', "--threshold", threshold, "--lease", "5")
    assert (ran.process.returncode, ran.out) == (0, "7: 300000 bytes\n"), ran.err


@pytest.mark.system
def test_what_is_no_size_and_no_time_is_refused(system: Desk) -> None:
    for words, message in (
        (("--threshold", "much"), "expected a number of bytes such as 500MB, 2GB or 1GiB, got `much`"),
        (("--lease", "soon"), "expected a time such as 15m, 36h or 7d, got `soon`"),
    ):
        code, _, err = type_here("bus", "run", "studio.tb", "-D", 'END=shutdown("")', *words)
        assert (code != 0, message in err) == (True, True)


def test_a_threshold_is_a_number_of_bytes_or_one_of_two_words() -> None:
    assert [threshold_of(text) for text in ("auto", "none", "0", "64KiB", "1M")] == [None, math.inf, 0, 65_536, 10**6]
    with pytest.raises(LocalError, match="got nothing"):
        threshold_of("")


def reference(age_seconds: float, *, holders: list[str] | None = None, in_flight: list[str] | None = None) -> dict:
    return {
        "owner": "camera(1)",
        "variable": 4,
        "signature": "blob",
        "bytes": 2_000_000,
        "age_seconds": age_seconds,
        "holders": holders or [],
        "in_flight": in_flight or [],
    }


def test_what_is_held_for_long_is_pointed_at() -> None:
    held = reference(OLD_SECONDS, holders=["a", "b", "c", "d"])
    asked = reference(OLD_SECONDS, in_flight=["printer(2)"])
    answer = {"name": "studio", "script": "s.tb", "count": 60, "bytes": 120_000_000, "references": [held, asked]}
    _, first, second, total, *hints = _lines(answer)
    assert "5 min  a, b, c and 1 more" in first
    assert second.endswith("printer(2)")
    assert total == "60 values, 120.00 MB, of which 58 are not shown"
    assert hints[0].startswith("hint: 1 value, 2.00 MB, held for more than 5 min: a variable holds its value until")
    assert hints[1] == "hint: printer(2) does not fetch what it was told (echoic bus console studio)"
    young = {**answer, "count": 1, "references": [reference(3.0, holders=["a"])]}
    assert len(list(_lines(young))) == 3
