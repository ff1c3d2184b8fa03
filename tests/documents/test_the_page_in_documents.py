"""What the documents say of the page is so: its numbers are those of the program, and its programs serve it."""

import re
import signal
import subprocess
import sys
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from echoic.cli.viewer import viewer
from echoic.viewer import outbox, server, session, watching

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "explanation" / "the-page.md").read_text(encoding="utf-8").replace("\n", " ")
HOW_TO = (DOCS / "how-to" / "watch-in-the-browser.md").read_text(encoding="utf-8")
SLIDER = DOCS / "tutorial" / "3_move_a_slider.py"


def test_the_numbers_of_the_explanation_are_those_of_the_program() -> None:
    assert f"a token of {8 * server.TOKEN_BYTES} random bits" in PAGE
    assert f"{server.BROWSERS_MAX} tabs, {session.WATCHES_MAX} watches for each" in PAGE
    assert f"{server.REQUEST_BYTES_MAX // 1024} KiB for a request" in PAGE
    assert f"at most {watching.PUSHES_PER_SECOND} times a second" in PAGE
    assert f"every {1000 * session.PUSH_SECONDS:.0f} ms" in PAGE
    assert f"at most {outbox.BYTES_MAX // 1024**2} MiB" in PAGE
    assert f"more than {session.REQUESTS_PER_SECOND} times a second" in PAGE


def test_the_how_to_shows_addresses_and_messages_of_the_program() -> None:
    assert f"http://{server.LISTEN}/?token=" in HOW_TO
    assert outbox.TOO_SLOW in HOW_TO
    assert f"{server.BROWSERS_MAX} tabs are open" in HOW_TO
    assert (viewer.__doc__ or "").startswith("Show all channels in the browser")


@pytest.mark.system
def test_the_program_of_the_slider_serves_the_page_when_it_stays() -> None:
    program = subprocess.Popen([sys.executable, str(SLIDER), "--stay"], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout is not None
        url = next(line.split()[1] for line in program.stdout if line.startswith("open "))
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        with browser.open(url, timeout=30) as answer:
            assert re.search(r"<title>echoic</title>", answer.read().decode())
    finally:
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=60)
