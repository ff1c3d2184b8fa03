"""How a member of a group over an engine stands, for people and tests."""

import msgspec

__all__ = ["AgreementStatistics"]


class AgreementStatistics(msgspec.Struct, frozen=True):
    """How a member stands."""

    epoch: int
    primary: bool
    history: bool
    participants: tuple[str, ...]
    delivered: int
    held: int
    kept_bytes: int
    queued_bytes: int
    rounds: int
    views: int
    stale: int
    """Packs and acks of another epoch that came too late."""
    dropped: int
    """Packs that were not their sender's next."""
    malformed: int
    resent: int
    states_given: int
    states_taken: int
