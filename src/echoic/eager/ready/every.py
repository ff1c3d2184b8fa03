"""A sample of the events: every Nth.

What the papers call down-sampling: a display that draws ten frames a second needs no thousand. It is E-Code, because a
counter is all it takes, and counts the events of each source for itself.
"""

from typing import Final

from echoic.eager.modulator import EcodeModulator
from echoic.eager.ready.arguments import check_whole

__all__ = ["Every"]

N_MAX: Final = 1 << 62

CODE: Final = """{
    static long skipped = 0;
    if (skipped > 0) {
        skipped = skipped + 1 < param.n ? skipped + 1 : 0;
        return 0;
    }
    skipped = param.n > 1;
    return 1;
}"""


class Every(EcodeModulator):
    """Pass the first event of each source and every Nth after it.

    Args:
        n: 1 passes all, 2 every second one.

    Raises:
        LocalError: `n` is not positive.
    """

    def __init__(self, n: int) -> None:
        self.n: Final = check_whole("n", n, 1, N_MAX)
        super().__init__(CODE, params={"n": n})

    def __repr__(self) -> str:
        return f"Every({self.n})"
