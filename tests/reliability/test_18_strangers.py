"""Strangers who attack: honest peers hardly notice, nothing is left behind; and whatever is is found."""

import re
import socket
from pathlib import Path

import msgspec
import pytest

from echoic.errors import LocalError
from echoic.hub import Hub
from echoic.links import parse_address
from echoic.testing.charter import Charter
from echoic.testing.trials import strangers
from echoic.testing.trials.onslaught import whole_client_hello
from echoic.testing.trials.strangers import GRANTS, GROWTH_BYTES_MAX, Siege, besiege, judge
from echoic.testing.trials.vital_signs import VitalSigns
from tests.reliability.trying import try_out

pytestmark = pytest.mark.system
PATIENCE = 20.0
HANDSHAKE = b"\x16"
FLIGHT_BYTES_MIN = 600  # more than an alert has, or an answer without a certificate
GOOD = Siege(
    kind="plain",
    calm=[8000.0, 9000.0, 8500.0],
    attacked=[7500.0, 8500.0, 8000.0],
    newcomer_seconds=[0.01, 0.02],
    strangers=900,
    before=VitalSigns(80_000_000, 20, 10),
    peak_bytes=90_000_000,
    after=VitalSigns(88_000_000, 20, 10),
)


def test_strangers_keep_nobody_from_his_work(request: pytest.FixtureRequest) -> None:
    try_out(request, "strangers")


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert judge(GOOD) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"attacked": [6000.0, 6500.0, 6000.0]}, "keeps 72% of its rate"),
        ({"newcomer_seconds": [0.01, 10.0]}, "waited 10.0 s"),
        ({"peak_bytes": 80_000_001 + GROWTH_BYTES_MAX}, "grow by"),
        ({"after": VitalSigns(88_000_000, 84, 10)}, "left something"),
        ({"after": VitalSigns(88_000_000, 20, 74)}, "left something"),
    ],
)
def test_what_is_wrong_is_found(change: dict[str, object], found: str) -> None:
    (problem,) = judge(msgspec.structs.replace(GOOD, **change))
    assert re.search(found, problem)


def test_a_door_that_believes_strangers_and_keeps_what_they_leave_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "TARGET": "tests.reliability.planted_doors:be_attacked",
        "RATE": 240.0,
        "TURN_SECONDS": 0.5,
        "RETURN_SECONDS_MAX": 0.5,
    }.items():
        monkeypatch.setattr(strangers, name, value)
    problems = "\n".join(judge(besiege(None, 1, 0)))
    assert "strangers made a plain hub grow by" in problems
    assert "strangers left something at a plain hub" in problems


def test_a_stranger_without_a_certificate_makes_a_hub_sign_and_is_not_let_in(tmp_path: Path) -> None:
    """What the onslaught says is a handshake: nothing else is answered with a certificate and a signature."""
    charter = Charter.draw_up(tmp_path / "charter", GRANTS)
    with Hub("127.0.0.1:0", **charter.party("target")) as hub:
        for _ in range(2):  # the same message again
            with socket.create_connection(parse_address(hub.address), PATIENCE) as stranger:
                stranger.sendall(whole_client_hello())
                answer = b""
                while len(answer) < FLIGHT_BYTES_MIN:
                    received = stranger.recv(65536)
                    assert received, f"it hung up after {len(answer)} bytes"
                    answer += received
                assert answer[:1] == HANDSHAKE
        assert not hub.statistics().links


def test_a_right_that_is_missing_is_found(tmp_path: Path) -> None:
    charter = Charter.draw_up(tmp_path / "charter", {**GRANTS, "honest": ()})
    with pytest.raises(LocalError, match="worker be_honest has ended with 1"):
        besiege(charter, 1, 0)
