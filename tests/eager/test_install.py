"""Who may run code where: keys, channels, services."""

import pytest

from echoic.eager import Limits, Modulator
from echoic.eager.environment import Environment
from echoic.eager.install import install
from echoic.eager.sandbox import Sandbox
from echoic.errors import MalformedFrameError, RefusedError
from echoic.formats import Format
from tests.eager.installing import (
    CONFINING,
    KEY,
    PARENT,
    STRANGER,
    NoSharedObjects,
    Number,
    grant_nothing,
    numbers,
    parcel_of,
    run,
    values,
)


class Passes(Modulator):
    pass


class NeedsAClock(Modulator):
    requires = ("clock",)


def test_the_code_of_a_trusted_key_runs_in_process_even_if_it_is_sandboxed_too() -> None:
    runner = run(Passes(), trusted=(KEY.public,), sandboxed=("*", KEY.public))
    assert isinstance(runner, Environment)
    assert values(runner.work(1, numbers(1)).batch) == [1]
    runner.close()


@pytest.mark.skipif(not CONFINING, reason="needs bubblewrap, which `./run test` installs")
@pytest.mark.parametrize("sandboxed", [("*",), (KEY.public,), (STRANGER.public, KEY.public)])
def test_the_code_of_a_sandboxed_key_runs_in_a_confined_process(sandboxed: tuple[str, ...]) -> None:
    runner = run(Passes(), trusted=(STRANGER.public,), sandboxed=sandboxed)
    assert isinstance(runner, Sandbox)
    assert values(runner.work(1, numbers(1)).batch) == [1]
    runner.close()


@pytest.mark.parametrize("listed", [(), (STRANGER.public,)])
def test_the_code_of_any_other_key_runs_nowhere(listed: tuple[str, ...]) -> None:
    with pytest.raises(RefusedError) as refused:
        run(Passes(), trusted=listed, sandboxed=listed)
    assert str(refused.value) == (
        f"the hub at 127.0.0.1:1 runs no modulators signed by {KEY.public}; its operator can list the key "
        f"(see `echoic keys trust`)"
    )


def test_everybody_is_never_trusted() -> None:
    with pytest.raises(RefusedError, match="runs no modulators signed by"):
        run(Passes(), trusted=("*",))


def test_a_parcel_for_another_channel_is_refused() -> None:
    with pytest.raises(RefusedError, match=rf"`Passes` was signed for {PARENT}, not for 127\.0\.0\.1:1/others"):
        run(Passes(), trusted=(KEY.public,), parent="127.0.0.1:1/others")


@pytest.mark.parametrize("place", [{"trusted": (KEY.public,)}, {"sandboxed": ("*",)}])
def test_a_missing_service_of_any_source_is_refused_before_anything_runs(place: dict[str, tuple[str, ...]]) -> None:
    asked = []

    def grant(service: str, source: int) -> object | None:
        asked.append((service, source))
        return object() if source == 1 else None

    with pytest.raises(RefusedError, match=r"`NeedsAClock` requires the service `clock`.*127\.0\.0\.1:1 .* source 2"):
        run(NeedsAClock(), grant=grant, sources=(1, 2), **place)
    assert asked == [("clock", 1), ("clock", 2)]


def test_what_is_no_parcel_or_was_changed_is_refused() -> None:
    data = parcel_of(Passes())
    settings = {"parent": PARENT, "input": Format.of(Number), "grant": grant_nothing, "sources": (), "hub": "here"}
    settings |= {"trusted": (KEY.public,), "sandboxed": (), "shared": NoSharedObjects(), "limits": Limits()}
    with pytest.raises(MalformedFrameError):
        install(b"nothing of the kind", **settings)
    with pytest.raises(RefusedError):
        install(data.replace(b"Passes", b"Passed"), **settings)
