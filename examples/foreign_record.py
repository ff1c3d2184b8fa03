"""Read a record that a C program on a 32-bit Sparc left behind: a struct with a pointer in it."""

import echoic
from echoic.formats import ARCHITECTURES, Format
from echoic.wire import Batch


@echoic.event
class Sample:
    flag: echoic.int8
    value: float
    name: str


# struct sample { char flag; double value; char *name; };   the pointer was replaced by an offset when it was written
record = bytes.fromhex("ff00000000000000 3ff8000000000000 00000018 00000000 68690000 00000000")

sparc = Format.of(Sample).on(ARCHITECTURES["sparc32"].with_pointers())
print(sparc.describe())

batch = Batch(sparc, 1, [record], [0, len(record)])
for sample in batch.to(Sample):
    print(sample)
