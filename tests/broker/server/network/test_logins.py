"""Where the token of a client of OAUTHBEARER comes from, and what is no token."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from broker.config.oauth_config import OauthClientConfig
from broker.config.security_config import ClientSecurity, SecurityProtocol
from broker.security.errors import AuthenticationFailed
from broker.server.network.fetching import MAX_BYTES
from broker.server.network.logins import login_of, read_token


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


def test_a_file_is_read_for_each_connection(tmp_path: Path) -> None:
    file = tmp_path / "a token"
    config = OauthClientConfig(file.as_uri())
    security = ClientSecurity(
        SecurityProtocol.SASL_PLAINTEXT, mechanism="OAUTHBEARER", oauth=config
    )
    for token in ("one.x.y", "two.x.y"):
        file.write_text(f"{token}\n")
        assert login_of(security, "").first() == f"n,,\1auth=Bearer {token}\1\1".encode()


def test_an_issuer_is_asked_in_the_clients_own_name() -> None:
    with issuer(b'{"access_token": "a.b.c", "expires_in": 60}') as (url, asked):
        assert read_token(OauthClientConfig(url, "Aladdin", "open sesame", "x y")) == "a.b.c"
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
    refused = pytest.raises(AuthenticationFailed, match="no token from")
    with issuer(body, status) as (url, _), refused as failed:
        read_token(OauthClientConfig(url, "client", "swordfish"))
    assert "swordfish" not in str(failed.value)


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"a\nb", b"x" * (1 << 17)])
def test_another_file_is_no_token(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(AuthenticationFailed, match="no token from"):
        read_token(OauthClientConfig(file.as_uri()))
