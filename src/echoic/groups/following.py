"""Following: how a member takes the leader's entries, and a snapshot when it has missed too many."""

from typing import Final

from echoic.errors import MalformedFrameError
from echoic.groups.election import Election
from echoic.groups.engine import Restored
from echoic.groups.log import ENTRY_BYTES
from echoic.groups.messages import Append, Appended, Install
from echoic.groups.situation import Role, Situation
from echoic.groups.standing import check_entry
from echoic.groups.writes import Entry, Snapshot

__all__ = ["Following"]

NONE: Final = -2
"""The number of the last piece while it is not known: no count of pieces fits."""


class Following:
    """This member as a follower."""

    def __init__(self, situation: Situation, election: Election) -> None:
        self._s = situation
        self._election = election
        self._transfer = (0, 0)
        """The term and ticket of the snapshot that is on its way."""
        self._pieces: dict[int, Install] = {}
        self._piece_bytes = 0
        self._last_piece = NONE
        self._agreed: tuple[str, int, int] = ("", 0, 0)
        """Whom to tell at the end of this turn, in which term, up to where the logs agree."""

    def flush(self) -> None:
        """Tell the leader how far the logs agree, once for all that came in this turn."""
        s = self._s
        sender, term, index = self._agreed
        if sender:
            self._agreed = ("", 0, 0)
            if term == s.term:
                s.send(sender, Appended(term, True, index, 0, s.applied_sequence, s.hold))

    def append(self, sender: str, message: Append, now_ns: int) -> None:
        """Put entries behind one that the log has, or say that it does not have it.

        Raises:
            MalformedFrameError: The entries contradict what is safe, or are none.
        """
        s = self._s
        if message.term < s.term:
            s.send(sender, Appended(s.term, False, 0, message.previous, s.applied_sequence, s.hold))
            return
        self._hear(sender, message.term, now_ns)
        previous, entries, log = message.previous, message.entries, s.log
        if previous < log.base_index:  # everything up to the snapshot is safe, and the same everywhere
            entries = entries[log.base_index - previous :]
            previous = min(log.base_index, message.previous + len(message.entries))
        elif not self._agrees(previous, message.previous_term):
            hint = self._hint(previous)
            s.send(sender, Appended(s.term, False, hint, previous, s.applied_sequence, s.hold))
            return
        if s.hold:
            entries = []
        self._take(previous, entries)
        end = previous + len(entries)
        self._agreed = (sender, s.term, max(end, self._agreed[2]) if self._agreed[:2] == (sender, s.term) else end)
        safe = min(message.commit, end)
        if safe > s.commit:
            s.deliver(safe)
        s.resume()

    def install(self, sender: str, message: Install, now_ns: int) -> None:
        """Take a piece of a snapshot; when all are there, go on behind it. If one is lost, all are sent again.

        Raises:
            MalformedFrameError: It cannot be read, or is larger than is accepted.
        """
        s = self._s
        if message.term < s.term:
            s.send(sender, Appended(s.term, False, 0, message.index, s.applied_sequence, s.hold))
            return
        self._hear(sender, message.term, now_ns)
        if message.index <= s.commit:
            s.send(sender, Appended(s.term, True, s.commit, 0, s.applied_sequence, s.hold))
            return
        if (message.term, message.ticket) != self._transfer:
            self._forget_transfer()
            self._transfer = (message.term, message.ticket)
        if message.number not in self._pieces:
            self._pieces[message.number] = message
            self._piece_bytes += len(message.chunk) + ENTRY_BYTES
        if self._piece_bytes > s.options.state_bytes_max:
            self._forget_transfer()
            raise MalformedFrameError(f"a snapshot has more than {s.options.state_bytes_max} bytes - from {sender}")
        self._last_piece = message.number if message.last else self._last_piece
        if len(self._pieces) == self._last_piece + 1:
            if set(self._pieces) != set(range(self._last_piece + 1)):
                self._forget_transfer()
                raise MalformedFrameError(f"the pieces of a snapshot do not follow each other - from {sender}")
            self._finish()
        s.send(sender, Appended(s.term, True, s.commit, 0, s.applied_sequence, s.hold))

    def _hear(self, sender: str, term: int, now_ns: int) -> None:
        s = self._s
        if s.role is not Role.FOLLOWER or s.leader != sender or term > s.term:
            s.follow(term, sender)
        self._election.heard(now_ns)

    def _agrees(self, previous: int, previous_term: int) -> bool:
        return previous <= self._s.log.last and self._s.log.term_at(previous) == previous_term

    def _hint(self, previous: int) -> int:
        """Return the last index at which the logs may agree: before all entries of the term that does not."""
        log, commit = self._s.log, self._s.commit
        if previous > log.last:
            return log.last
        term, hint = log.term_at(previous), max(previous - 1, 0)  # whoever doubts the beginning itself lies
        while hint > commit and log.term_at(hint) == term:
            hint -= 1
        return hint

    def _take(self, previous: int, entries: list[Entry]) -> None:
        """Put what the log does not have yet behind an entry; only entries of other terms are replaced.

        Raises:
            MalformedFrameError: One of those is safe.
        """
        s, at = self._s, previous + 1
        skipped = 0
        for entry in entries:
            if at > s.log.last or s.log.term_at(at) != entry.term:
                break
            at += 1
            skipped += 1
        if skipped < len(entries):
            for entry in entries[skipped:]:
                check_entry(entry, s.term)
            if at <= s.commit:
                raise MalformedFrameError(f"entry {at} is safe and cannot be replaced, up to {s.commit} all are")
            s.append(at, entries[skipped:] if skipped else entries)

    def _finish(self) -> None:
        """Take over a snapshot: the first piece says of what, the last one is empty."""
        s, first = self._s, self._pieces[0]
        chunks = tuple(self._pieces[number].chunk for number in range(1, self._last_piece))
        self._forget_transfer()
        s.install(Snapshot(first.index, first.index_term, first.body, first.summary, chunks))
        s.events.append(Restored(first.index, first.summary, chunks, s.confirmed))
        if s.delivered.view_index:
            s.tell_view()

    def _forget_transfer(self) -> None:
        self._transfer, self._pieces, self._piece_bytes, self._last_piece = (0, 0), {}, 0, NONE
