"""`echoic viewer`: a page in the browser that shows what goes through all channels, live."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from echoic.cli.meeting import attend, check_open, identity_named, open_hub, stay
from echoic.cli.screen import json_text, say
from echoic.cli.served import PAIR_REMEDY, SERVED, Served
from echoic.cli.where import AsJson, Flag, chosen, surroundings
from echoic.errors import LocalError
from echoic.hub import Hub
from echoic.links import Identity, is_loopback, parse_address

__all__ = ["viewer"]

LISTEN: Final = "127.0.0.1:8470"
REMEDY: Final = f"name an --identity (echoic keys), or {PAIR_REMEDY}"


def viewer(
    *,
    listen: str = LISTEN,
    token_file: Annotated[Path | None, Parameter(show_default=False)] = None,
    demo: Flag = False,
    open_browser: Annotated[bool, Parameter(name="--open", negative="--no-browser", show_default=False)] = False,
    as_json: AsJson = False,
    served: Served = SERVED,
) -> None:
    """Show all channels in the browser: charts, fields, tables, parameters as sliders, code with its mistakes.

    The address that is printed has a token in it: who has the address may look, and may change parameters. The page is
    a sink like any other. It derives at the sources what it draws, and says how many bytes never left them.

    Where other machines reach it, it speaks TLS as its --identity. Tokens of `echoic keys token` open it then, and it
    shows and does what they grant. With --rights it does so only as far as the file lets the name in the token. Where
    only this machine reaches it, it is in the clear also with an --identity, which browsers do not know; its hub
    speaks TLS then, and the page does with a --certificate.

    Try:
        echoic viewer --demo --open
        echoic viewer --listen 127.0.0.1:0 --json | jq -r .url
        echoic viewer --listen 0.0.0.0:8470 --identity lab --rights rights
        echoic viewer --listen 0.0.0.0:8470 --certificate host.pem --key host.key --token-file viewer.token

    Args:
        listen: Where browsers reach the page, HOST:PORT; port 0 takes a free one.
        token_file: Keep the token in this file, so that the address stays the same when it is started again.
        demo: Have something to look at: an exchange and an atmosphere model, which publish until Ctrl-C.
        open_browser: Open the page in this machine's browser.
        as_json: Print the address as JSON.
        served: Who is served, and from where.
    """
    from echoic.viewer import Viewer, kept_token

    certificate, key = served.pair or (None, None)
    identity = _page_identity(listen, served)
    check_open(listen, insecure=served.insecure, identity=served.pair or identity, remedy=REMEDY)
    token = kept_token(token_file) if token_file is not None else ""
    with (
        _stage(served) if demo else attend(served.where, "viewer") as hub,
        Viewer(
            hub,
            listen,
            token=token,
            certificate=certificate,
            key=key,
            identity=identity,
            insecure=served.insecure,
            on_browser=_Counter().count,
        ) as page,
    ):
        print(json_text({"url": page.url, "names": hub.names[0]}) if as_json else page.url, flush=True)
        say(f"showing the channels of {hub.names[0]}, Ctrl-C ends")
        if not page.token:
            say("who has a token of `echoic keys token` opens the address with /?token=... behind it")
        if served.pair is None and identity is None and chosen(served.where).identity:
            say("the page is in the clear, as only this machine reaches it; --certificate and --key make it TLS")
        if demo:
            say("try: open `wind` and zoom in; open `one_symbol` and move its slider")
        if open_browser:
            _open(page.url)
        try:
            stay()
        except KeyboardInterrupt:
            say("the page is closed")


def _page_identity(listen: str, served: Served) -> Identity | None:
    """Return as whom the page is served: on this machine as nobody, where the address that is printed is enough."""
    if served.pair is not None or is_loopback(parse_address(listen)[0]):
        return None
    return identity_named(chosen(served.where).identity)


@contextmanager
def _stage(served: Served) -> Iterator[Hub]:
    """Give a hub among the channels of the demo.

    Raises:
        LocalError: Rights are asked for, which nobody of the demo has.
    """
    from echoic.cli.demo_channels import LiveChannels

    if served.rights is not None:
        raise LocalError(
            f"the demo goes by no rights, so {served.rights} would not count: leave out --demo or --rights"
        )

    found = surroundings(served.where)
    with (
        LiveChannels(found.names, None) as channels,
        open_hub(found.listen, channels.names, "viewer", insecure=found.insecure) as hub,
    ):
        channels.go()
        yield hub


class _Counter:
    """Says when tabs come and go."""

    def __init__(self) -> None:
        self._before = 0

    def count(self, tabs: int) -> None:
        """Take the number of tabs that are open."""
        if tabs != self._before:
            verb = "came" if tabs > self._before else "went"
            say(f"a browser {verb}: {tabs or 'no'} tab{'s' * (tabs != 1)} open")
            self._before = tabs


def _open(url: str) -> None:
    import webbrowser

    if not webbrowser.open(url):
        say("there is no browser here: copy the address into one")
