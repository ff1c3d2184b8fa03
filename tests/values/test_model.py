"""A store beside a dict: whatever is done in whatever order, both hold the same, and memory keeps to its budget."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from echoic.errors import LimitExceededError
from echoic.values import Incoming, Stored, ValueStore, open_shared
from tests.values.conftest import decode_text, encode_text

BUDGET_BYTES = 1000
FILE_BYTES_MAX = 20_000
texts = st.builds(lambda letter, size: letter * size, st.sampled_from("abcdef"), st.integers(0, 1500))


class StoreMachine(RuleBasedStateMachine):
    """The model: what each handle stands for, how often it is pinned, and which are released but pinned."""

    handles = Bundle("handles")
    pins = Bundle("pins")
    arriving = Bundle("arriving")

    def __init__(self) -> None:
        super().__init__()
        self.store: ValueStore[str] = ValueStore(
            encode=encode_text,
            decode=decode_text,
            budget_bytes=BUDGET_BYTES,
            spill=Path(tempfile.gettempdir()),
            file_bytes_max=FILE_BYTES_MAX,
        )
        self.values: dict[int, str | bytes] = {}
        self.pinned: dict[int, int] = {}
        self.released: set[int] = set()
        self.incoming: dict[Incoming, bytes] = {}

    @rule(target=handles, text=texts)
    def put(self, text: str) -> object:
        try:
            handle = self.store.put(text, len(text))
        except LimitExceededError:
            assert self.store.statistics().file_bytes + len(text) > FILE_BYTES_MAX - BUDGET_BYTES
            return multiple()
        self.values[handle] = text
        return handle

    @rule(target=handles, text=texts)
    def put_pieces(self, text: str) -> object:
        try:
            handle = self.store.put_pieces(encode_text(text))
        except LimitExceededError:
            assert self.store.statistics().file_bytes + len(text) > FILE_BYTES_MAX - BUDGET_BYTES
            return multiple()
        self.values[handle] = text.encode()
        return handle

    @rule(target=arriving, text=texts)
    def receive(self, text: str) -> Incoming:
        incoming = self.store.receive(len(text))
        self.incoming[incoming] = text.encode()
        return incoming

    @rule(incoming=arriving, size=st.integers(0, 400))
    def write(self, incoming: Incoming, size: int) -> None:
        if incoming in self.incoming:
            whole = self.incoming[incoming]
            try:
                incoming.write(whole[incoming.received : incoming.received + size])
            except LimitExceededError:
                del self.incoming[incoming]

    @rule(target=handles, incoming=consumes(arriving), finish=st.booleans())
    def end(self, incoming: Incoming, finish: bool) -> object:
        whole = self.incoming.pop(incoming, None)
        if whole is None:
            return multiple()
        if not finish:
            incoming.abandon()
            return multiple()
        try:
            incoming.write(whole[incoming.received :])
        except LimitExceededError:
            return multiple()
        handle = incoming.done()
        self.values[handle] = whole
        return handle

    @rule(handle=handles)
    def get(self, handle: int) -> None:
        if handle not in self.values:
            return
        found = self.store.get(handle)
        if isinstance(found, Stored):
            assert b"".join(found.pieces) == self.values[handle]
        else:
            assert found == self.values[handle]

    @rule(handle=handles)
    def read_pieces(self, handle: int) -> None:
        if handle in self.values:
            value = self.values[handle]
            encoded = value.encode() if isinstance(value, str) else value
            assert b"".join(self.store.pieces(handle)) == encoded
            assert self.store.size(handle) == len(encoded)

    @rule(target=pins, handle=handles)
    def pin(self, handle: int) -> object:
        if handle not in self.values or handle in self.released:
            return multiple()
        self.store.pin(handle)
        self.pinned[handle] = self.pinned.get(handle, 0) + 1
        return handle

    @rule(handle=consumes(pins))
    def unpin(self, handle: int) -> None:
        self.store.unpin(handle)
        self.pinned[handle] -= 1
        if not self.pinned[handle]:
            del self.pinned[handle]
            if handle in self.released:
                del self.values[handle]

    @rule(handle=handles)
    def release(self, handle: int) -> None:
        self.store.release(handle)
        self.released.add(handle)
        if handle not in self.pinned:
            self.values.pop(handle, None)

    @rule(handle=handles)
    def share(self, handle: int) -> None:
        if handle in self.values:
            place = self.store.share(handle)
            value = self.values[handle]
            if place is not None:
                assert open_shared(place) == (value.encode() if isinstance(value, str) else value)

    @rule()
    def clear(self) -> None:
        self.store.clear()
        self.released |= set(self.values)
        self.values = {handle: value for handle, value in self.values.items() if handle in self.pinned}

    @invariant()
    def memory_keeps_to_its_budget(self) -> None:
        statistics = self.store.statistics()
        assert 0 <= statistics.heap_bytes + statistics.shared_bytes <= BUDGET_BYTES
        assert 0 <= statistics.file_bytes <= FILE_BYTES_MAX

    @invariant()
    def the_same_values_are_there(self) -> None:
        statistics = self.store.statistics()
        assert statistics.values == len(self.values)
        assert statistics.pinned == len(self.pinned)

    def teardown(self) -> None:
        for handle, value in self.values.items():
            found = self.store.get(handle)
            assert (b"".join(found.pieces) if isinstance(found, Stored) else found) == value
        for incoming in self.incoming:
            incoming.abandon()
        for handle, times in self.pinned.items():
            for _ in range(times):
                self.store.unpin(handle)
        self.store.clear()
        statistics = self.store.statistics()
        assert (statistics.values, statistics.heap_bytes, statistics.shared_bytes, statistics.file_bytes) == (
            0,
            0,
            0,
            0,
        )


StoreMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
test_a_store_holds_what_a_dict_holds = StoreMachine.TestCase
