"""Who gets the page: decisions on headers, and the same over a real socket."""

import http.client
import os
import ssl
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

import echoic
from echoic.errors import InsecureError, LocalError, UnreachableError
from echoic.viewer import Viewer, kept_token
from echoic.viewer.guard import Guard, Verdict
from tests.links.certificates import Authority

TOKEN = "t" * 32
COOKIE = f"echoic_viewer_8470={TOKEN}"
HOST = "127.0.0.1:8470"
OURS = f"http://{HOST}"


def judged(kind: str = "http", *, listen: str = "127.0.0.1", secure: bool = False, **headers: str) -> Verdict:
    guard = Guard(TOKEN, listen, 8470, secure=secure)
    return guard.judge(kind, [(name.encode(), value.encode()) for name, value in {"host": HOST, **headers}.items()])


@pytest.fixture(scope="module")
def viewer() -> Iterator[Viewer]:
    with echoic.Hub() as hub, Viewer(hub, "127.0.0.1:0") as viewer:
        yield viewer


def asked(viewer: Viewer, path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(viewer.address, timeout=60)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()
    response.body = response.read()
    connection.close()
    return response


def cookie_of(viewer: Viewer) -> str:
    return f"echoic_viewer_{viewer.address.rpartition(':')[2]}={viewer.token}"


def test_the_cookie_or_the_bearer_token_opens_the_page() -> None:
    assert judged(cookie=COOKIE) is Verdict.FINE
    assert judged(cookie=f"a=b; {COOKIE}; c=d") is Verdict.FINE
    assert judged(authorization=f"Bearer {TOKEN}") is Verdict.FINE


@pytest.mark.parametrize(
    "headers", [{}, {"authorization": "Bearer x"}, {"authorization": f"Basic {TOKEN}"}, {"cookie": f"other={TOKEN}"}]
)
def test_without_the_token_nobody_comes_in(headers: dict[str, str]) -> None:
    assert judged(**headers) is Verdict.NO_TOKEN


def test_a_cookie_of_an_earlier_viewer_is_told_apart_from_none() -> None:
    assert judged(cookie="echoic_viewer_8470=" + "u" * 32) is Verdict.STALE


@pytest.mark.parametrize(
    "host", ["evil.example:8470", "127.0.0.1:8471", "127.0.0.1", "", "10.0.0.1:8470", "127.0.0.1:8470.evil", "a b:8470"]
)
def test_a_host_that_is_not_ours_is_refused_even_with_the_token(host: str) -> None:
    assert judged(host=host, cookie=COOKIE) is Verdict.ELSEWHERE


@pytest.mark.parametrize("host", ["localhost:8470", "127.0.0.1:8470", "[::1]:8470", "LOCALHOST:8470"])
def test_every_name_of_this_machine_itself_is_ours(host: str) -> None:
    assert judged(host=host, cookie=COOKIE) is Verdict.FINE


def test_an_open_viewer_is_reached_by_addresses_but_not_by_names_that_others_point_here() -> None:
    assert judged(listen="0.0.0.0", host="10.1.2.3:8470", cookie=COOKIE) is Verdict.FINE
    assert judged(listen="0.0.0.0", host="evil.example:8470", cookie=COOKIE) is Verdict.ELSEWHERE
    assert judged(listen="lab.example", host="lab.example:8470", cookie=COOKIE) is Verdict.FINE


@pytest.mark.parametrize("origin", ["http://evil.example", "https://127.0.0.1:8470", "http://127.0.0.1:9", "null"])
def test_a_foreign_origin_is_refused_even_with_the_token(origin: str) -> None:
    assert judged("websocket", origin=origin, cookie=COOKIE) is Verdict.FOREIGN
    assert judged("http", origin=origin, authorization=f"Bearer {TOKEN}") is Verdict.FOREIGN


def test_a_socket_with_a_cookie_needs_an_origin_and_a_program_with_a_bearer_token_does_not() -> None:
    assert judged("websocket", cookie=COOKIE) is Verdict.FOREIGN
    assert judged("websocket", cookie=COOKIE, origin=OURS) is Verdict.FINE
    assert judged("websocket", authorization=f"Bearer {TOKEN}") is Verdict.FINE


def test_a_header_that_matters_and_comes_twice_is_refused() -> None:
    twice = [(b"host", HOST.encode()), (b"host", b"evil.example"), (b"cookie", COOKIE.encode())]
    assert Guard(TOKEN, "127.0.0.1", 8470, secure=False).judge("http", twice) is Verdict.TWICE


def test_the_token_in_the_address_becomes_a_cookie_and_leaves_the_address(viewer: Viewer) -> None:
    response = asked(viewer, f"/?token={viewer.token}")
    cookie = response.getheader("set-cookie") or ""
    assert (response.status, response.getheader("location")) == (303, "/")
    assert cookie.startswith(cookie_of(viewer) + ";")
    assert all(part in cookie for part in ("HttpOnly", "SameSite=strict", "Path=/"))
    assert asked(viewer, "/", Cookie=cookie_of(viewer)).status == 200


def test_a_link_on_the_page_of_somebody_else_leads_on_by_a_page_of_ours(viewer: Viewer) -> None:
    response = asked(viewer, f"/?token={viewer.token}", Sec_Fetch_Site="cross-site")
    assert response.status == 200
    assert b'http-equiv="refresh"' in response.body
    assert viewer.token.encode() not in response.body


def test_who_has_no_token_is_told_where_the_address_is(viewer: Viewer) -> None:
    for path in ("/", "/feed.mjs", "/?token=wrong", "/?" + "&".join(f"token=x{n}" for n in range(40))):
        response = asked(viewer, path)
        assert response.status == 403
        assert b"terminal" in response.body
        assert viewer.token.encode() not in response.body


def test_everything_is_answered_with_headers_that_keep_strangers_out(viewer: Viewer) -> None:
    for response in (asked(viewer, "/"), asked(viewer, "/", Cookie=cookie_of(viewer))):
        policy = response.getheader("content-security-policy") or ""
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert response.getheader("x-content-type-options") == "nosniff"
        assert response.getheader("referrer-policy") == "no-referrer"
        assert response.getheader("cache-control") == "no-store"


@pytest.mark.parametrize("path", ["/../server.py", "/%2e%2e/server.py", "/..%2fserver.py", "//etc/passwd", "/nothing"])
def test_nothing_but_the_page_is_served(viewer: Viewer, path: str) -> None:
    assert asked(viewer, path, Cookie=cookie_of(viewer)).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_there_is_nothing_but_get(viewer: Viewer, method: str) -> None:
    assert asked(viewer, "/", method, Cookie=cookie_of(viewer)).status == 405


def test_a_socket_is_refused_without_token_from_elsewhere_and_by_another_name(viewer: Viewer) -> None:
    ours = {"Cookie": cookie_of(viewer)}
    for origin, headers in ((f"http://{viewer.address}", {}), ("http://evil.example", ours), (None, ours)):
        with (
            pytest.raises(InvalidStatus) as caught,
            connect(f"ws://{viewer.address}/feed", origin=origin, additional_headers=headers),
        ):
            pass
        assert caught.value.response.status_code == 403


def test_a_tab_of_an_earlier_viewer_is_told_so(viewer: Viewer) -> None:
    name = cookie_of(viewer).partition("=")[0]
    headers = {"Cookie": f"{name}={'u' * 32}"}
    with connect(f"ws://{viewer.address}/feed", origin=f"http://{viewer.address}", additional_headers=headers) as tab:
        with pytest.raises(ConnectionClosed) as caught:
            tab.recv(timeout=60)
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1008
        assert "started again" in caught.value.rcvd.reason


def test_an_address_that_others_reach_needs_tls_or_a_word() -> None:
    with echoic.Hub() as hub:
        with pytest.raises(InsecureError, match="reached from other machines"):
            Viewer(hub, "0.0.0.0:0")
        with pytest.raises(InsecureError, match="cannot use certificate"):
            Viewer(hub, "127.0.0.1:0", certificate="nothing.pem")
        with Viewer(hub, "0.0.0.0:0", insecure=True) as viewer:
            assert viewer.url.startswith("http://0.0.0.0:")


def test_with_a_certificate_the_page_and_its_cookie_go_by_tls_alone(tmp_path: Path) -> None:
    identity = Authority(tmp_path).issue("127.0.0.1")
    with echoic.Hub() as hub, Viewer(hub, "127.0.0.1:0", certificate=identity.certificate, key=identity.key) as viewer:
        assert viewer.url.startswith("https://")
        trusting = ssl.create_default_context(cafile=identity.authority)
        connection = http.client.HTTPSConnection(viewer.address, timeout=60, context=trusting)
        connection.request("GET", f"/?token={viewer.token}")
        response = connection.getresponse()
        assert response.status == 303
        assert "Secure" in (response.getheader("set-cookie") or "")
        connection.close()
        headers = {"Cookie": cookie_of(viewer)}
        origin = f"https://{viewer.address}"
        with connect(f"wss://{viewer.address}/feed", origin=origin, additional_headers=headers, ssl=trusting) as tab:
            assert tab.recv(timeout=60)
        with pytest.raises((OSError, http.client.HTTPException)):
            asked(viewer, "/")


def test_a_port_that_is_taken_and_a_token_that_is_short_are_refused(viewer: Viewer) -> None:
    with echoic.Hub() as hub:
        with pytest.raises(UnreachableError, match="cannot listen"):
            Viewer(hub, viewer.address)
        with pytest.raises(LocalError, match="a token has"):
            Viewer(hub, "127.0.0.1:0", token="short")


def test_a_token_is_kept_in_a_file_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "token"
    token = kept_token(path)
    assert len(token) >= 32
    assert kept_token(path) == token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_token_that_others_can_change_is_none(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    kept_token(path)
    path.chmod(mode)
    with pytest.raises(LocalError, match=f"others may write .*, its mode is {mode:04o}; .* remove it"):
        kept_token(path)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_token_in_a_file_of_somebody_else_is_none(tmp_path: Path) -> None:
    path = tmp_path / "token"
    kept_token(path)
    os.chown(path, 65534, 65534)
    with pytest.raises(LocalError, match="belongs to another user"):
        kept_token(path)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_token_that_others_can_read_is_refused_with_what_to_do(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    kept_token(path)
    path.chmod(mode)
    with pytest.raises(LocalError, match=f"others may read .*, its mode is {mode:04o}; .* remove it"):
        kept_token(path)
    path.unlink()
    assert len(kept_token(path)) >= 32
