"""Trial 20: every right of every actor, granted and not, over real links with certificates.

An exchange manages a channel, serves names and publishes; a desk hears everybody; an auditor listens to the exchange's
trail. For every cell of the matrix of actors and rights, in an order drawn from the seed, the actor starts a hub with
a certificate of his own and tries to use the right. It must work if he has it, and must not if he has not; what the
exchange refused, its trail must tell. The stranger has a certificate of an authority that nobody here knows, and must
not be told anything at all.
"""

import contextlib
import os
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

from echoic import Channel, Controls, Hub, Identity, Policy, SigningKey
from echoic.channels import AUDIT_CHANNEL
from echoic.hub import AuditRecord
from echoic.rights import RIGHTS, Right
from echoic.testing.samples import Trade
from echoic.testing.trials.acl_actors import ACTORS, CHANNEL, PASSING, STRANGER, attempt, rules_text
from echoic.testing.trials.trial import Findings, Tell
from echoic.trust.authority import Authority

__all__ = ["AclStage", "run"]

TOLD_SECONDS: Final = 5.0


def run(size: int, seed: int, tell: Tell) -> Findings:
    """Try all cells of the matrix, `size` times."""
    chance, began, problems, cells, refused = random.Random(seed), time.monotonic(), list[str](), 0, 0
    with AclStage() as stage:
        for done in range(size):
            matrix = [(actor, right) for actor in ACTORS for right in RIGHTS]
            chance.shuffle(matrix)
            for actor, right in matrix:
                problem = stage.try_cell(actor, right)
                problems += [problem] if problem else []
                cells, refused = cells + 1, refused + (right not in ACTORS[actor])
            tell(done + 1)
    figures = {"cells": cells, "refused": refused, "seconds": round(time.monotonic() - began, 1)}
    return Findings(tuple(problems), figures)


class AclStage:
    """The exchange, the desk and the auditor, and identities for everybody."""

    def __init__(self, rules: str = "") -> None:
        self._rules = rules or rules_text()
        self._stack = contextlib.ExitStack()
        self.refusals: list[AuditRecord] = []

    def __enter__(self) -> Self:
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="echoic-acl-")))
        self._stack.enter_context(_home(folder / "ours"))
        self._authority = Authority.create()
        self._rights = folder / "rights"
        self._rights.touch(0o600)
        self._rights.write_text(self._rules, "utf-8")
        self._key = SigningKey.generate()
        self._identities = {name: self._issued(name) for name in ("exchange", "desk", "auditor", *ACTORS)}
        with _home(folder / "theirs"):
            Authority.create().issue(STRANGER)
            self._identities[STRANGER] = Identity.named(STRANGER)
        self._exchange = self._hub("exchange", policy=Policy(trusted_keys=(self._key.public,)), rights=self._rights)
        self._channel = self._exchange.create(CHANNEL, Trade)
        self._source = self._channel.source(controls=Controls(start=lambda: None))
        self._desk: list[Trade] = []
        self._open("desk").subscribe(self._desk.append)
        trail = self._hub("auditor").open(f"echoic://{self._exchange.address}/{AUDIT_CHANNEL}", AuditRecord)
        trail.subscribe(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def try_cell(self, actor: str, right: Right) -> str:
        """Let an actor try to use a right; return what is wrong about how that went, "" if nothing is."""
        expected, told = right in ACTORS[actor], len(self.refusals)
        names = self._exchange.address if right == "admin" else ()
        with Hub(identity=self._identities[actor], key=self._key, names=names) as hub:
            worked = attempt(right, hub, self._channel.id, self._provoke, self._arrived)
        if worked != expected:
            return f"{actor} {'could' if worked else 'could not'} {right}, though he {'may' if expected else 'may not'}"
        if actor == STRANGER:
            return f"the trail has records of a {STRANGER}" if self._knows_stranger(told) else ""
        if not expected and not self._was_told(actor, told):
            return f"{actor} was refused to {right}, and the trail does not tell"
        return ""

    def _knows_stranger(self, since: int) -> bool:
        """Whether anybody was refused who is not one of the others; what they were refused before may be told late."""
        return any(record.who == STRANGER or record.who not in self._identities for record in self.refusals[since:])

    def _was_told(self, actor: str, since: int) -> bool:
        deadline = time.monotonic() + TOLD_SECONDS
        while time.monotonic() < deadline:
            if any(record.who == actor for record in self.refusals[since:]):
                return True
            time.sleep(0.005)
        return False

    def _note(self, record: AuditRecord) -> None:
        if not record.allowed:
            self.refusals.append(record)

    def _provoke(self) -> None:
        self._source.submit(PASSING)
        self._source.drain()

    def _arrived(self) -> bool:
        found = bool(self._desk)
        self._desk.clear()
        return found

    def _open(self, name: str) -> "Channel":
        return self._hub(name, rights=self._rights).open(self._channel.id, Trade)

    def _hub(self, name: str, *, policy: Policy | None = None, rights: Path | None = None) -> Hub:
        return self._stack.enter_context(Hub(identity=self._identities[name], policy=policy, rights=rights))

    def _issued(self, name: str) -> Identity:
        self._authority.issue(name)
        return Identity.named(name)


@contextlib.contextmanager
def _home(folder: Path) -> Iterator[None]:
    """Let identities be made and found in a folder."""
    before = os.environ.get("ECHOIC_HOME")
    os.environ["ECHOIC_HOME"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["ECHOIC_HOME"]
        else:
            os.environ["ECHOIC_HOME"] = before
