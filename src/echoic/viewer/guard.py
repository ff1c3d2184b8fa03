"""Who may have the page: whoever has the token, from a page of ours, by a name of ours.

The viewer listens on this machine alone unless told otherwise, but every page that a browser shows can send requests
there. Three things keep them out, and all must hold:

    token    printed with the URL, 192 random bits; or one that `echoic keys token` has signed, which may grant less
             than everything (`grants`). `GET /?token=T` puts it into a cookie and goes on to `/`, so that it is neither
             in the address bar nor in the history. Programs send `Authorization: Bearer T` instead.
    Host     one of our addresses: a name that a stranger has made to point here (DNS rebinding) is refused.
    Origin   of a WebSocket: the page that opens it was served by us. Cookies are sent with WebSockets of any page.

The cookie is called after the port, since browsers send cookies of one port to all, and cannot be read by scripts. What
is not refused is answered with headers that let the page load nothing from elsewhere and be framed by nobody.
"""

import enum
import hmac
import ipaddress
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

import msgspec
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from echoic.errors import AddressError, RefusedError
from echoic.links import is_loopback, parse_address
from echoic.trust import Issuers
from echoic.viewer.doorway import visit_of
from echoic.viewer.grants import EVERYTHING, Grant, Rules

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["ADMISSION", "TRY_AGAIN_LATER", "Admission", "Guard", "Guarded", "Verdict"]

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
<p>Copy that line from its terminal into the address bar. A viewer that was started again has another token. For
one that others reach, whoever runs it makes a token for you, which you put behind <code>/?token=</code>.</p>
</html>
"""
ONWARD: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/">
<title>echoic viewer</title><p><a href="/">Go on</a></p></html>
"""
COOKIE_SECONDS: Final = 30 * 24 * 3600
COOKIES_MAX: Final = 200
OWN_COOKIES_MAX: Final = 4
COOKIE_LETTERS_MAX: Final = 3800  # browsers keep no longer ones
QUERY_FIELDS_MAX: Final = 16
ADMISSION: Final = "echoic.admission"
"""Under what a request has who makes it."""
REFUSED: Final = 1008  # as WebSockets say it
TRY_AGAIN_LATER: Final = 1013


class Verdict(enum.Enum):
    """What becomes of a request; the text says what is wrong with it."""

    FINE = ""
    TWICE = "a header that matters is there twice"
    ELSEWHERE = "this is not an address of the viewer"
    FOREIGN = "the request comes from the page of somebody else"
    NO_TOKEN = "It was opened without the token."
    STALE = "The viewer was started again: its address has another token."
    ENDED = "The token holds no more."

    @property
    def status(self) -> int:
        """What HTTP calls it."""
        return {Verdict.FINE: 200, Verdict.TWICE: 400, Verdict.ELSEWHERE: 421}.get(self, 403)


UNKNOWN: Final = (Verdict.NO_TOKEN, Verdict.STALE, Verdict.ENDED)


class Admission(msgspec.Struct, frozen=True):
    """Somebody who was let in, and by what."""

    token: str
    grant: Grant
    issuers: Issuers | None = None

    def holds(self) -> bool:
        """Tell whether the token still lets its owner in."""
        if self.issuers is None:
            return True
        try:
            self.issuers.read_again(self.token, time.time())
        except RefusedError:
            return False
        return True


