"""Tools of the Java ToolBus: a small client written from the description of its protocol, and the bytes it must see."""

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import InsecureError, RemoteError
from echoic.links import Identity, parse_address
from echoic.rights import parse_rights
from echoic.scripts.running.messages import ToTool
from echoic.terms import Term, TermList, Value
from echoic.terms.saf import decode_saf, encode_saf
from echoic.toolbus import Bus, BusLimits, NgEntrance
from echoic.toolbus.ng_protocol import NgOperation, NgReader, encode_ng_operation, ng_operation_of
from tests.hub.parties import eventually
from tests.toolbus.conftest import MakeBus
from tests.toolbus.workshop import script

NOTHING = TermList()
SCRIPT = """
tool calc is { command = "COMMAND" kind = "ng" }
process P is let T: calc, V: int, E: str in
    START . snd-eval(T, expr("1+2")) . rec-value(T, val(V?)) . snd-do(T, show(V))
    . rec-event(T, button(E?)) . snd-ack-event(T, button(E)) . rec-request(T, price(E?)) . snd-response(T, costs(V))
    . rec-disconnect(T) . shutdown(V)
endlet
toolbus(P)
"""


class NgClient:
    """A tool as the Java library has it, in a few lines."""

    def __init__(self, address: str, name: str, number: int = -1) -> None:
        self.socket = socket.create_connection(parse_address(address), timeout=10)
        self._stream = self.socket.makefile("rb")
        self.say(Term(name, number))

    def say(self, term: Value, operation: int | None = None) -> None:
        data = encode_saf(term, encoding="latin-1")
        head = b"" if operation is None else bytes([operation])
        self.socket.sendall(head + len(data).to_bytes(2, "little") + data)

    def hear(self) -> Value:
        data = b""
        while True:
            size = int.from_bytes(self._exactly(2), "little") or 65536
            data += self._exactly(size)
            try:
                return decode_saf(data, encoding="latin-1")
            except RemoteError:
                continue

    def hear_operation(self) -> tuple[int, Value]:
        return self._exactly(1)[0], self.hear()

    def greet(self, answer: int = 1) -> Value:
        signature = self.hear()
        self.socket.sendall(bytes([answer]))
        return signature

    def _exactly(self, size: int) -> bytes:
        data = self._stream.read(size)
        assert len(data) == size, "the bus hung up"
        return data

    def close(self) -> None:
        self._stream.close()
        self.socket.close()


def converse(client: NgClient) -> None:
    """Be the tool of the script."""
    assert client.greet().name == "signature"
    key = client.hear()
    client.say(key, 1)
    assert client.hear_operation() == (12, Term("expr", "1+2"))
    client.say(Term("val", 3), 4)
    assert client.hear_operation() == (13, Term("show", 3))
    client.say(NOTHING, 5)
    client.say(Term("button", "ok"), 3)
    assert client.hear_operation() == (11, TermList(Term("button", NOTHING), NOTHING))
    client.say(Term("price", "IBM"), 15)
    assert client.hear_operation() == (6, Term("costs", 3))
    client.say(NOTHING, 2)


@pytest.fixture
def made() -> Iterator[list[object]]:
    everything: list[object] = []
    yield everything
    for each in everything:
        each.close()  # type: ignore[attr-defined]


def test_a_tool_of_the_java_toolbus_connects_by_itself(make_bus: MakeBus, made: list[object]) -> None:
    bus = make_bus(SCRIPT.replace("START", "rec-connect(T?)"))
    entrance = NgEntrance(bus)
    made.append(entrance)
    bus.start()
    client = NgClient(entrance.address, "calc")
    converse(client)
    assert bus.wait(60)
    client.close()
    assert bus.value == 3
    assert bus.warnings() == ()


def test_the_interface_is_that_of_the_script(make_bus: MakeBus, made: list[object]) -> None:
    bus = make_bus(SCRIPT.replace("START", "rec-connect(T?)"))
    entrance = NgEntrance(bus)
    made.append(entrance)
    bus.start()
    client = NgClient(entrance.address, "calc")
    signature = client.greet()
    client.close()
    assert str(signature).startswith("signature([rec-eval(<calc>,expr(<str>)),rec-do(<calc>,show(<int>))],[snd-value(")


@pytest.mark.system
def test_a_tool_of_the_java_toolbus_is_started_with_the_port_of_the_entrance(
    make_bus: MakeBus, made: list[object], tmp_path: Path
) -> None:
    program = tmp_path / "tool.py"
    program.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})\n"
        "from tests.toolbus.test_ng_adapter import NgClient, converse\n"
        "told = dict(zip(sys.argv[1::2], sys.argv[2::2]))\n"
        "address = told['-TB_HOST'] + ':' + told['-TB_PORT']\n"
        "converse(NgClient(address, told['-TB_TOOL_NAME'], int(told['-TB_TOOL_ID'])))\n"
    )
    bus = make_bus(
        SCRIPT.replace("START", "execute(calc, T?)").replace("COMMAND", f"{sys.executable} {program}"),
        limits=BusLimits(grace_seconds=1),
    )
    made.append(NgEntrance(bus))
    assert bus.run(20) == 3


