"""Trial 10: hostile code, shipped to a source that has other sinks."""

from pathlib import Path
from random import Random

import pytest

from echoic.errors import EchoicError
from echoic.testing.charter import Charter
from echoic.testing.trials import hostile_code
from echoic.testing.trials.hostile_code import Verdicts
from echoic.testing.trials.hostile_programs import TEMPLATES, draw_programs
from tests.reliability.trying import try_out


@pytest.mark.slow
@pytest.mark.system
def test_hostile_code_is_refused_or_stopped_and_the_other_sink_does_not_notice(request: pytest.FixtureRequest) -> None:
    figures = try_out(request, "hostile_code").figures
    assert figures["refused"] + figures["secured_refused"] > 10
    assert figures["stopped"] + figures["secured_stopped"] > 5
    assert min(figures["secured_refused"], figures["secured_stopped"]) > 1
    assert figures["sandbox"] == "bubblewrap"


def test_every_kind_of_harm_is_drawn_and_the_same_seed_draws_the_same() -> None:
    one, other = (list(draw_programs(Random(3), 2 * len(TEMPLATES) + 2)) for _ in range(2))
    assert one == other
    assert {program.name for program in one} == {*TEMPLATES, "a flood of output"}


def test_a_compiler_that_takes_its_time_to_refuse_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = hostile_code.Workshop

    def slow(*given: object) -> object:
        for _ in range(9_000_000):
            pass
        return honest(*given)

    monkeypatch.setattr(hostile_code, "Workshop", slow)
    stage, verdicts = hostile_code.Stage(), Verdicts()
    for program in draw_programs(Random(1), 4):
        if program.name == "huge state":
            hostile_code._try_program(stage, program, verdicts)  # noqa: SLF001 - one of many
    stage.close()
    assert any("was refused after" in problem for problem in verdicts.problems), verdicts.fates


def test_a_hub_that_never_suspends_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("echoic.channels.derivation.Derivation.suspend", lambda self, reason: None)
    stage, verdicts = hostile_code.Stage(), Verdicts()
    try:
        for program in draw_programs(Random(1), 2):
            hostile_code._try_program(stage, program, verdicts)  # noqa: SLF001 - one of many
    finally:
        stage.close()
    assert any("was never stopped" in problem for problem in verdicts.problems)


def test_attacks_that_take_their_share_of_others_are_found() -> None:
    verdicts = Verdicts()
    verdicts.kept, verdicts.taken = [0.96, 0.97], [0.04]
    assert hostile_code._judged(verdicts) == []  # noqa: SLF001 - no hub is needed for that
    verdicts.kept, verdicts.taken = [0.94, 0.93], [0.06]
    kept, taken = hostile_code._judged(verdicts)  # noqa: SLF001 - as above
    assert "the other sink kept 93.5% of its rate" in kept
    assert "attacks took 6.0% of the time" in taken


def test_a_right_that_is_missing_is_found(tmp_path: Path) -> None:
    """The secured half is what it says: hostile code of who may not derive does not get as far as to be stopped."""
    grants = {**hostile_code.GRANTS, "hostile": ["subscribe samples"]}
    stage = hostile_code.Stage(Charter.draw_up(tmp_path / "charter", grants))
    harmful = next(iter(draw_programs(Random(1), 1)))
    try:
        with pytest.raises(EchoicError, match="`hostile` may not derive `samples`"):
            hostile_code._try_program(stage, harmful, Verdicts())  # noqa: SLF001 - one of many
    finally:
        stage.close()