class Guard:
    """Knows the tokens and the addresses of a viewer.

    Args:
        token: Who has it may come in, and do everything; "" for nobody.
        host: Where it listens.
        port: The port there.
        secure: Whether by TLS.
        issuers: Reads signed tokens; None if there are none.
        rules: What must allow, beside a signed token, what its owner does.
    """

    def __init__(
        self,
        token: str,
        host: str,
        port: int,
        *,
        secure: bool,
        issuers: Issuers | None = None,
        rules: Rules | None = None,
    ) -> None:
        self._token = token.encode()
        self._issuers = issuers
        self._rules = rules
        self._host = host
        self._port = port
        self.scheme: Final = "https" if secure else "http"
        self.cookie: Final = f"echoic_viewer_{port}"

    def judge(self, kind: str, headers: Iterable[tuple[bytes, bytes]]) -> Verdict:
        """Decide on a request, as `admit` does."""
        return self.admit(kind, headers)[0]

    def admit(self, kind: str, headers: Iterable[tuple[bytes, bytes]]) -> tuple[Verdict, Admission | None]:
        """Decide on a request, and say who makes it, if it is fine.

        Args:
            kind: `http` or `websocket`.
            headers: Its headers, the names in lower case.
        """
        verdict, found = self._sorted(headers)
        if verdict is not Verdict.FINE:
            return verdict, None
        host = found.get(b"host", b"").decode("latin-1")
        if not self._is_ours(host):
            return Verdict.ELSEWHERE, None
        bearer = self.known(_bearer_in(found))
        origin = found.get(b"origin")
        foreign = origin is not None and origin.decode("latin-1").lower() != f"{self.scheme}://{host.lower()}"
        if foreign or (kind == "websocket" and origin is None and bearer is None):
            return Verdict.FOREIGN, None
        if bearer is not None:
            return Verdict.FINE, bearer
        cookies = self._cookies_in(found)
        admission = next((known for each in cookies if (known := self.known(each)) is not None), None)
        if admission is not None:
            return Verdict.FINE, admission
        stale = Verdict.ENDED if self._issuers is not None else Verdict.STALE
        return (stale if cookies else Verdict.NO_TOKEN), None

    def known(self, token: str) -> Admission | None:
        """Return what a token lets its owner do, None if it is none that holds."""
        if self._token and self.is_token(token):
            return Admission(token, EVERYTHING)
        if self._issuers is None or not token:
            return None
        try:
            return Admission(token, Grant.of(self._issuers.read(token, time.time()), self._rules), self._issuers)
        except RefusedError:
            return None

    @staticmethod
    def _sorted(headers: Iterable[tuple[bytes, bytes]]) -> tuple[Verdict, dict[bytes, bytes]]:
        """Return headers by name, unless one that matters is there twice."""
        found: dict[bytes, bytes] = {}
        for name, value in headers:
            if name in found and name in (b"host", b"origin", b"authorization"):
                return Verdict.TWICE, {}
            found[name] = found[name] + b"; " + value if name in found else value
        return Verdict.FINE, found

    def is_token(self, text: str) -> bool:
        """Tell whether a text is the token, in a time that does not tell how much of it is right."""
        return hmac.compare_digest(text.encode("utf-8", "replace"), self._token)

    def _cookies_in(self, headers: dict[bytes, bytes]) -> list[str]:
        """Return what cookies of ours hold."""
        parts = headers.get(b"cookie", b"").decode("latin-1").split(";")[:COOKIES_MAX]
        pairs = [part.strip().partition("=") for part in parts]
        return [value for name, _, value in pairs if name == self.cookie][:OWN_COOKIES_MAX]

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

    def set_cookie(self, response: Response, token: str) -> None:
        """Put a token where the browser sends it back from."""
        response.set_cookie(
            self.cookie,
            token,
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
        verdict, admission = self._guard.admit(scope["type"], scope["headers"])
        crowd = ""
        if admission is not None:
            scope[ADMISSION] = admission
            visit = visit_of(scope)
            crowd = visit.enter(admission.grant.who) if visit is not None else ""
        if scope["type"] == "websocket":
            if admission is None:
                await _hang_up(verdict, send)
            elif crowd:
                await send({"type": "websocket.accept"})
                await send({"type": "websocket.close", "code": TRY_AGAIN_LATER, "reason": crowd})
            else:
                await self._app(scope, receive, send)
            return

        async def send_guarded(message: "Message") -> None:
            if message["type"] == "http.response.start":
                others = [(name, value) for name, value in message.get("headers", ()) if name not in OUR_HEADERS]
                message = {**message, "headers": [*others, *HEADERS]}
            await send(message)

        answer = PlainTextResponse(crowd, 503, {"Connection": "close"}) if crowd else self._answer(scope, verdict)
        await (self._app if answer is None else answer)(scope, receive, send_guarded)

    def _answer(self, scope: "Scope", verdict: Verdict) -> Response | None:
        """Return what is answered in place of the application; None if it may answer itself."""
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("there is nothing but GET here", 405)
        given = _token_in(scope["query_string"].decode("latin-1"))
        if verdict in (Verdict.FINE, *UNKNOWN) and scope["path"] == "/" and given:
            if self._guard.known(given) is None or len(given) > COOKIE_LETTERS_MAX:
                return HTMLResponse(REFUSAL % "It was opened with another token.", Verdict.NO_TOKEN.status)
            return self._enter(scope, given)
        if verdict in UNKNOWN:
            return HTMLResponse(REFUSAL % verdict.value, verdict.status)
        return None if verdict is Verdict.FINE else PlainTextResponse(verdict.value, verdict.status)

    def _enter(self, scope: "Scope", token: str) -> Response:
        """Return the cookie, and the way to the page.

        Browsers do not send a strict cookie when a link on the page of somebody else led to a redirection; they do
        when a page of ours leads on.
        """
        elsewhere = dict(scope["headers"]).get(b"sec-fetch-site") == b"cross-site"
        response = HTMLResponse(ONWARD) if elsewhere else RedirectResponse("/", 303)
        self._guard.set_cookie(response, token)
        return response


def _bearer_in(headers: dict[bytes, bytes]) -> str:
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _token_in(query: str) -> str:
    """Return the token of an address; "" if there is none."""
    try:
        return parse_qs(query, max_num_fields=QUERY_FIELDS_MAX).get("token", [""])[0]
    except ValueError:  # there are too many fields
        return ""


async def _hang_up(verdict: Verdict, send: "Send") -> None:
    """Refuse a WebSocket; to one of ours say why, which a browser only shows of one that was accepted."""
    if verdict in (Verdict.STALE, Verdict.ENDED):
        await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": REFUSED, "reason": verdict.value})
