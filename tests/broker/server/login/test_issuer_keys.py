"""The keys of an issuer: when they are fetched again, and what a bad answer does."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from broker.config.oauth_config import OauthConfig
from broker.security.jwks import KeySet, parse_key_set
from broker.security.oauthbearer import InvalidToken
from broker.server.clock import SystemClock
from broker.server.login import issuer_keys
from broker.server.login.issuer_keys import IssuerKeys, read_keys
from common.credentials.fetching import MAX_BYTES

KEYS = {name: rsa.generate_private_key(65537, 2048) for name in ("old", "new")}


def key_set(*names: str) -> bytes:
    keys = [json.loads(RSAAlgorithm.to_jwk(KEYS[name].public_key())) for name in names]
    return json.dumps(
        {"keys": [{**key, "kid": name} for key, name in zip(keys, names, strict=True)]}
    ).encode()


def token(name: str) -> str:
    now = int(time.time())
    claims = {"sub": "alice", "iat": now, "exp": now + 60}
    return jwt.encode(claims, KEYS[name], algorithm="RS256", headers={"kid": name})


class Issuer:
    """Answers with what it is told, and counts."""

    def __init__(self, *answers: "bytes | Exception") -> None:
        self.answers = list(answers)
        self.count = 0

    def read(self, config: OauthConfig) -> "KeySet | Exception":
        self.count += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer if isinstance(answer, Exception) else parse_key_set(answer)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.005)


def is_valid(keys: IssuerKeys, name: str) -> bool:
    try:
        keys.validate(token(name))
    except InvalidToken:
        return False
    return True


def run(issuer: Issuer, scenario: Any, **config: Any) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        made = OauthConfig(url="file:///k", **{"retry_ms": 5, "retry_max_ms": 20, **config})
        keys = IssuerKeys(loop, made, SystemClock(), issuer.read)
        keys.start()
        await scenario(keys)

    asyncio.run(main())


def test_keys_are_fetched_again_when_they_are_old() -> None:
    async def scenario(keys: IssuerKeys) -> None:
        await until(lambda: is_valid(keys, "old"))
        await until(lambda: is_valid(keys, "new"))
        assert not is_valid(keys, "old")

    run(Issuer(key_set("old"), key_set("new")), scenario, refresh_ms=20)


def test_an_unknown_key_is_looked_for_at_most_once_in_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    issuer = Issuer(key_set("old"), key_set("old", "new"))

    async def scenario(keys: IssuerKeys) -> None:
        await until(lambda: is_valid(keys, "old"))
        assert not is_valid(keys, "new")
        await asyncio.sleep(0.05)
        assert (issuer.count, is_valid(keys, "new")) == (1, False)
        monkeypatch.setattr(issuer_keys, "UNKNOWN_KEY_SECONDS", 0.0)
        assert not is_valid(keys, "new")
        await until(lambda: is_valid(keys, "new"))
        assert issuer.count == 2

    run(issuer, scenario)


def test_a_failed_fetch_is_repeated_and_the_keys_stay() -> None:
    issuer = Issuer(key_set("old"), OSError("down"), OSError("down"), key_set("old", "new"))

    async def scenario(keys: IssuerKeys) -> None:
        await until(lambda: issuer.count >= 3)
        assert is_valid(keys, "old")
        await until(lambda: is_valid(keys, "new"))

    run(issuer, scenario, refresh_ms=20)


def test_a_fetch_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuer_keys, "GIVE_UP_SECONDS", 0.05)
    released = threading.Event()
    issuer = Issuer(key_set("old"))

    def read(config: OauthConfig) -> Any:
        if issuer.count == 0:
            issuer.count += 1
            released.wait(60)
            return OSError("late")
        return issuer.read(config)

    async def main() -> None:
        config = OauthConfig(url="file:///k", retry_ms=5)
        keys = IssuerKeys(asyncio.get_running_loop(), config, SystemClock(), read)
        keys.start()
        await until(lambda: is_valid(keys, "old"))
        released.set()

    asyncio.run(main())


# --- reading ---


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *arguments: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/keys"
    finally:
        server.shutdown()
        server.server_close()


def sent(body: bytes, status: int = 200, **headers: str) -> Callable[[Any], None]:
    def answer(handler: Any) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def test_keys_come_from_a_url_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(key_set("old"))
    found = [read_keys(OauthConfig(url=file.as_uri()))]
    with serving(sent(key_set("old"))) as url:
        found.append(read_keys(OauthConfig(url=url)))
    assert [len(keys) for keys in found if isinstance(keys, KeySet)] == [1, 1]


@pytest.mark.parametrize(
    "answer",
    [
        sent(b"not found", 404),
        sent(b"", 302, Location="http://127.0.0.1:1/other"),
        sent(b"no json"),
        sent(b" " * (MAX_BYTES + 1)),
        sent(b"short", **{"Content-Length": "100"}),
    ],
)
def test_another_answer_is_an_error(answer: Callable[[Any], None]) -> None:
    with serving(answer) as url:
        assert isinstance(read_keys(OauthConfig(url=url)), Exception)


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(b" " * (MAX_BYTES + 1))
    for url in (large.as_uri(), (tmp_path / "none").as_uri(), "http://127.0.0.1:1/keys"):
        assert isinstance(read_keys(OauthConfig(url=url)), Exception)
