"""`echoic viewer`, as a person starts and ends it."""

import json
import signal
import subprocess
import threading
from pathlib import Path

import pytest
from websockets.sync.client import connect

from echoic import Hub
from tests.cli.terminals import PROGRAM


@pytest.mark.system
def test_the_verb_prints_the_address_tells_of_tabs_and_ends_with_control_c() -> None:
    with Hub() as names:
        command = [*PROGRAM, "viewer", "--listen", "127.0.0.1:0", "--json"]
        command += ["--names", names.address]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        limit = threading.Timer(60, process.kill)
        limit.start()
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            address, _, token = url.removeprefix("http://").partition("/?token=")
            headers = {"Authorization": f"Bearer {token}"}
            with connect(f"ws://{address}/feed", additional_headers=headers) as tab:
                tab.send('{"type":"Look","number":1,"page":"channels"}')
                tab.recv(timeout=30)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
        finally:
            limit.cancel()
            process.kill()
    assert process.returncode == 0
    assert "a browser came: 1 tab open" in said
    assert "Traceback" not in said


@pytest.mark.system
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "r1ghts:1"),
        (("--demo",), "the demo goes by no rights"),
    ],
)
def test_the_file_of_rights_that_is_named_is_that_of_the_hub(
    tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    rights = tmp_path / "r1ghts"
    rights.touch(0o600)
    rights.write_text("these are no rules\n")
    with Hub() as names:
        command = [*PROGRAM, "viewer", "--listen", "127.0.0.1:0", "--names", names.address, "--rights", str(rights)]
        ended = subprocess.run([*command, *options], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr
