"""Who may have the page: whoever has the token, from a page of ours, by a name of ours.

The viewer listens on this machine alone unless told otherwise, but every page that a browser shows can send requests
there. Three things keep them out, and all must hold:

    token    printed with the URL, 192 random bits. `GET /?token=T` puts it into a cookie and goes on to `/`, so that it
             is neither in the address bar nor in the history. Programs send `Authorization: Bearer T` instead.
    Host     one of our addresses: a name that a stranger has made to point here (DNS rebinding) is refused.
    Origin   of a WebSocket: the page that opens it was served by us. Cookies are sent with WebSockets of any page.

The cookie is called after the port, since browsers send cookies of one port to all, and cannot be read by scripts. What
is not refused is answered with headers that let the page load nothing from elsewhere and be framed by nobody.
"""

import enum
import hmac
import ipaddress
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from echoic.errors import AddressError
from echoic.links import is_loopback, parse_address

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Guard", "Guarded", "Verdict"]

SECURITY: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
HEADERS: Final = [(name.lower().encode(), value.encode()) for name, value in SECURITY.items()]
OUR_HEADERS: Final = frozenset(name for name, _ in HEADERS)
REFUSAL: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>echoic viewer</title>
<h1>This page needs its token</h1>
<p>%s</p>
<p>The viewer has printed the whole address when it was started, as in</p>
<pre>http://127.0.0.1:8470/?token=...</pre>
<p>Copy that line from its terminal into the address bar. A viewer that was started again has another token.</p>
</html>
"""
ONWARD: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/">
<title>echoic viewer</title><p><a href="/">Go on</a></p></html>
"""
COOKIE_SECONDS: Final = 30 * 24 * 3600
COOKIES_MAX: Final = 200
QUERY_FIELDS_MAX: Final = 16
REFUSED: Final = 1008  # as WebSockets say it


class Verdict(enum.Enum):
    """What becomes of a request; the text says what is wrong with it."""

    FINE = ""
    TWICE = "a header that matters is there twice"
    ELSEWHERE = "this is not an address of the viewer"
    FOREIGN = "the request comes from the page of somebody else"
    NO_TOKEN = "It was opened without the token."
    STALE = "The viewer was started again: its address has another token."

    @property
    def status(self) -> int:
        """What HTTP calls it."""
        return {Verdict.FINE: 200, Verdict.TWICE: 400, Verdict.ELSEWHERE: 421}.get(self, 403)


class Guard:
    """Knows the token and the addresses of a viewer.

    Args:
        token: Who has it may come in.
        host: Where it listens.
        port: The port there.
        secure: Whether by TLS.
    """

    def __init__(self, token: str, host: str, port: int, *, secure: bool) -> None:
        self._token = token.encode()
        self._host = host
        self._port = port
        self.scheme: Final = "https" if secure else "http"
        self.cookie: Final = f"echoic_viewer_{port}"

    def judge(self, kind: str, headers: Iterable[tuple[bytes, bytes]]) -> Verdict:
        """Decide on a request.

        Args:
            kind: `http` or `websocket`.
            headers: Its headers, the names in lower case.
        """
        found: dict[bytes, bytes] = {}
        for name, value in headers:
            if name in found and name in (b"host", b"origin", b"authorization"):
                return Verdict.TWICE
            found[name] = found[name] + b"; " + value if name in found else value
        host = found.get(b"host", b"").decode("latin-1")
        if not self._is_ours(host):
            return Verdict.ELSEWHERE
        bearer = self._has_bearer(found)
        origin = found.get(b"origin")
        foreign = origin is not None and origin.decode("latin-1").lower() != f"{self.scheme}://{host.lower()}"
        if foreign or (kind == "websocket" and origin is None and not bearer):
            return Verdict.FOREIGN
        cookie = self._cookie_in(found)
        if not bearer and cookie is None:
            return Verdict.NO_TOKEN
        if not bearer and not self.is_token(cookie or ""):
            return Verdict.STALE
        return Verdict.FINE

    def is_token(self, text: str) -> bool:
        """Tell whether a text is the token, in a time that does not tell how much of it is right."""
        return hmac.compare_digest(text.encode("utf-8", "replace"), self._token)

    def _has_bearer(self, headers: dict[bytes, bytes]) -> bool:
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        return scheme.lower() == "bearer" and self.is_token(token.strip())

    def _cookie_in(self, headers: dict[bytes, bytes]) -> str | None:
        """Return what a cookie of ours holds; the right one, if there are several."""
        found: str | None = None
        for part in headers.get(b"cookie", b"").decode("latin-1").split(";")[:COOKIES_MAX]:
            name, _, value = part.strip().partition("=")
            if name == self.cookie and (found is None or not self.is_token(found)):
                found = value
        return found

    def _is_ours(self, text: str) -> bool:
        """Tell whether a Host header names this viewer: where it listens, or an address that no name stands for."""
        try:
            text = text.lower()
            host, port = parse_address(text if text.rpartition("]")[2].count(":") else f"{text}:{self._standard_port}")
        except AddressError:
            return False
        if port != self._port:
            return False
        if host == self._host.lower():
            return True
        if is_loopback(self._host):
            return is_loopback(host)
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return True

    @property
    def _standard_port(self) -> int:
        return 443 if self.scheme == "https" else 80

    def set_cookie(self, response: Response) -> None:
        """Put the token where the browser sends it back from."""
        response.set_cookie(
            self.cookie,
            self._token.decode(),
            max_age=COOKIE_SECONDS,
            path="/",
            httponly=True,
            samesite="strict",
            secure=self.scheme == "https",
        )


