"""Addresses, and the path of the Unix socket beside one."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from echoic.errors import AddressError
from echoic.links import is_loopback, parse_address, unix_path
from echoic.links.address import format_address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:7401", "127.0.0.1", 7401),
        ("localhost:0", "localhost", 0),
        ("[::1]:65535", "::1", 65535),
        ("node-7.cluster.example:1", "node-7.cluster.example", 1),
    ],
)
def test_an_address_is_taken_apart_and_put_together(text: str, host: str, port: int) -> None:
    assert parse_address(text) == (host, port)
    assert format_address(host, port) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", ":", "7401", ":7401", "host:", "host:x", "host:-1", "host:65536", "host:+1", "host: 1", "host:٣"),
        *(
            "::1:7401",
            "[::1]",
            "[]:1",
            "[host]:1",
            "a b:1",
            "a\0b:1",
            "host:1:2",
            "http://host:1",
            "host:" + "9" * 5000,
        ),
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(AddressError, match="expected an address like"):
        parse_address(text)


@given(some.text())
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        host, port = parse_address(text)
    except AddressError:
        return
    assert parse_address(format_address(host, port)) == (host, port)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "localhost", "::1", "::ffff:127.0.0.1"])
def test_loopback_is_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "10.0.0.1", "127.example.com", "::", "::ffff:10.0.0.1", "", "localhost.de"]
)
def test_what_others_can_reach_is_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_each_port_has_its_own_path_in_a_folder_that_is_ours_alone() -> None:
    paths = {unix_path(1), unix_path(2)}
    assert len(paths) == 2
    assert {path.parent for path in paths if path} == {Path(os.environ["XDG_RUNTIME_DIR"])}


def test_the_folder_is_made_when_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "made"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    assert unix_path(1) is not None
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_can_enter_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for mode in (0o755, 0o770, 0o701):
        tmp_path.chmod(mode)
        assert unix_path(1) is None
    tmp_path.chmod(0o700)
    assert unix_path(1) is not None


def test_a_link_to_a_folder_and_a_file_are_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to(tmp_path)
    file.touch(0o700)
    for path in (link, file, tmp_path / "missing" / "deeper"):
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(path))
        assert unix_path(1) is None


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_the_folder_of_somebody_else_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(0o700)
    os.chown(folder, 12345, -1)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    assert unix_path(1) is None
