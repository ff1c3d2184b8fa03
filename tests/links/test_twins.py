"""Every kind of link does the same: one suite for TCP, Unix sockets, TLS and memory."""

import random
import resource
import select
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from echoic.errors import MalformedFrameError
from echoic.links import Connection, Listener, dial
from echoic.wire import Buffer
from tests.links.conftest import Connect

Pair = tuple[Connection, Connection]
SEED = 7401


def send_all(connection: Connection, pieces: Sequence[Buffer]) -> None:
    left = [view for piece in pieces if len(view := memoryview(piece).cast("B"))]
    while left:
        taken = connection.send(left)
        if not taken:
            connection.writable(100)
        while left and taken >= len(left[0]):
            taken -= len(left.pop(0))
        if taken:
            left[0] = left[0][taken:]


def receive_all(connection: Connection, size: int | None = None) -> bytes:
    """Receive so many bytes, or everything up to the end."""
    received = bytearray()
    while size is None or len(received) < size:
        data = connection.receive()
        if data == b"":
            break
        received += data or b""
    return bytes(received)


def start(act: Callable[..., object], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=act, args=arguments)
    thread.start()
    return thread


def random_pieces(chance: random.Random, total: int) -> list[Buffer]:
    pieces: list[Buffer] = []
    while total > 0:
        size = min(total, int(2 ** chance.uniform(0, 18)))
        data = chance.randbytes(size)
        pieces.append(chance.choice([bytes, bytearray, memoryview])(data))
        total -= size
    return pieces


def send_in_cuts(connection: Connection, pieces: list[Buffer], chance: random.Random) -> None:
    while pieces:
        count = chance.randint(1, 20)
        send_all(connection, pieces[:count])
        pieces = pieces[count:]
    connection.finish()


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 1000, 16_384, 16_385, 65_536, 1_000_003, 10_000_000])
def test_bytes_of_any_size_arrive(pair: Pair, size: int) -> None:
    sent = random.Random(size).randbytes(size)
    sender = start(send_all, pair[0], [sent])
    assert receive_all(pair[1], size) == sent
    sender.join()


def begin(pair: Pair) -> None:
    """Have a connection used, as greetings do: what links tell each other of themselves comes first."""
    send_all(pair[0], [b"greeting"])
    assert receive_all(pair[1], 8) == b"greeting"


def test_bytes_arrive_where_they_belong(pair: Pair) -> None:
    if not pair[1].direct:
        pytest.skip("what arrives is handed over as it was sent")
    begin(pair)
    chance = random.Random(SEED + 3)
    sent = chance.randbytes(5_000_000)
    sender = start(send_in_cuts, pair[0], [sent], chance)
    received, at = memoryview(bytearray(len(sent))), 0
    while at < len(sent):
        if chance.random() < 0.3:
            data = pair[1].receive() or b""
            received[at : at + len(data)] = data
            at += len(data)
        else:
            at += pair[1].receive_into(received[at : at + int(2 ** chance.uniform(0, 20))]) or 0
    sender.join()
    assert pair[1].receive_into(memoryview(bytearray(1))) == 0
    assert received == sent


def test_what_did_not_fit_is_there_without_waiting(pair: Pair) -> None:
    if not pair[1].direct:
        pytest.skip("what arrives is handed over as it was sent")
    begin(pair)
    pair[0].send([b"the first, and the rest"])
    assert pair[1].readable(10_000)
    room = memoryview(bytearray(9))
    assert pair[1].receive_into(room) == 9
    assert pair[1].readable(0)
    assert bytes(room) + (pair[1].receive() or b"") == b"the first, and the rest"
    assert not pair[1].readable(0)
    assert not pair[1].holds


def test_nothing_at_all_can_be_sent(pair: Pair) -> None:
    assert pair[0].send([]) == 0
    assert pair[0].send([b""]) == 0
    pair[0].finish()
    assert receive_all(pair[1]) == b""


