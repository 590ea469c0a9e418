"""The control of a broker under test by HTTP: finds the route of a request.

`common.http.small_server` decides who may ask: pages of other origins may not, and other machines
only with a password.
"""

import re
from collections.abc import Coroutine, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

from broker.server.testing.open_api import BROKER, About, open_api
from broker.server.testing.routes import JSON, Answer, Command, Refused, Route
from common.http.small_server import Asked, LaterPage, Page, problem


class Control:
    """Serves the routes, and the document about them at `/openapi.json`."""

    def __init__(self, routes: Sequence[Route], about: About = BROKER) -> None:
        document = open_api(routes, about)
        self._routes: dict[str, tuple[re.Pattern[str], dict[str, Route]]] = {}
        told = Route("GET", "/openapi.json", lambda _: Answer(value=document), "This document")
        for route in (*routes, told):
            pattern = re.compile(re.escape(route.path).replace(r"\{id\}", "([0-9]{1,9})"))
            self._routes.setdefault(route.path, (pattern, {}))[1][route.method] = route

    def answer(self, asked: Asked) -> Page | LaterPage | None:
        """Carry out a request; None if there is no such path."""
        for pattern, methods in self._routes.values():
            found = pattern.fullmatch(asked.path)
            if found is None:
                continue
            route = methods.get("GET" if asked.method == "HEAD" else asked.method)
            if route is None:
                allowed = ", ".join(sorted(methods))
                return problem(
                    HTTPStatus.METHOD_NOT_ALLOWED, f"Only {allowed}.", {"Allow": allowed}
                )
            number = int(found[1]) if found.groups() else 0
            return _served(route, number, asked)
        return None


def _served(route: Route, number: int, asked: Asked) -> Page | LaterPage:
    parameters = dict(parse_qsl(asked.query, keep_blank_values=True))
    unknown = next((name for name in parameters if name not in route.parameters), None)
    if unknown is not None:
        known = ", ".join(sorted(route.parameters)) or "none"
        return problem(
            HTTPStatus.BAD_REQUEST, f"There is no parameter {unknown[:40]!r}, but {known}"
        )
    try:
        answer = route.serve(Command(number, parameters, asked.body))
    except Refused as refused:
        return problem(refused.status, refused.detail)
    return _later(answer) if isinstance(answer, Coroutine) else _page(answer)


async def _later(answering: Coroutine[Any, Any, Answer]) -> Page:
    try:
        return _page(await answering)
    except Refused as refused:
        return problem(refused.status, refused.detail)


def _page(answer: Answer) -> Page:
    return Page(answer.status, JSON, answer.body())
