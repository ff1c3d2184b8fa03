"""Sources steered from the command line."""

import json

import pytest

from echoic import Context, Controls, Hub, event
from echoic.cli.steer import _values
from echoic.errors import EncodeError
from tests.cli.terminals import desk


@event
class Sample:
    t: float


@event
class Pace:
    rate: float


def test_a_value_is_what_it_looks_like() -> None:
    words = ["rate=10", "gain=2.5", "on=true", "mode=fast", 'name="10"', "low=-1e3"]
    assert _values(words) == {"rate": 10, "gain": 2.5, "on": True, "mode": "fast", "name": "10", "low": -1000.0}
    assert [type(value) for value in _values(words).values()] == [int, float, bool, str, str, float]
    assert _values([]) == {}
    with pytest.raises(EncodeError, match="expected a number, text or truth"):
        _values(["rates=[1, 2]"])


@pytest.mark.system
def test_sources_are_steered_by_name_and_answer_one_by_one() -> None:
    asked: list[dict[str, object]] = []

    def tune(**values: object) -> dict[str, object]:
        asked.append(values)
        return {"rate": 10}

    with desk() as room, Hub() as hub:
        channel = hub.create("reactor", Sample, context=Pace)
        source = channel.source(
            controls=Controls(tune=tune), context=Context(Pace(1.0), writable=("rate",), functions={"vent": print})
        )
        channel.source()
        shown = room.run("steer", channel.id, "tune", "rate=10", "mode=fast")
        assert f"{hub.address}  done  rate=10\n" in shown.out
        assert f"{hub.address}  refused: the source offers no controls\n" in shown.out
        assert "1 of 2 sources have not done as asked" in shown.err
        assert asked == [{"rate": 10, "mode": "fast"}]
        lines = room.run("steer", channel.id, "tune", "--json").out.splitlines()
        found = {answer["source"]: answer for answer in map(json.loads, lines)}
        assert found[source.id]["values"] == {"rate": 10}
        denied = room.run("steer", channel.id, "stop")
        assert denied.process.returncode == 4
        assert "the source has no control to stop it" in denied.err
        wrong = room.run("steer", channel.id, "melt")
        assert wrong.process.returncode == 2
        derived = room.run("derive", channel.id, "context.rate > 1", "--leave")
        assert derived.process.returncode == 0, derived.err
