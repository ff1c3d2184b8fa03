"""The paper's adaptive policies (section 3): the packing degree goes up or down by one, after the throughput.

The throughput of the member's own messages is measured over every interval Ta; the degree is updated from the last two
measures, that is every 2 Ta. Taken literally the two measures of one update have the same degree, so what is compared
is their mean with the mean of the two before. Basic rules:

    1. initially pack = 1              3. 1 <= pack <= pack_max
    2. pack changes by 1 only          4. same throughput: same pack

and one of two update rules:

    simple      throughput rose: pack + 1               fell: pack - 1
    robust      pack did not fall:   as above           pack fell:   rose: pack - 1, fell: pack + 1

The simple rule collapses to 1 after a transient load, and may oscillate about a degree that is far too high (figure 2);
the robust one goes on falling only while that helps. Before the first update there was no throughput, so the first one
goes up. Both need some 2 Ta for every step, 100 seconds for a degree of 11, and never rest, since no two measures are
equal; they are here so that the paper can be reproduced, and to be compared with (`probe`).
"""

from typing import Final

from echoic.errors import LocalError
from echoic.groups.policies.policy import Pack
from echoic.groups.policies.static import Static

__all__ = ["PACK_MAX_DEFAULT", "TA_SECONDS_DEFAULT", "Paper"]

TA_SECONDS_DEFAULT: Final = 5.0
PACK_MAX_DEFAULT: Final = 128
MEASURES_EACH: Final = 2


class Paper(Static):
    """One message more or one less in every pack, after the throughput of the last two measures."""

    def __init__(
        self, ta: float = TA_SECONDS_DEFAULT, pack_max: int = PACK_MAX_DEFAULT, *, robust: bool = True
    ) -> None:
        if not 0.001 <= ta <= 3600:
            raise LocalError(f"the measuring interval is 0.001 to 3600 seconds, got {ta:g}")
        if pack_max < 1:
            raise LocalError(f"a pack has at least 1 message, got pack_max={pack_max}")
        super().__init__(1)
        self.robust: Final = robust
        self.pack_max: Final = pack_max
        self._ta = ta
        self._update_ns = MEASURES_EACH * round(ta * 1e9)
        self._since_ns = 0
        self._messages = 0
        self._throughput_before = 0.0
        self._pack_before = 1

    @property
    def name(self) -> str:
        """Its text."""
        return f"{'paper' if self.robust else 'paper-simple'}:ta={self._ta:g},pack_max={self.pack_max}"

    def start(self, pack_bytes_max: int, now_ns: int) -> None:
        """Begin the first measure."""
        super().start(pack_bytes_max, now_ns)
        self._since_ns = now_ns

    def come_back(self, pack: Pack, now_ns: int) -> str:  # noqa: ARG002
        """Count the messages of the pack."""
        self._messages += pack.messages
        return ""

    def wake_ns(self) -> int | None:
        """Return when two measures are there."""
        return self._since_ns + self._update_ns

    def wake(self, now_ns: int) -> str:
        """Update the degree, if two measures are there."""
        elapsed_ns = now_ns - self._since_ns
        if elapsed_ns < self._update_ns:
            return ""
        throughput = self._messages * 1e9 / elapsed_ns
        self._since_ns, self._messages = now_ns, 0
        return self.update(throughput)

    def update(self, throughput: float) -> str:
        """Do what the update rule says of one more throughput, and return why."""
        before, pack, pack_before = self._throughput_before, self.degree_max, self._pack_before
        self._throughput_before, self._pack_before = throughput, pack
        if throughput == before:
            return ""
        rose = throughput > before
        fell_pack = self.robust and pack < pack_before
        step = 1 if rose != fell_pack else -1
        # Invariant: the degree is within its bounds, rule 3.
        self.degree_max = min(self.pack_max, max(1, pack + step))
        share = f"{abs(throughput / before - 1):.1%}".replace("%", " %") if before else "all there is"
        what = f"throughput {'rose' if rose else 'fell'} by {share} with {pack} per pack after {pack_before}"
        return f"{what}, goes to {self.degree_max}"