@pytest.mark.parametrize(("name", "number"), [("nobody", -1), ("calc", 5)])
def test_who_is_not_expected_is_sent_away(name: str, number: int, make_bus: MakeBus, made: list[object]) -> None:
    bus = make_bus(SCRIPT.replace("START", "rec-connect(T?)"))
    entrance = NgEntrance(bus)
    made.append(entrance)
    bus.start()
    client = NgClient(entrance.address, name, number)
    assert client.socket.recv(1) == b""
    client.close()


@pytest.mark.system
def test_a_tool_that_was_started_for_another_entrance_does_not_come_by_this_one(
    make_bus: MakeBus, made: list[object], bus_identity: Identity
) -> None:
    text = script('execute(calc, T?) . snd-eval(T, expr("1+2")) . rec-value(T, val(V?)) . shutdown(V)')
    bus = make_bus(text, identity=bus_identity, rights=parse_rights("deny * * *"))
    entrance = NgEntrance(bus)
    made.append(entrance)
    bus.start()
    eventually(lambda: bus.statistics().processes, "it was started, and is not there yet")
    client = NgClient(entrance.address, "calc", 1)
    assert client.socket.recv(1) == b""
    client.close()
    assert bus.wait(60)
    assert bus.value == 3


def test_who_loses_the_right_to_be_a_tool_is_hung_up_on(make_bus: MakeBus, made: list[object], tmp_path: Path) -> None:
    rights = tmp_path / "rights"
    rights.touch(0o600)
    rights.write_text("allow anonymous publish tool:calc\n")
    bus = make_bus(
        "tool calc is { }\ntoolbus(P)\n"
        "process P is let T: calc in rec-connect(T?) . rec-disconnect(T) . shutdown(gone) endlet",
        rights=rights,
    )
    entrance = NgEntrance(bus)
    made.append(entrance)
    bus.start()
    client = NgClient(entrance.address, "calc")
    client.greet()
    client.hear()
    assert not bus.wait(1.5)
    rights.write_text("deny * * *\n")
    assert bus.wait(10)
    assert any("`anonymous` may not publish `tool:calc`" in each for each in bus.warnings())
    client.close()


@pytest.mark.parametrize("data", [b"\xff" * 100, b"GET / HTTP/1.1\r\n\r\n", b"\x02\x00\x02\x01", b"\x00"])
def test_garbage_is_sent_away(data: bytes, make_bus: MakeBus, made: list[object]) -> None:
    bus = make_bus(SCRIPT.replace("START", "rec-connect(T?)"), limits=BusLimits(hello_seconds=0.5))
    entrance = NgEntrance(bus)
    made.append(entrance)
    bus.start()
    with socket.create_connection(parse_address(entrance.address), timeout=10) as stranger:
        stranger.sendall(data)
        try:
            assert stranger.recv(100) == b""
        except ConnectionResetError:
            pass
    client = NgClient(entrance.address, "calc")
    converse(client)
    assert bus.wait(60)
    client.close()


@pytest.mark.parametrize("how", ["refuses", "hangs up", "ends", "says nonsense"])
def test_a_tool_that_goes_is_noticed(how: str, make_bus: MakeBus, made: list[object]) -> None:
    bus = make_bus(
        "tool calc is { }\ntoolbus(P)\n"
        "process P is let T: calc in rec-connect(T?) . rec-disconnect(T) . shutdown(gone) endlet"
    )
    entrance = NgEntrance(bus)
    made.append(entrance)
    bus.start()
    client = NgClient(entrance.address, "calc")
    client.greet(0 if how == "refuses" else 1)
    if how == "refuses":
        assert client.socket.recv(1) == b""
        client.close()
        client = NgClient(entrance.address, "calc")
        client.greet()
    client.hear()
    if how == "ends":
        client.say(NOTHING, 127)
    if how == "says nonsense":
        client.socket.sendall(b"\x63\x63\x63")
    if how in ("hangs up", "refuses"):
        client.close()
    assert bus.wait(60)
    client.close()


def test_frames_have_the_documented_bytes() -> None:
    assert encode_ng_operation(NgOperation.EVAL, Term("a", 1)) == bytes.fromhex("0c 0600 010101610201")
    assert encode_ng_operation(NgOperation.ACKDO, NOTHING) == bytes.fromhex("05 0200 0400")
    operation, value = ng_operation_of(ToTool.ACK_EVENT, (Term("e", 1, 2), Term("data")))
    assert (operation, str(value)) == (NgOperation.ACKEVENT, "[e([],[]),data]")


def test_long_terms_are_in_blocks_of_32_kilobytes() -> None:
    data = encode_ng_operation(NgOperation.VALUE, "x" * 100_000)
    assert int.from_bytes(data[1:3], "little") == 32_768
    reader, pending, frames = NgReader(10**6), [], []
    for at in range(0, len(data), 1000):
        reader.receive(data[at : at + 1000])
        frames += reader.take_frames(pending)
    assert frames == [(NgOperation.VALUE, "x" * 100_000)]


@given(st.binary(max_size=100))
def test_no_bytes_do_more_than_be_refused(data: bytes) -> None:
    reader = NgReader(10_000)
    reader.receive(data)
    try:
        reader.take_frames([])
    except RemoteError:
        pass


def test_other_machines_are_listened_to_only_if_that_is_meant() -> None:
    with (
        Bus.from_script("process P is rec-msg(never)\ntoolbus(P)") as bus,
        pytest.raises(InsecureError, match="can be reached from other machines"),
    ):
        NgEntrance(bus, "0.0.0.0:0")
