"""Names asked over a bare socket: a twin of what a hub asks."""

import socket
import subprocess
import sys
import threading

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from echoic import Hub, event
from echoic.channels import ChannelEntry
from echoic.cli.asking import Entry, _frames, ask_names, browse_all, is_address
from echoic.errors import AddressError, MalformedFrameError, UnreachableError
from echoic.links import parse_address
from echoic.wire import FrameKind, encode_frame
from tests.cli.terminals import PATIENCE_SECONDS, free_port, type_here


@event
class Trade:
    price: float


NO_TEXT = b"\x93\x01\xc3\x82\xa4type\xa7Listing\xa8channels\x91\x82\xa4name\xa2\xff\xfe\xa2id\xa1x"


def plain(entries: list[Entry] | list[ChannelEntry]) -> list[object]:
    return [msgspec.to_builtins(entry) for entry in entries]


def test_it_is_told_what_a_hub_is_told() -> None:
    with Hub("127.0.0.1:0") as names, Hub("127.0.0.1:0", names=names.address) as hub:
        trades = hub.create("trades", Trade)
        hub.create("loose")
        trades.source()
        trades.derive("return input.price < 1;")
        assert plain(ask_names(names.address, PATIENCE_SECONDS)) == plain(hub.channels(names.address))
        assert plain(browse_all([hub.address], PATIENCE_SECONDS)[hub.address]) == plain(hub.channels())
        assert {entry.manager for entry in ask_names(names.address, PATIENCE_SECONDS)} == {hub.address}
    assert Entry.__struct_fields__ == ChannelEntry.__struct_fields__


def test_who_cannot_be_asked_is_left_out_and_the_others_are_not() -> None:
    with Hub("127.0.0.1:0") as hub:
        asked = [hub.address, f"127.0.0.1:{free_port()}", "no address", "127.0.0.1:99999"]
        assert set(browse_all(asked, PATIENCE_SECONDS)) == {hub.address}


def test_who_does_not_answer_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mute = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(UnreachableError, match="nobody serves names at"):
            ask_names(mute, 0.1)


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.0 200 OK\r\n\r\n" * 4,
        b"\xff" * 64,
        bytes(16),
        b"".join(encode_frame(FrameKind.CONTROL, [b"\x93\x01\xc3\x80"])),
        b"".join(encode_frame(FrameKind.CONTROL, [b"\x93\x01\xc3" + b"\x91" * 100_000])),
        b"".join(encode_frame(FrameKind.CONTROL, [NO_TEXT])),
    ],
)
def test_strangers_are_not_believed(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(said)
                connection.recv(100)

        stranger = threading.Thread(target=answer)
        stranger.start()
        assert browse_all([f"127.0.0.1:{listening.getsockname()[1]}"], 5) == {}
        stranger.join()


@given(some.lists(some.binary(max_size=40), max_size=5), some.booleans(), some.integers(0, 40))
@settings(max_examples=50)
def test_frames_are_cut_as_the_reader_of_hubs_cuts_them(payloads: list[bytes], checked: bool, at: int) -> None:
    sent = b"".join(b"".join(encode_frame(FrameKind.CONTROL, [each], checked=checked)) for each in payloads)
    received = bytearray(sent[:at])
    found = [payload for _, payload in _frames(received)]
    received += sent[at:]
    found += [payload for _, payload in _frames(received)]
    assert found == payloads
    assert not received


def test_a_damaged_frame_is_refused() -> None:
    sent = bytearray(b"".join(encode_frame(FrameKind.CONTROL, [b"12345678"], checked=True)))
    sent[20] ^= 1
    with pytest.raises(MalformedFrameError):
        list(_frames(sent))


@pytest.mark.parametrize("text", ["127.0.0.1:1", "[::1]:7400", "localhost:7400", "host-1.lab:1"])
def test_an_address_is_one_for_both(text: str) -> None:
    assert is_address(text)
    parse_address(text)


@pytest.mark.parametrize("text", ["here", "127.0.0.1", "127.0.0.1:99999", ":1", "a b:1", "::1:7400"])
def test_what_is_none_is_left_to_who_says_why(text: str) -> None:
    assert not is_address(text)
    with pytest.raises(AddressError):
        parse_address(text)


@pytest.mark.parametrize("text", ["a..b:1", ".:1", f"{'x' * 70}:1"])
def test_a_name_that_no_machine_can_have_is_asked_for_nothing(text: str) -> None:
    assert is_address(text)
    assert browse_all([text], 5) == {}


def test_ls_says_what_to_do_when_nobody_serves_names() -> None:
    code, out, said = type_here("ls", "--names", f"127.0.0.1:{free_port()}")
    assert (code, out) == (1, "")
    assert "start `echoic up`, or pass --names HOST:PORT" in said


def test_ls_imports_nothing_that_makes_it_slow() -> None:
    program = (
        "import sys; sys.argv = ['echoic', *sys.argv[1:]]; from echoic.cli import main; main();"
        "print(sorted({'numpy', 'llvmlite', 'pyarrow', 'pyspark', 'textual', 'starlette', 'uvicorn', 'rich', 'asyncio',"
        "'echoic.hub', 'echoic.wire', 'echoic.links', 'concurrent.futures'} & set(sys.modules)))"
    )
    with Hub("127.0.0.1:0") as hub:
        hub.create("trades", Trade)
        command = [sys.executable, "-c", program, "ls", "--names", hub.address]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == ["trades   Trade        0      0", "[]"]
