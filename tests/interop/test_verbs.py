"""The verbs `metrics`, `asyncapi` and `foxglove` as a person starts them: processes, with a real name server."""

import json
import signal
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from echoic import Hub, event, float64
from echoic.cli.app import app
from echoic.errors import ChannelNotFoundError, EchoicError, InsecureError, LocalError
from tests.conftest import StartHub
from tests.links.certificates import Authority

pytestmark = pytest.mark.system
PROGRAM = [sys.executable, "-c", "from echoic.cli import main; main()"]
PATIENCE_SECONDS = 120.0


@event
class Trade:
    price: float64


@pytest.fixture
def names(start_hub: StartHub) -> str:
    """A name server, which knows one channel."""
    server: Hub = start_hub()
    hub: Hub = start_hub(names=server.address)
    hub.create("trades", Trade).source().submit_sync(Trade(75.5))
    return server.address


@contextmanager
def serving(*arguments: str) -> Iterator[dict[str, Any]]:
    """Start a verb that serves, and give what it prints as JSON; end it as Ctrl-C does."""
    command = [*PROGRAM, *arguments, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            line = process.stdout.readline()
            assert line, process.stderr.read()
            yield json.loads(line)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE_SECONDS)


def test_metrics_are_scraped_from_a_process_by_tls(names: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    identity = authority.issue("scraped")
    files = ("--certificate", str(identity.certificate), "--key", str(identity.key))
    context = ssl.create_default_context(cafile=str(authority.path))
    with (
        serving("metrics", "--listen", "127.0.0.1:0", "--names", names, *files) as told,
        urllib.request.urlopen(told["url"], timeout=PATIENCE_SECONDS, context=context) as answer,
    ):
        assert b'echoic_channel_events_total{channel="trades"' in answer.read()


def test_foxglove_connects_to_a_process(names: str) -> None:
    pytest.importorskip("foxglove")
    with serving("foxglove", "--listen", "127.0.0.1:0", "--names", names) as told:
        assert told["channels"] == ["trades"]
        with connect(told["url"], subprotocols=[Subprotocol("foxglove.sdk.v1")]) as connection:
            assert json.loads(connection.recv(timeout=PATIENCE_SECONDS))["op"] == "serverInfo"


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (["metrics", "--listen", "0.0.0.0:0"], InsecureError, "other machines"),
        (["foxglove", "--listen", "0.0.0.0:0"], InsecureError, "other machines"),
        (["metrics", "--key", "host.key"], LocalError, "name both or neither"),
        (["asyncapi", "trdes"], ChannelNotFoundError, "did you mean 'trades'"),
        (["asyncapi", "trades", "--hub", "127.0.0.1:1"], LocalError, "not both"),
        (["foxglove", "trdes", "--listen", "127.0.0.1:0"], ChannelNotFoundError, "did you mean 'trades'"),
    ],
)
def test_a_verb_that_cannot_says_why(
    names: str, arguments: list[str], kind: type[EchoicError], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(kind, match=words):
        app([*arguments, "--names", names])
    assert capsys.readouterr().out == ""
