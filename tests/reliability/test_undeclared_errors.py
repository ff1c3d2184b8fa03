"""Bytes that once made a reader raise what it does not declare: no UTF-8, nesting beyond Python's, values that lack."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from echoic.cli.settings import read_settings
from echoic.eager.parcel import unpack
from echoic.engines.embedded.log_blocks import Block, BlockKind
from echoic.engines.embedded.log_contents import decode_ballot
from echoic.errors import DeliveryError, EchoicError, JournalError
from echoic.groups.agreement.messages import decode_control
from echoic.groups.roster import Roster, Seat, decode_roster, encode_roster
from echoic.groups.standing import decode_standing
from echoic.groups.stream import Stream
from echoic.hub.intake_messages import answer_in
from echoic.replicas.portions import LENGTH, decode_portions
from echoic.spark.pipeline.loading import read_spec
from echoic.toolbus.run_file import read_run

DEEP = b"\x91" * 5000 + b"\xc0"
NO_TEXT = b"\xa2\xff\xfe"
MAP_DEEP = b"\x81\xa1x" + DEEP


def one_more(encoded: bytes, more: bytes) -> bytes:
    """Return an array of msgpack with an element that this version does not know."""
    return bytes([encoded[0] + 1]) + encoded[1:] + more


def portions(body: bytes) -> object:
    return list(decode_portions([LENGTH.pack(len(body)) + body]))


def ballot(body: bytes) -> object:
    return decode_ballot(Block(BlockKind.BALLOT, 0, 0, 0, 0, memoryview(body)), "a file")


ROSTER = encode_roster(Roster((Seat("a", 1, "a:1", voting=True),)))


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (decode_standing, NO_TEXT),
        (decode_standing, MAP_DEEP),
        (decode_roster, one_more(ROSTER, DEEP)),
        (decode_control, b"\x02\x92\x01" + NO_TEXT),
        (ballot, b"\x92\x01" + NO_TEXT),
        (ballot, one_more(msgspec.msgpack.encode((1, "a")), DEEP)),
        (portions, b"\x95\x01\x90\xc4\x00\xc4\x00" + DEEP),
        (lambda data: Stream().restore(data), b"\x93\x01\x90" + DEEP),
        (unpack, b"\x94\xc4\x00\xa0\xc4\x00" + DEEP),
        (lambda data: read_spec(data.decode()), b"x = " + b"[" * 2000 + b"]" * 2000),
    ],
)
def test_it_is_refused_as_declared(read: Callable[[bytes], object], data: bytes) -> None:
    with pytest.raises(EchoicError):
        read(data)


def test_a_run_and_settings_that_are_nested_too_deep_are_refused_as_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = "[" * 2000 + "]" * 2000
    run = tmp_path / "run"
    run.write_text(f'{{"x": {deep}}}')
    with pytest.raises(EchoicError):
        read_run(run)
    (tmp_path / "echoic.toml").write_text(f"x = {deep}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(EchoicError):
        read_settings()


def test_an_answer_that_is_nested_too_deep_is_none() -> None:
    assert answer_in(DeliveryError({"sink": 'intake:{"x":' + "[" * 5000})) is None


@pytest.mark.parametrize("heard", ["note", "fetched"])
def test_a_run_in_which_something_was_heard_without_its_value_is_refused_as_declared(
    tmp_path: Path, heard: str
) -> None:
    run = tmp_path / "run"
    head = '{"digest": "d", "seed": 1, "now_ns": 2, "epoch_ns": 3, "int32": false, "limits": {}}'
    run.write_text(f'{head}\n{{"turns": 2, "now_ns": 5, "heard": "{heard}"}}\n')
    with pytest.raises(JournalError, match="is not the log of a run"):
        read_run(run)
