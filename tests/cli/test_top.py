"""`echoic top` on a terminal: textual's pilot presses keys, a real hub is asked."""

import asyncio
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import pytest
from textual.widgets import DataTable, Input, Sparkline, Static

from echoic import Channel, Hub, event
from echoic.cli.loads_shown import CHANNELS_LIVE, lag_text, sort_key
from echoic.cli.top_screen import Failed, Top
from echoic.formats import Format
from echoic.hub.group_status import GroupStatus
from echoic.monitor import ChannelLoad
from tests.cli.terminals import PATIENCE_SECONDS, PROGRAM, Terminal, desk

if TYPE_CHECKING:
    from rich.text import Text
    from textual.pilot import Pilot

HOSTILE = "[red]a\x1b[2J\u202e[/red]"


@event
class Trade:
    symbol: str
    price: float


class Stage:
    """A name server, somebody who publishes, and who looks."""

    def __init__(self, names: Hub, sender: Hub, looking: Hub) -> None:
        self.names, self.sender, self.looking = names, sender, looking
        self.trades: Channel = sender.create("trades", Trade)
        self.quotes: Channel = sender.create("quotes", Trade)


@contextmanager
def staged() -> Iterator[Stage]:
    with (
        Hub("127.0.0.1:0") as names,
        Hub("127.0.0.1:0", names=names.address) as sender,
        Hub("127.0.0.1:0", names=names.address) as looking,
    ):
        yield Stage(names, sender, looking)


@asynccontextmanager
async def looked_at(stage: Stage) -> AsyncIterator[tuple[Top, "Pilot[None]"]]:
    app = Top(stage.looking, 0.05)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: table(app).row_count >= 2)
        yield app, pilot


async def until(pilot: "Pilot[None]", condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        await pilot.pause(0.02)


def table(app: Top, id: str = "channels") -> "DataTable[Text]":
    return app.query_one(f"#{id}", DataTable)


def column(app: Top, at: int = 0, id: str = "channels") -> list[str]:
    return [table(app, id).get_row_at(line)[at].plain for line in range(table(app, id).row_count)]


def text(app: Top, id: str) -> str:
    return str(app.query_one(f"#{id}", Static).render())


def test_channels_are_shown_sorted_filtered_and_explained() -> None:
    async def look() -> None:
        with staged() as stage:
            async with looked_at(stage) as (app, pilot):
                source = stage.trades.source()
                await until(pilot, lambda: sorted(column(app)) == ["quotes", "trades"])
                await pilot.press("4")  # by sources: the channel that has one comes first
                await until(pilot, lambda: column(app, 3) == ["1", "0"])
                assert column(app) == ["trades", "quotes"]
                await pilot.press("4")
                assert column(app) == ["quotes", "trades"]
                await pilot.press("1")
                assert column(app) == ["quotes", "trades"]
                await pilot.press("slash", "t", "r", "a")
                await until(pilot, lambda: column(app) == ["trades"])
                await pilot.press("enter")
                assert not app.query_one("#filter", Input).has_class("open")
                await until(pilot, lambda: f"sources: {stage.sender.address}" in text(app, "facts"))
                assert "trades   Trade   echoic://" in text(app, "facts")
                assert len(app.query_one("#rate", Sparkline).data or ()) > 0
                await pilot.press("escape")
                await until(pilot, lambda: column(app) == ["quotes", "trades"])
                source.close()

    asyncio.run(look())


def test_derivations_show_what_they_save_and_the_head_has_the_total() -> None:
    async def look() -> None:
        with staged() as stage:
            cheap = stage.trades.derive("input.price < 10", name="cheap")
            with Hub("127.0.0.1:0", names=stage.names.address) as reader:
                reader.open(cheap.id, Trade).subscribe(lambda trade: None)
                source = stage.trades.source()
                source.submit_batch([Trade("IBM", float(price)) for price in range(100)])
                source.flush()
                async with looked_at(stage) as (app, pilot):
                    await pilot.press("d")
                    await until(pilot, lambda: column(app, 0, "derivations") == ["cheap"])
                    await until(pilot, lambda: column(app, 6, "derivations") != ["0 B"])
                    head = text(app, "head")
                    assert re.search(r"saved at the source: [\d.]+ KB", head), head
                    assert f"names at {stage.names.address}   3 channels" in head

    asyncio.run(look())


def test_a_pause_holds_the_screen() -> None:
    async def look() -> None:
        with staged() as stage:
            async with looked_at(stage) as (app, pilot):
                await pilot.press("space")
                assert "PAUSED" in text(app, "head")
                stage.sender.create("later", Trade)
                looks = len(app.rates[stage.trades.id])
                await until(pilot, lambda: len(app.rates[stage.trades.id]) > looks + 2)
                assert "later" not in column(app)
                await pilot.press("space")
                await until(pilot, lambda: "later" in column(app))
                assert "PAUSED" not in text(app, "head")

    asyncio.run(look())


def test_a_lost_name_server_is_shown_and_the_channels_stay() -> None:
    async def look() -> None:
        with staged() as stage:
            async with looked_at(stage) as (app, pilot):
                stage.names.close()
                await until(pilot, lambda: "LOST" in text(app, "head"))
                assert sorted(column(app)) == ["quotes", "trades"]
                with Hub(stage.names.address):
                    await until(pilot, lambda: "LOST" not in text(app, "head"))

    asyncio.run(look())


def test_what_goes_wrong_is_told_and_the_next_look_goes_on() -> None:
    async def look() -> None:
        with staged() as stage:
            async with looked_at(stage) as (app, pilot):
                app.paused = True  # so that no look takes the place of what is told
                app.post_message(Failed("[b]peer\x1b broke a rule"))
                await until(pilot, lambda: text(app, "head") == "[b]peer\\x1b broke a rule")
                app.paused = False
                await until(pilot, lambda: "names at" in text(app, "head"))

    asyncio.run(look())


def test_text_of_others_is_neither_markup_nor_obeyed() -> None:
    async def look() -> None:
        with staged() as stage:
            told = stage.sender.create("ledger.group", GroupStatus)
            source = told.source()
            values = {"group": HOSTILE, "member": "[bold]n1", "members": ["[i]"], "packing": HOSTILE, "primary": True}
            blank = {"string": "", "float64": 0.0}
            kinds = {field.name: blank.get(field.spelling, 0) for field in Format.of(GroupStatus).fields}
            status = GroupStatus(**{**kinds, **values})
            async with looked_at(stage) as (app, pilot):
                await pilot.press("g")
                deadline = time.monotonic() + PATIENCE_SECONDS
                while not table(app, "groups").row_count and time.monotonic() < deadline:
                    source.submit(status)
                    source.flush()
                    await pilot.pause(0.05)
                assert column(app, 0, "groups") == ["[red]a\\x1b[2J\\u202e[/red]"]
                assert column(app, 1, "groups") == ["[bold]n1"]

    asyncio.run(look())


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_it_ends_with_code_0(key: str) -> None:
    async def look() -> int | None:
        with staged() as stage:
            async with looked_at(stage) as (app, pilot):
                await pilot.press(key)
                await until(pilot, lambda: not app.is_running)
            return app.return_code

    assert asyncio.run(look()) == 0


@pytest.mark.system
def test_keys_answer_while_a_hub_does_not() -> None:
    async def look(stage: Stage, away: Terminal) -> None:
        async with looked_at(stage) as (app, pilot):
            await until(pilot, lambda: "away" in column(app))
            away.process.send_signal(signal.SIGSTOP)  # whoever asks it waits for seconds
            await pilot.press("1", "slash", "q", "u", "enter")
            assert column(app) == ["quotes"]
            await pilot.press("escape")
            assert column(app) == ["trades", "quotes", "away"]

    with staged() as stage:
        away = Terminal("up", "away=Trade{price: float}", names=stage.names.address)
        try:
            away.says("try: echoic ls")
            asyncio.run(look(stage, away))
        finally:
            away.process.send_signal(signal.SIGCONT)
            away.kill()


def load(**changed: object) -> ChannelLoad:
    fields = {"name": "trades", "id": "x", "type": "", "events_per_second": 0.0, "bytes_per_second": 0.0}
    counts = dict.fromkeys(("sources", "sinks", "waiting_bytes", "missed", "dropped"), 0)
    return ChannelLoad(**{**fields, **counts, **changed})  # type: ignore[arg-type]


def test_lag_is_told_in_seconds_and_what_stands_comes_last() -> None:
    assert [lag_text(load(lag_seconds=each)) for each in (0.0, 1.25, None)] == ["", "1.2 s", "stands"]
    lag = next(each for each in CHANNELS_LIVE if each.title == "LAG")
    ordered = sorted([load(lag_seconds=None), load(lag_seconds=2.0)], key=lambda each: sort_key(lag.value(each)))
    assert ordered[-1].lag_seconds is None
    assert sorted(["b", 2, None, "A", 10.5], key=sort_key) == [None, 2, 10.5, "A", "b"]


@pytest.mark.system
@pytest.mark.parametrize("end", ["q", "\x03", "SIGTERM"])
def test_in_a_terminal_it_draws_and_gives_the_terminal_back(end: str) -> None:
    with desk() as system:
        system.start("up", "trades=Trade{price: float}").says("try: echoic ls")
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 110, 0, 0))
        before = termios.tcgetattr(slave)
        command = [*PROGRAM, "top", "--interval", "0.1", "--names", system.names]
        environment = {**os.environ, "TERM": "xterm-256color"}
        process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment)
        try:
            screen = read_until(master, b"trades")
            assert b"\x1b[?1049h" in screen
            if end == "SIGTERM":
                process.send_signal(signal.SIGTERM)
            else:
                os.write(master, end.encode())
            rest = read_until(master, b"\x1b[?1049l")
            assert b"Traceback" not in rest
            assert process.wait(PATIENCE_SECONDS) == 0
            assert termios.tcgetattr(slave) == before
        finally:
            process.kill()
            process.wait()
            os.close(master)
            os.close(slave)


def read_until(master: int, wanted: bytes) -> bytes:
    seen, deadline = b"", time.monotonic() + PATIENCE_SECONDS
    while wanted not in seen:
        assert time.monotonic() < deadline, seen[-2000:]
        if select.select([master], [], [], 0.1)[0]:
            seen += os.read(master, 65_536)
    return seen
