"""Native code that several threads ask for at once."""

import subprocess
import sys

PROGRAM = """
import gc, threading
import echoic
from echoic.formats import ARCHITECTURES, Format
from echoic.wire import Batch, Conversion

@echoic.event
class Narrow:
    a: echoic.int32

@echoic.event
class Wide:
    a: int

@echoic.event
class More:
    a: int
    b: int = 7

foreign = Format.of(Narrow).on(ARCHITECTURES["sparc32"])
records = bytes(Batch.of([Narrow(i) for i in range(100)]).to(foreign).records)
conversions = [Conversion(foreign, Format.of(declared)) for declared in (Wide, More)]
together = threading.Barrier(2)

def go_hot(conversion):
    together.wait()
    conversion.compile()

threads = [threading.Thread(target=go_hot, args=(conversion,)) for conversion in conversions]
for thread in threads: thread.start()
for thread in threads: thread.join()
gc.collect()
for conversion in conversions:
    for _ in range(100):
        assert len(conversion.convert_fixed(records, 100)) == 100 * conversion.matching.target.size
print("fine")
"""


def test_two_threads_that_first_need_native_code_together_share_the_entry_points() -> None:
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr
