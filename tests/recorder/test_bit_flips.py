"""One flipped bit, anywhere in any file of a journal: seen by `verify`, never delivered, and the rest is kept.

`python -m echoic.testing.journal_campaign --losses 0 --flips N` is the campaign.
"""

import pytest

from echoic.testing.flip_campaign import FlippedJournal
from echoic.testing.journal_campaign import run_flips

FLIPS, PARTS = 10_000, 5


@pytest.mark.parametrize("part", range(PARTS))
def test_every_flipped_bit_is_detected_never_delivered_and_the_rest_is_recovered(part: int) -> None:
    report = run_flips(1000 * part, FLIPS // PARTS)
    assert report.flips == FLIPS // PARTS
    assert report.places.keys() >= {"header", "FORMAT", "BATCH", "GAP", "POSITIONS", "COMMIT", "SEAL", "json"}
    assert report.recovered > FLIPS // PARTS // 10


def test_every_bit_of_a_header_and_of_the_small_files_is_watched() -> None:
    journal = FlippedJournal(7)
    for path in [journal.segments[0], journal.segments[-1], *journal.small]:
        for bit in range(0, 8 * min(64, journal.disk.files()[path])):
            journal.check(path, bit, recovering=bit % 16 == 0)
