"""The control by HTTP: who may ask, what is refused, how a route is found."""

import asyncio
import json
from typing import Any

from broker.server.testing.control import Control
from broker.server.testing.routes import Answer, Command, Refused, Route
from common.http.security import HttpSecurity
from common.http.small_server import Asked, Page, SmallServer, text

HERE = {"host": "127.0.0.1:9"}


def echo(command: Command) -> Answer:
    return Answer(value=[command.number, dict(command.parameters), command.json_body()])


async def later(command: Command) -> Answer:
    await asyncio.sleep(0)
    if command.number == 2:
        raise Refused(409, "not now")
    return Answer(value=command.number)


ROUTES = [
    Route("POST", "/things/{id}", echo, "Echo", parameters={"a": "A text"}, body={}),
    Route("GET", "/things/{id}", later, "One thing"),
]


def server(security: HttpSecurity | None = None) -> SmallServer:
    return SmallServer(
        lambda asked: text("metrics") if asked.path == "/metrics" else None,
        security=security or HttpSecurity(),
        changes=Control(ROUTES).answer,
    )


def ask(
    method: str, target: str, body: bytes = b"", *, of: SmallServer | None = None, **headers: str
) -> tuple[int, Any]:
    named = {**HERE, **{name.replace("_", "-"): value for name, value in headers.items()}}
    page: Any = (of or server()).answer(method, target, list(named.items()), body)
    if not isinstance(page, Page):
        page = asyncio.run(page)
    return page.status, json.loads(page.body) if page.body[:1] in b"{[1234567890" else page.body


def test_a_route_gets_its_number_its_parameters_and_its_body() -> None:
    assert ask("POST", "/things/7?a=b", b"{}") == (200, [7, {"a": "b"}, {}])
    assert ask("GET", "/things/7") == (200, 7)


def test_what_no_route_takes_is_refused_in_words() -> None:
    assert "no JSON" in ask("POST", "/things/7", b"{")[1]["detail"]
    assert "no parameter 'c', but a" in ask("POST", "/things/7?c=d", b"{}")[1]["detail"]
    assert ask("GET", "/things/2")[1]["detail"] == "not now"
    assert ask("DELETE", "/things/7")[0] == 405
    assert ask("GET", "/things/x")[0] == 404
    assert ask("GET", "/things/12345678901234567890")[0] == 404
    assert ask("POST", "/metrics")[0] == 405
    assert ask("GET", "/metrics") == (200, b"metrics")


def test_pages_of_other_origins_may_not_ask_and_other_hosts_are_no_names_of_it() -> None:
    for method in ("GET", "POST"):
        assert ask(method, "/things/7", b"{}", origin="http://evil.example")[0] == 403
        assert ask(method, "/things/7", b"{}", sec_fetch_site="cross-site")[0] == 403
        assert ask(method, "/things/7", b"{}", host="evil.example")[0] == 421
        assert ask(method, "/things/7", b"{}", origin="http://127.0.0.1:9")[0] == 200
    assert ask("GET", "/metrics", origin="http://evil.example") == (200, b"metrics")


def test_with_users_a_password_is_needed() -> None:
    secured = server(HttpSecurity(users={"a": "b"}))
    assert ask("POST", "/things/7", b"{}", of=secured)[0] == 401
    assert ask("POST", "/things/7", b"{}", of=secured, authorization="Basic YTpi")[0] == 200


def test_the_document_describes_every_route() -> None:
    status, document = ask("GET", "/openapi.json")
    assert status == 200
    assert document["openapi"] == "3.1.0"
    assert set(document["paths"]["/things/{id}"]) == {"get", "post"}
    names = [each["name"] for each in document["paths"]["/things/{id}"]["post"]["parameters"]]
    assert names == ["a", "id"]


def test_without_a_control_there_is_none() -> None:
    plain = SmallServer(lambda _: None)
    assert plain.answer("POST", "/faults", list(HERE.items())).status == 405  # type: ignore[union-attr]
    assert plain.answer("GET", "/faults", list(HERE.items())).status == 404  # type: ignore[union-attr]
    assert isinstance(Asked("/", HERE).body, bytes)