@pytest.mark.parametrize("into", [False, True])
def test_who_says_that_it_is_done_still_receives_what_was_on_its_way(pair: Pair, into: bool) -> None:
    if not pair[1].direct:
        pytest.skip("what arrives is handed over as it was sent")
    begin(pair)
    sent = random.Random(SEED).randbytes(60_000)
    send_all(pair[0], [sent])
    received, at = memoryview(bytearray(len(sent))), 0
    while at < 100:
        at += pair[1].receive_into(received[at:100]) or 0
    pair[1].finish()
    pair[1].finish()
    while at < len(sent):
        if into:
            at += pair[1].receive_into(received[at : at + 999]) or 0
        else:
            data = pair[1].receive() or b""
            received[at : at + len(data)] = data
            at += len(data)
    assert received == sent
    send_all(pair[0], [b"and this"])
    assert receive_all(pair[1], 8) == b"and this"
    pair[0].finish()
    assert receive_all(pair[1]) == receive_all(pair[0]) == b""


@pytest.mark.parametrize("seed", [SEED, SEED + 1])
def test_bytes_arrive_whole_and_in_order_in_both_directions_at_once(pair: Pair, seed: int) -> None:
    sent = [random_pieces(random.Random(seed + side), 3_000_000) for side in (0, 1)]
    received: dict[int, bytes] = {}
    threads = [
        threading.Thread(target=send_in_cuts, args=(pair[side], sent[side], random.Random(seed))) for side in (0, 1)
    ]
    threads += [
        threading.Thread(target=lambda side=side: received.update({side: receive_all(pair[1 - side])}))
        for side in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert received == {side: b"".join(sent[side]) for side in (0, 1)}


def test_more_pieces_than_the_system_takes_at_once_arrive(pair: Pair) -> None:
    pieces: list[Buffer] = [bytes([number & 255]) for number in range(5000)]
    send_all(pair[0], pieces)
    assert receive_all(pair[1], 5000) == b"".join(pieces)


def test_views_of_larger_elements_count_in_bytes(pair: Pair) -> None:
    view = memoryview(bytes(range(64))).cast("Q")
    assert pair[0].send([view, view]) == 128
    assert receive_all(pair[1], 128) == bytes(range(64)) * 2


def test_what_was_taken_may_be_changed_afterwards(pair: Pair) -> None:
    mutable = bytearray(b"before")
    assert pair[0].send([mutable]) == 6
    mutable[:] = b"after!"
    assert receive_all(pair[1], 6) == b"before"


def test_a_peer_that_does_not_read_is_given_a_limited_amount(pair: Pair) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    piece, taken = bytes(100_000), 0
    while pair[0].writable(200):  # the system may move bytes from one buffer to the next for a while
        got = pair[0].send([piece])
        assert got > 0
        taken += got
        assert taken < 64_000_000
    poller = select.poll()
    poller.register(pair[0].fileno(), select.POLLOUT)
    assert not poller.poll(0)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes

    reader = start(receive_all, pair[1], taken)
    assert poller.poll(2000)
    assert pair[0].writable(2000)
    reader.join()
    assert pair[0].send([b"more"]) == 4
    assert receive_all(pair[1], 4) == b"more"


def test_receiving_gives_up_when_it_is_quiet(pair: Pair) -> None:
    pair[0].receive(), pair[1].receive()  # greetings
    began = time.monotonic()
    assert pair[1].receive() is None
    assert 0.05 < time.monotonic() - began < 10


def test_readable_tells_when_something_came(pair: Pair) -> None:
    pair[1].receive()
    assert not pair[1].readable(0)
    assert not pair[1].readable(20)
    pair[0].send([b"news"])
    assert pair[1].readable(1000)
    assert receive_all(pair[1], 4) == b"news"
    assert not pair[1].readable(0)


def test_readable_may_be_asked_while_another_thread_receives(pair: Pair) -> None:
    receiver = start(receive_all, pair[1])
    for _ in range(20):
        pair[1].readable(1)
        send_all(pair[0], [b"x" * 100])
    pair[0].finish()
    receiver.join(60)
    assert not receiver.is_alive()


def test_closing_wakes_whoever_receives(pair: Pair) -> None:
    ended: list[float] = []

    def receive_until_closed() -> None:
        try:
            while pair[1].receive() != b"":
                pass
        except OSError:
            pass
        ended.append(time.monotonic())

    receiver = start(receive_until_closed)
    time.sleep(0.03)
    began = time.monotonic()
    pair[1].close()
    receiver.join(60)
    assert ended[0] - began < 30


def test_the_peer_learns_that_a_connection_was_closed(pair: Pair) -> None:
    pair[1].receive()
    pair[0].close()
    assert pair[1].readable(1000)
    assert receive_all(pair[1]) == b""

    def send_until_refused() -> None:
        while True:
            pair[1].send([b"to nobody"])

    with pytest.raises(OSError):  # noqa: PT011 - the number differs
        send_until_refused()


def test_a_closed_connection_can_be_closed_again_and_not_used(pair: Pair) -> None:
    pair[0].close()
    pair[0].close()
    assert pair[0].fileno() == -1
    with pytest.raises(OSError, match="closed by this side"):
        pair[0].send([b"x"])
    with pytest.raises(OSError, match="closed by this side"):
        pair[0].receive()
    pair[0].finish()
    assert pair[0].readable(0)
    assert pair[0].writable(0)
    assert pair[0].share([bytes(100_000)], 100_000) is None


def test_many_threads_may_close_while_others_send_and_receive(kind: str, connect: Connect) -> None:
    chance = random.Random(SEED)
    for _ in range(8):
        dialled, accepted = connect(kind)

        def use(act: Callable[[], object]) -> None:
            try:
                while act() != b"":
                    pass
            except OSError:
                pass

        threads = [start(use, partial(dialled.send, [b"x" * 999])), start(use, accepted.receive)]
        time.sleep(chance.uniform(0, 0.01))
        threads += [start(end.close) for end in (dialled, accepted) for _ in range(3)]
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert dialled.fileno() == accepted.fileno() == -1


def test_finishing_delivers_everything_and_then_the_end(pair: Pair) -> None:
    sent = random.Random(SEED).randbytes(2_000_000)

    def send_and_finish() -> None:
        send_all(pair[0], [sent])
        pair[0].finish()

    sender = start(send_and_finish)
    assert receive_all(pair[1]) == sent
    sender.join()
    assert pair[1].receive() == b""


def test_the_other_direction_goes_on_after_finishing(pair: Pair) -> None:
    pair[0].finish()
    assert receive_all(pair[1]) == b""
    sent = random.Random(SEED).randbytes(500_000)
    sender = start(send_all, pair[1], [sent])
    assert receive_all(pair[0], len(sent)) == sent
    sender.join()
    pair[1].finish()
    assert receive_all(pair[0]) == b""


def test_a_small_frame_is_never_shared(pair: Pair) -> None:
    assert pair[0].share([bytes(1000)], 1000) is None


@pytest.mark.parametrize("kind", ["tcp", "tls", "memory"])
def test_a_reference_to_shared_memory_is_refused_where_there_is_none(pair: Pair) -> None:
    with pytest.raises(MalformedFrameError, match="there is none"):
        pair[0].unshare(bytes(16))
    assert pair[0].share([bytes(1_000_000)], 1_000_000) is None


def test_both_ends_know_whom_they_talk_to(kind: str, pair: Pair) -> None:
    assert pair[0].peer.startswith("127.0.0.1:")
    expected = {"unix": "process ", "memory": "this process"}.get(kind, "127.0.0.1:")
    assert pair[1].peer.startswith(expected)
    assert not pair[0].checked
    assert not pair[1].checked


def test_a_connection_outlives_its_listener() -> None:
    listening = Listener("127.0.0.1:0")
    dialled = dial(listening.address)
    accepted = listening.accept(1000)
    assert accepted is not None
    listening.close()
    dialled.send([b"still here"])
    assert receive_all(accepted, 10) == b"still here"
    dialled.close()
    accepted.close()
