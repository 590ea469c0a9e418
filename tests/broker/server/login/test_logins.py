"""How a node begins a login, at once or after another server has answered."""

import asyncio
import threading
from pathlib import Path

import pytest

from broker.config.security_config import ClientSecurity, SecurityProtocol
from broker.server.login.logins import MAX_WAITING, Begun, WaitingLogin, begin_login
from common.credentials.errors import AuthenticationFailed
from common.credentials.sasl_client import PlainClient
from common.credentials.tokens import TokenSource

BEGUN = Begun(PlainClient("a", "b"), b"first")


def by_token(url: str) -> ClientSecurity:
    source = TokenSource(url, "id", "secret")
    return ClientSecurity(SecurityProtocol.SASL_PLAINTEXT, mechanism="OAUTHBEARER", oauth=source)


def test_a_token_is_read_for_each_connection(tmp_path: Path) -> None:
    file = tmp_path / "token"
    security = by_token(file.as_uri())
    assert not security.asks_others
    for token in ("one.x.y", "two.x.y"):
        file.write_text(token)
        begun = begin_login(security, "", "localhost")
        assert isinstance(begun, Begun)
        assert begun.first == f"n,,\1auth=Bearer {token}\1\1".encode()
    file.unlink()
    failed = begin_login(security, "", "localhost")
    assert isinstance(failed, AuthenticationFailed)
    assert "no token from" in str(failed)


def test_an_issuer_is_another_server() -> None:
    assert by_token("https://issuer.example/token").asks_others


def test_a_login_that_waits_holds_up_nothing() -> None:
    async def run() -> list[Begun | AuthenticationFailed]:
        ends, begun = threading.Event(), asyncio.Queue[Begun | AuthenticationFailed]()

        def wait() -> Begun:
            assert ends.wait(60)
            return BEGUN

        loop = asyncio.get_running_loop()
        WaitingLogin(loop, wait, begun.put_nowait)
        cancelled = WaitingLogin(loop, wait, pytest.fail)
        await asyncio.sleep(0)
        assert begun.empty()
        cancelled.cancel()
        ends.set()
        return [await begun.get()]

    assert asyncio.run(run()) == [BEGUN]


def test_only_so_many_logins_wait() -> None:
    async def run() -> AuthenticationFailed:
        ends, begun = threading.Event(), asyncio.Queue[Begun | AuthenticationFailed]()

        def wait() -> Begun:
            assert ends.wait(60)
            return BEGUN

        loop = asyncio.get_running_loop()
        for _ in range(MAX_WAITING + 1):
            WaitingLogin(loop, wait, begun.put_nowait)
        first = await begun.get()
        ends.set()
        others = [await begun.get() for _ in range(MAX_WAITING)]
        assert others == [BEGUN] * MAX_WAITING
        assert isinstance(first, AuthenticationFailed)
        return first

    assert "logins wait" in str(asyncio.run(run()))
