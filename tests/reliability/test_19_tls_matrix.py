"""Trial 19: everybody who must not be let in, at every door; and the trial finds a door that stands open."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from echoic.errors import EchoicError
from echoic.hub import Hub
from echoic.links import Identity
from echoic.testing.trials.tls_doors import CHANNEL, HiddenEvent, Opened, hub_dials, hub_link
from echoic.testing.trials.tls_matrix import door_problems, knock_problems
from echoic.testing.trials.tls_papers import Papers
from echoic.testing.trials.tls_tokens import token_problems
from echoic.trust import Claims, read_token
from tests.reliability.trying import try_out

pytestmark = pytest.mark.system


@pytest.fixture
def papers(tmp_path: Path) -> Papers:
    return Papers(tmp_path)


def test_everybody_who_must_not_be_let_in_is_refused_and_told_nothing(request: pytest.FixtureRequest) -> None:
    findings = try_out(request, "tls_matrix")
    assert findings.figures["cells"] >= 48


def test_a_door_that_looks_at_no_list_of_revoked_ones_is_found(papers: Papers) -> None:
    @contextlib.contextmanager
    def careless(identity: Identity) -> Iterator[Opened]:
        with hub_link(dataclasses.replace(identity, revoked=None)) as door:
            yield door

    found = {cell: problem for cell, problem in door_problems(papers, {"door": careless}) if problem}
    assert list(found) == ["revoked at door"]


def test_a_door_without_tls_is_found(papers: Papers) -> None:
    @contextlib.contextmanager
    def plain(identity: Identity) -> Iterator[Opened]:
        with Hub(name="hidden-hub") as hub, hub_link(identity) as door:
            yield dataclasses.replace(door, address=hub.address)

    found = {cell: problem for cell, problem in door_problems(papers, {"door": plain}) if problem}
    assert "more than an alert" in found["no TLS at door"]
    assert "somebody good at door" in found


def test_whoever_tells_a_stranger_what_it_wants_is_found(papers: Papers) -> None:
    def believing(identity: Identity, address: str) -> None:
        hub_dials(dataclasses.replace(identity, revoked=None), address)

    found = {cell: problem for cell, problem in knock_problems(papers, {"knock": believing}) if problem}
    assert list(found) == ["knock to revoked"]
    assert "it was told" in found["knock to revoked"]

    def plainly(identity: Identity, address: str) -> None:
        with Hub(name="hidden-hub") as hub, contextlib.suppress(EchoicError):
            hub.open(f"echoic://{address}/{CHANNEL}", HiddenEvent)

    found = {cell: problem for cell, problem in knock_problems(papers, {"knock": plainly}) if problem}
    assert "hidden-hub" in found["knock to no TLS"]


def test_a_reader_that_does_not_look_at_the_clock_or_at_what_is_revoked_is_found(papers: Papers) -> None:
    def careless(folder: Path) -> Callable[[str], Claims]:
        issuers = (folder / "issuers").read_text("ascii").split()
        return lambda text: read_token(text, issuers, time.time())

    found = {cell: problem for cell, problem in token_problems(papers.authority, {"reader": careless}) if problem}
    assert found == {"revoked token at reader": "it was taken"}
