"""What a service shows a browser at `/`, unless it has a page of its own there."""

from aiohttp import web

from common.http.application import Readiness
from common.http.front import FrontPage, Link, Step
from common.http.neighbours import parse_neighbours
from common.http.serving import front_page_handler
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
