"""A process that is killed leaves nothing of its values: no file in the spill folder, none in shared memory."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from echoic.errors import UnreachableError
from echoic.values import SharedPlace, open_shared

OWNER = """
import sys
from pathlib import Path
from echoic.values import ValueStore
store = ValueStore(budget_bytes=1000, spill=Path(sys.argv[1]))
for _ in range(20):
    store.put(b"x" * 600, 600)
store.put_pieces([b"y" * 5000])
incoming = store.receive(100_000)
incoming.write(b"z" * 50_000)
place = store.share(store.put_pieces([b"hello"]))
print(place.pid, place.descriptor, place.size, place.inode, store.statistics().file_bytes, flush=True)
sys.stdin.read()
"""


@pytest.mark.system
def test_a_killed_process_leaves_neither_files_nor_shared_memory(tmp_path: Path) -> None:
    shared_before = set(Path("/dev/shm").iterdir())
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        *numbers, file_bytes = map(int, owner.stdout.readline().split())
        place = SharedPlace(*numbers)
        assert file_bytes > 50_000
        assert not list(tmp_path.iterdir())  # nor are they seen before
        view = open_shared(place)
        owner.send_signal(signal.SIGKILL)
        assert owner.wait() == -signal.SIGKILL
    assert not list(tmp_path.iterdir())
    assert not {path for path in set(Path("/dev/shm").iterdir()) - shared_before if "echoic" in path.name}
    assert view == b"hello"  # who has mapped it keeps it
    with pytest.raises(UnreachableError, match="is gone"):
        open_shared(place)
