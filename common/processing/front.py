"""What a service shows a browser at `/`, unless it has a page of its own there.

`PUT /faults {"delay_ms": n}` makes a service slow on purpose, to see how the others cope. It is
there only if the service was started with `allow_faults`; `millstream load --slow` switches it.
"""

from collections.abc import Callable

from aiohttp import web

from common.http.application import Readiness
from common.http.front import FrontPage, Link, Step
from common.http.neighbours import parse_neighbours
from common.http.problems import ProblemError, unavailable
from common.http.serving import front_page_handler
from common.process.json_text import NotJsonError, read_json
from common.processing.processor import Processor
from common.processing.service import R, S, Service
from common.processing.settings import Settings

_OPENAPI = Link("/openapi.json", "/openapi.json", "its interface, as OpenAPI 3.1")


def add_front_page(
    app: web.Application, service: Service[S, R], settings: Settings, readiness: Readiness
) -> None:
    """Add the page to a service's application, as the last of its routes."""
    paths = {resource.canonical for resource in app.router.resources()}
    if "/" in paths:
        return
    page = FrontPage(
        name=service.name.replace("-", "_"),
        title=service.name.replace("-", " ").capitalize(),
        what=service.what,
        steps=_steps(parse_neighbours(settings.neighbours)),
        links=[_OPENAPI] if "/openapi.json" in paths else [],
        neighbours=parse_neighbours(settings.neighbours),
    )
    facts = {
        "Kafka": settings.bootstrap_servers.replace(",", ", "),
        "Schema registry": settings.registry_url,
    }

    async def state(_: web.Request) -> tuple[list[str], dict[str, str]]:
        return await readiness(), facts

    app.router.add_get("/", front_page_handler(page, state))


def _steps(neighbours: dict[str, str]) -> list[Step]:
    steps = [
        Step("See what it has done, in numbers.", "curl -s {origin}/metrics | grep ^millstream")
    ]
    if "orders" in neighbours:
        place = (
            f"curl -s {neighbours['orders']}/v1/orders -H 'Content-Type: application/json' -d "
            """'{"customer_id": "17850", "lines": [{"product_id": "85123A", "quantity": 6, """
            """"unit_price": "2.55"}]}'"""
        )
        steps.insert(0, Step("Place an order, on the orders page or so:", place))
    return steps


MAX_DELAY_MS = 60_000


def add_fault_switch(app: web.Application, processor: Callable[[], Processor | None]) -> None:
    """Let each batch of this service's processor be delayed."""

    async def put_faults(request: web.Request) -> web.Response:
        try:
            found = read_json(await request.read())
        except NotJsonError:
            found = None
        delay_ms = found.get("delay_ms") if isinstance(found, dict) else None
        if not isinstance(delay_ms, int) or not 0 <= delay_ms <= MAX_DELAY_MS:
            raise ProblemError(422, f"delay_ms must be a number from 0 to {MAX_DELAY_MS}")
        slowed = processor()
        if slowed is None:
            raise unavailable("waiting for: the processor")
        slowed.fault_delay_ms = delay_ms
        return web.json_response({"delay_ms": delay_ms})

    app.router.add_put("/faults", put_faults)
