"""Where the token of a client of OAUTHBEARER comes from, and what is no token."""

import threading
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from common.credentials.fetching import MAX_BYTES
from common.credentials.tokens import ASSUMED_SECONDS, NoToken, TokenSource, read_token


@contextmanager
def issuer(body: bytes, status: int = 200) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Serve one answer; give the address and the login and form of each request."""
    asked: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            asked.append((self.headers["Authorization"], form))
            self.send_response(status)
            self.send_header("Location", "http://127.0.0.1:1/other")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/token", asked
    finally:
        server.shutdown()
        server.server_close()


NOW = 1_000_000.0


def jwt_of(claims: str) -> str:
    return f"e30.{urlsafe_b64encode(claims.encode()).decode().rstrip('=')}.c2ln"


def test_a_file_is_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "a token"
    source = TokenSource(file.as_uri())
    for token in ("one.x.y", "two.x.y"):
        file.write_text(f"{token}\n")
        assert read_token(source, NOW).text == token


@pytest.mark.parametrize(
    ("body", "expires_at"),
    [
        ('{"access_token": "TOKEN", "expires_in": 60}', NOW + 60),
        ('{"access_token": "TOKEN"}', NOW + 30),
        ('{"access_token": "TOKEN", "expires_in": 10}', NOW + 10),
        ('{"access_token": "a.b.c"}', NOW + ASSUMED_SECONDS),
        ('{"access_token": "opaque", "expires_in": "60"}', NOW + ASSUMED_SECONDS),
        ('{"access_token": "opaque", "expires_in": true}', NOW + ASSUMED_SECONDS),
        ('{"access_token": "opaque", "expires_in": 1e999}', NOW + ASSUMED_SECONDS),
    ],
)
def test_a_token_ends_when_its_issuer_or_it_itself_says(body: str, expires_at: float) -> None:
    lifetime = 60 if "60}" in body else 30
    body = body.replace("TOKEN", jwt_of(f'{{"exp": {NOW + lifetime}}}'))
    with issuer(body.encode()) as (url, _):
        token = read_token(TokenSource(url, "a", "b"), NOW)
    assert token.expires_at == expires_at


def test_an_issuer_is_asked_in_the_clients_own_name() -> None:
    with issuer(b'{"access_token": "a.b.c", "expires_in": 60}') as (url, asked):
        assert read_token(TokenSource(url, "Aladdin", "open sesame", "x y"), NOW).text == "a.b.c"
    ((login, form),) = asked
    assert login == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="  # RFC 7617
    assert parse_qs(form) == {"grant_type": ["client_credentials"], "scope": ["x y"]}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"access_token": "a.b.c"}', 401),
        (b'{"access_token": "a.b.c"}', 302),
        (b"", 200),
        (b"[]", 200),
        (b'{"access_token": 1}', 200),
        (b'{"access_token": ""}', 200),
        (b'{"access_token": "a\\u0001auth=Bearer b"}', 200),
        (b'{"access_token": "\xc3\xbc"}', 200),
        (b"[" * 100_000, 200),
        (b" " * (MAX_BYTES + 1), 200),
    ],
)
def test_another_answer_is_no_token_and_no_secret_is_told(body: bytes, status: int) -> None:
    refused = pytest.raises(NoToken, match="no token from")
    with issuer(body, status) as (url, _), refused as failed:
        read_token(TokenSource(url, "client", "swordfish"), NOW)
    assert "swordfish" not in str(failed.value)


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"a\nb", b"x" * (1 << 17)])
def test_another_file_is_no_token(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(NoToken, match="no token from"):
        read_token(TokenSource(file.as_uri()), NOW)


def test_an_issuer_may_want_id_and_secret_encoded() -> None:
    with issuer(b'{"access_token": "a.b.c"}') as (url, asked):
        read_token(TokenSource(url, "a:b", "c/d", is_encoded=True), NOW)
    assert b64decode(asked[0][0].removeprefix("Basic ")) == b"a%3Ab:c%2Fd"
