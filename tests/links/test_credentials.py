"""Credentials: what the certificate of a peer says of it."""

import pytest

from echoic.links import Credentials
from echoic.links.credentials import credentials_of
from tests.links.conftest import Connect

LATER = "Jan  1 00:00:00 2030 GMT"


@pytest.mark.parametrize(
    ("alternatives", "name", "hosts"),
    [
        (
            (("URI", "echoic:alice"), ("DNS", "a.example"), ("IP Address", "10.0.0.1")),
            "alice",
            {"a.example", "10.0.0.1"},
        ),
        ((("DNS", "a.example"), ("URI", "echoic:alice")), "alice", {"a.example"}),
        ((("DNS", "a.example"), ("DNS", "b.example")), "a.example", {"a.example", "b.example"}),
        ((("URI", "spiffe://alice"), ("DNS", "a.example")), "a.example", {"a.example"}),
        ((("URI", "echoic:alice"), ("URI", "echoic:bob"), ("DNS", "a.example")), "", {"a.example"}),
        ((("URI", "echoic:no name"), ("DNS", "a.example")), "", {"a.example"}),
        ((("URI", "ECHOIC:alice"),), "", set()),
        ((("DNS", "*.example"),), "", {"*.example"}),
        ((("IP Address", "10.0.0.1"),), "", {"10.0.0.1"}),
        ((), "", set()),
    ],
)
def test_a_name_is_the_uri_of_ours_else_the_first_host(
    alternatives: tuple[tuple[str, str], ...], name: str, hosts: set[str]
) -> None:
    said = credentials_of({"subjectAltName": alternatives, "notAfter": LATER})
    assert said == Credentials(name, frozenset(hosts), 1893456000.0)


def test_only_who_has_proved_it_has_credentials(connect: Connect) -> None:
    for kind in ("tcp", "unix", "memory"):
        assert [end.credentials for end in connect(kind)] == [None, None]
    for end in connect("tls"):
        assert end.credentials is not None
        assert end.credentials.hosts == {"127.0.0.1"}
        expires = end.credentials.expires
        assert expires > 1.7e9
        assert [end.credentials.expired(moment) for moment in (expires - 1, expires, expires + 1)] == [
            False,
            True,
            True,
        ]


@pytest.mark.parametrize(
    ("host", "covered"),
    [
        ("10.0.0.1", True),
        ("10.0.0.2", False),
        ("::1", True),
        ("0:0:0:0:0:0:0:1", True),
        ("A.example", True),
        ("lab.of.example", True),
        ("deep.lab.of.example", False),
        ("of.example", False),
    ],
)
def test_a_certificate_is_for_its_hosts_however_they_are_spelled(host: str, covered: bool) -> None:
    shown = Credentials("alice", frozenset({"10.0.0.1", "::1", "a.example", "*.of.example"}), 0.0)
    assert shown.covers(host) == covered