class Guarded:
    """An application that only those reach whom the guard lets in."""

    def __init__(self, app: "ASGIApp", guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Serve a request, or refuse it."""
        verdict = self._guard.judge(scope["type"], scope["headers"])
        if scope["type"] == "websocket":
            if verdict is Verdict.FINE:
                await self._app(scope, receive, send)
            else:
                await _hang_up(verdict, send)
            return

        async def send_guarded(message: "Message") -> None:
            if message["type"] == "http.response.start":
                others = [(name, value) for name, value in message.get("headers", ()) if name not in OUR_HEADERS]
                message = {**message, "headers": [*others, *HEADERS]}
            await send(message)

        answer = self._answer(scope, verdict)
        await (self._app if answer is None else answer)(scope, receive, send_guarded)

    def _answer(self, scope: "Scope", verdict: Verdict) -> Response | None:
        """Return what is answered in place of the application; None if it may answer itself."""
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("there is nothing but GET here", 405)
        given = _token_in(scope["query_string"].decode("latin-1"))
        if verdict in (Verdict.FINE, Verdict.NO_TOKEN, Verdict.STALE) and scope["path"] == "/" and given:
            if not self._guard.is_token(given):
                return HTMLResponse(REFUSAL % "It was opened with another token.", Verdict.NO_TOKEN.status)
            return self._enter(scope)
        if verdict in (Verdict.NO_TOKEN, Verdict.STALE):
            return HTMLResponse(REFUSAL % verdict.value, verdict.status)
        return None if verdict is Verdict.FINE else PlainTextResponse(verdict.value, verdict.status)

    def _enter(self, scope: "Scope") -> Response:
        """Return the cookie, and the way to the page.

        Browsers do not send a strict cookie when a link on the page of somebody else led to a redirection; they do
        when a page of ours leads on.
        """
        elsewhere = dict(scope["headers"]).get(b"sec-fetch-site") == b"cross-site"
        response = HTMLResponse(ONWARD) if elsewhere else RedirectResponse("/", 303)
        self._guard.set_cookie(response)
        return response


def _token_in(query: str) -> str:
    """Return the token of an address; "" if there is none."""
    try:
        return parse_qs(query, max_num_fields=QUERY_FIELDS_MAX).get("token", [""])[0]
    except ValueError:  # there are too many fields
        return ""


async def _hang_up(verdict: Verdict, send: "Send") -> None:
    """Refuse a WebSocket; to one of ours say why, which a browser only shows of one that was accepted."""
    if verdict is Verdict.STALE:
        await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": REFUSED, "reason": verdict.value})
