"""Elections: how a group comes to one leader in a term, and never to two.

A member that has not heard of a leader for a while asks the others first whether they would vote for it (*PreVote*);
they would not while they hear a leader themselves. So a member that was cut off, and comes back with a log that nobody
wants, does not end a term that works. Then it votes for itself in the next term, and asks for votes. Each member has
one vote in a term, which is on its disk before it is given, and gives it only to a log that has all of its own.
"""

from echoic.groups.leadership import Leadership
from echoic.groups.messages import PreVote, PreVoted, Resign, Vote, Voted
from echoic.groups.situation import Role, Situation

__all__ = ["Election"]


class Election:
    """This member's part in elections."""

    def __init__(self, situation: Situation, now_ns: int) -> None:
        self._s = situation
        self._votes: set[str] = set()
        self.heard_ns = now_ns - situation.options.election_ns
        """When a leader was last heard."""
        self.deadline_ns = 0
        self.wait(now_ns)

    def wait(self, now_ns: int) -> None:
        """Give a leader time to be heard."""
        self.deadline_ns = now_ns + int(self._s.options.election_ns * (1 + self._s.chance.random()))

    def heard(self, now_ns: int) -> None:
        """Hear a leader."""
        self.heard_ns = now_ns
        self.wait(now_ns)

    def tick(self, now_ns: int) -> None:
        """Let time pass: if no leader was heard, ask the others."""
        s = self._s
        if s.role is Role.LEADER or now_ns < self.deadline_ns:
            return
        s.leader = None
        s.suspend("no leader is heard")
        if s.electable:
            self.ask(now_ns)
        else:
            self.wait(now_ns)

    def ask(self, now_ns: int) -> None:
        """Ask who would vote for this member."""
        s = self._s
        s.role, s.leader = Role.ASKING, None
        self._votes = {s.name}
        self.wait(now_ns)
        s.send_voters(PreVote(s.group, s.term + 1, s.log.last, s.log.last_term))
        if s.is_majority(self._votes):
            self.stand(now_ns)

    def stand(self, now_ns: int) -> None:
        """Begin a term, and ask for votes."""
        s = self._s
        s.role, s.leader = Role.CANDIDATE, None
        s.cast(s.term + 1, self._key(s.name, s.home))
        self._votes = {s.name}
        self.wait(now_ns)
        s.send_voters(Vote(s.group, s.term, s.log.last, s.log.last_term))
        if s.is_majority(self._votes):
            self._lead(now_ns)

    def pre_vote(self, sender: str, message: PreVote, now_ns: int) -> None:
        """Say whether this member would vote for somebody."""
        s = self._s
        quiet = s.role is not Role.LEADER and now_ns - self.heard_ns >= s.options.election_ns
        if message.term >= s.term and quiet and s.is_current(message.last_term, message.last):
            s.send(sender, PreVoted(message.term))

    def pre_voted(self, sender: str, home: int, message: PreVoted, now_ns: int) -> None:
        """Count who would vote for this member."""
        s = self._s
        if s.role is Role.ASKING and message.term == s.term + 1 and s.is_voter(sender, home):
            self._votes.add(sender)
            if s.is_majority(self._votes):
                self.stand(now_ns)

    def vote(self, sender: str, home: int, message: Vote, now_ns: int) -> None:
        """Vote for somebody, or not."""
        s = self._s
        current = s.is_current(message.last_term, message.last)
        granted = message.term == s.term and current and self._may_vote(sender, home)
        if granted:
            s.cast(s.term, self._key(sender, home))
            self.wait(now_ns)
        s.send(sender, Voted(s.term, granted))

    def voted(self, sender: str, home: int, message: Voted, now_ns: int) -> None:
        """Count a vote."""
        s = self._s
        if s.role is Role.CANDIDATE and message.term == s.term and message.granted and s.is_voter(sender, home):
            self._votes.add(sender)
            if s.is_majority(self._votes):
                self._lead(now_ns)

    def resign(self, sender: str, message: Resign, now_ns: int) -> None:
        """Succeed a leader that ends."""
        s = self._s
        if message.term == s.term and s.leader == sender and s.electable:
            self.stand(now_ns)

    def _may_vote(self, candidate: str, home: int) -> bool:
        return self._s.role is Role.FOLLOWER and self._s.vote in ("", self._key(candidate, home))

    def _lead(self, now_ns: int) -> None:
        s = self._s
        s.role, s.leader = Role.LEADER, s.name
        s.leadership = Leadership(s, self._votes, now_ns)

    @staticmethod
    def _key(name: str, home: int) -> str:
        return f"{name}#{home:x}"
