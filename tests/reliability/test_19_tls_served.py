"""Trial 19 where browsers and others' programs are served: it finds a door that stands open there too."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic.errors import RefusedError
from echoic.hub import Hub
from echoic.links import Identity
from echoic.replicas.http_server import Answer, HttpServer
from echoic.testing.trials.tls_doors import Opened
from echoic.testing.trials.tls_matrix import NOTHING_SHOWN, door_problems
from echoic.testing.trials.tls_papers import BAD_PAPERS, Papers
from echoic.testing.trials.tls_served_doors import open_page, page_link, page_problems, service_link
from echoic.trust import Claims, Issuers, read_token
from echoic.viewer import Viewer
from tests.reliability.test_19_tls_matrix import papers

__all__ = ["papers"]

pytestmark = pytest.mark.system


def test_a_service_that_asks_for_no_certificate_is_found(papers: Papers) -> None:
    @contextlib.contextmanager
    def careless(identity: Identity) -> Iterator[Opened]:
        with service_link(identity) as door:
            server = HttpServer("127.0.0.1:0", lambda _: Answer(200, {}), context=identity.serving_context())
            with contextlib.closing(server):
                yield dataclasses.replace(door, address=server.address)

    found = {cell for cell, problem in door_problems(papers, {"door": careless}) if problem}
    assert found == {f"{kind} at door" for kind in (*BAD_PAPERS, NOTHING_SHOWN)}


def test_a_page_without_tls_is_found(papers: Papers) -> None:
    @contextlib.contextmanager
    def plain(identity: Identity) -> Iterator[Opened]:
        with Hub() as hub, Viewer(hub, "127.0.0.1:0") as viewer, page_link(identity) as door:
            yield dataclasses.replace(door, address=viewer.address)

    problems = door_problems(papers, {"door": plain}, but={*BAD_PAPERS, NOTHING_SHOWN})
    found = {cell: problem for cell, problem in problems if problem}
    assert "more than an alert" in found["HTTP at door"]
    assert "somebody good at door" in found


class Careless(Issuers):
    """Looks neither at the clock nor at what is revoked."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._issuers = (folder / "issuers").read_text("ascii").split()

    def read(self, text: str, now: float) -> Claims:
        for moment in (now, now - 300):
            with contextlib.suppress(RefusedError):
                return read_token(text, self._issuers, moment)
        return read_token(text, self._issuers, now)


def test_a_page_that_takes_tokens_which_hold_no_more_is_found(papers: Papers) -> None:
    found = [cell for cell, problem in page_problems(papers, lambda each: open_page(each, Careless)) if problem]
    assert found == [
        f"{kind} token for {path} at the page" for kind in ("revoked", "expired") for path in ("/", "/feed")
    ]


def test_a_page_that_goes_by_no_rights_is_found(papers: Papers) -> None:
    found = [cell for cell, problem in page_problems(papers, lambda each: open_page(each, rules=None)) if problem]
    assert found == ["denied name at the page"]
