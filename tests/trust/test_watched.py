"""When a file counts again that somebody changes, and writes in several steps."""

from pathlib import Path

import pytest

from echoic.trust import Watched


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rights"
    path.write_text("old\n")
    return path


def test_a_change_counts_once_when_two_looks_have_seen_it(file: Path) -> None:
    watched = Watched(file)
    assert not watched.changed()
    file.write_text("another\n")
    assert [watched.changed() for _ in range(4)] == [False, True, False, False]


def test_a_file_that_is_empty_at_one_look_has_changed_when_it_is_full(file: Path) -> None:
    watched = Watched(file)
    file.write_text("")
    assert not watched.changed()
    file.write_text("another\n")
    assert [watched.changed() for _ in range(3)] == [False, True, False]


def test_a_file_that_changes_at_every_look_does_not_count_yet(file: Path) -> None:
    watched = Watched(file)
    for length in range(10, 20):
        file.write_text("x" * length)
        assert not watched.changed()
    assert watched.changed()


def test_a_file_that_goes_away_and_comes_again_has_changed_twice(file: Path) -> None:
    watched = Watched(file)
    file.unlink()
    assert [watched.changed() for _ in range(3)] == [False, True, False]
    file.write_text("another\n")
    assert [watched.changed() for _ in range(3)] == [False, True, False]


def test_a_file_that_is_as_it_was_has_not_changed(file: Path) -> None:
    watched, aside = Watched(file), file.with_name("aside")
    file.rename(aside)
    assert not watched.changed()
    aside.rename(file)
    assert [watched.changed() for _ in range(3)] == [False, False, False]


def test_a_change_that_could_not_be_acted_on_counts_until_it_can_and_is_complained_about_once(file: Path) -> None:
    watched = Watched(file)
    file.write_text("another\n")
    assert [watched.changed() for _ in range(2)] == [False, True]
    assert watched.failed("it is none")
    assert watched.changed()
    assert not watched.failed("it is none")
    assert watched.changed()
    assert watched.failed("it cannot be read")
    assert [watched.changed() for _ in range(2)] == [True, False]
    file.write_text("a third\n")
    assert [watched.changed() for _ in range(2)] == [False, True]
    assert watched.failed("it cannot be read")


def test_who_may_read_and_write_a_file_is_a_change_too(file: Path) -> None:
    watched = Watched(file)
    file.chmod(0o600)
    assert [watched.changed() for _ in range(3)] == [False, True, False]
