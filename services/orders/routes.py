"""The REST interface of orders; described for clients in openapi.json beside this file.

A route finds the instance that holds the order, passes the request on if that is another one,
and otherwise asks the desk or the view. While partitions move between instances a request waits
a little, then gets 503 with Retry-After.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from common.http.guarding import peer_session
from common.http.problems import ProblemError, unavailable
from common.process import clock, traces
from common.process.telemetry import new_traceparent, parse_trace_id
from common.process.traces import TRACEPARENT
from common.processing.service import Running
from schemas.topics import ORDERS
from services.orders.app import OrdersService
from services.orders.desk import BrokerUnavailableError, KeyReusedError
from services.orders.domain import Command, OrderEvent, is_judged, is_possible, to_json
from services.orders.ids import id_for_key, partition_of
from services.orders.page import add_page
from services.orders.requests import (
    MalformedJsonError,
    OrderRequest,
    digest,
    parse_json,
    parse_order,
)
from services.orders.searching import add_search
from services.orders.settings import OrdersSettings
from services.orders.store import NotHeldError, StoredOrder
from services.orders.streaming import EVENT_STREAM, PASS_ON_TIMEOUT, copy_stream, stream_order

_FORWARDED = "X-Millstream-Forwarded"
_FORWARD_MARGIN_SECONDS = 5.0
_MOVE_GRACE_SECONDS = 2.0
_MOVE_POLL_SECONDS = 0.05
_WAIT_MAX_MS = 60_000
_KEY_MAX = 255
_PASSED_ON = ("Content-Type", "Idempotency-Key", TRACEPARENT)

_OPENAPI = json.loads((Path(__file__).parent / "openapi.json").read_text())


def add_routes(
    app: web.Application, settings: OrdersSettings, running: Running[OrdersService]
) -> None:
    """Add the calls about orders, and the page at `/`."""
    routes = OrderRoutes(settings, running)
    app.add_routes(
        [
            web.post("/v1/orders", routes.post_order),
            web.get("/v1/orders/{order_id}", routes.get_order),
            web.delete("/v1/orders/{order_id}", routes.delete_order),
            web.post("/v1/orders/{order_id}/shipment", routes.post_shipment),
            web.get("/v1/orders/{order_id}/validated", routes.get_validated),
            web.get("/v1/orders/{order_id}/events", routes.get_events),
            web.get("/v1/orders/{order_id}/stream", routes.get_stream),
            web.get("/openapi.json", get_openapi),
        ]
    )
    app.cleanup_ctx.append(routes.session)
    add_search(app, settings)
    add_page(app, settings.neighbours, running.missing)


async def get_openapi(_: web.Request) -> web.Response:
    """Answer with the description of all calls."""
    return web.json_response(_OPENAPI)


class OrderRoutes:
    """The handlers, with what they need."""

    def __init__(self, settings: OrdersSettings, running: Running[OrdersService]) -> None:
        self._settings = settings
        self._running = running
        self._session: aiohttp.ClientSession | None = None

    async def session(self, _: web.Application) -> Any:
        """Keep one client session open while the application runs."""
        async with peer_session(self._settings.http_security) as self._session:
            yield

    @property
    def _service(self) -> OrdersService:
        service = self._running.service
        if service is None:
            raise unavailable("the service is starting")
        return service

    # -- creating

    async def post_order(self, request: web.Request) -> web.StreamResponse:
        if request.content_type != "application/json":
            raise ProblemError(415, "the body must be application/json")
        body = await request.read()
        key = _idempotency_key(request)
        begun_ns = clock.timestamp_ns()
        traceparent = _traceparent(request)
        deadline = clock.now_seconds() + self._settings.produce_timeout_ms / 1000
        event: OrderEvent | None = None
        while event is None:
            placed = await self._place_new(request, key)
            if isinstance(placed, web.StreamResponse):
                return placed
            parsed = _parse(body)
            order = parse_order(parsed, clock.utc_now())
            if isinstance(order, list):
                raise ProblemError(422, f"wrong fields: {len(order)}", errors=order)
            body_digest = digest(parsed) if key else None
            try:
                event = await self._create(placed, order, body_digest, traceparent)
            except NotHeldError:
                # Nothing was written: its partition has moved, or all is being begun anew here.
                await _wait_for_move(deadline)
        order_id = event["order_id"]
        if traces.recorder is not None:
            traces.recorder.tell_request(
                traceparent,
                is_new=request.headers.get(TRACEPARENT) != traceparent,
                begun_ns=begun_ns,
                attributes={"http.request.method": "POST", "order.id": order_id},
            )
        location = f"/v1/orders/{order_id}"
        return web.json_response(to_json(event), status=201, headers={"Location": location})

    async def _create(
        self, order_id: str, order: OrderRequest, body_digest: str | None, traceparent: str
    ) -> OrderEvent:
        desk = self._service.desk
        try:
            if body_digest is None:
                return await desk.create(order_id, order, traceparent)
            return await desk.create_once(order_id, order, body_digest, traceparent)
        except KeyReusedError:
            detail = "this Idempotency-Key was used with another request"
            raise ProblemError(409, detail) from None
        except BrokerUnavailableError:
            raise unavailable("the order could not be stored; it may be tried again") from None

    async def _place_new(self, request: web.Request, key: str | None) -> str | web.StreamResponse:
        """Return the new order's id if it is ours to create, else the owner's answer."""
        if key is not None:
            order_id = id_for_key(key)
            url = await self._owner(request, order_id, _MOVE_GRACE_SECONDS)
            return order_id if url is None else await self._pass_on(request, url, 0)
        deadline = clock.now_seconds() + _MOVE_GRACE_SECONDS
        while True:
            new_id = self._service.desk.new_order_id()
            if new_id is not None:
                return new_id
            others = self._service.directory.owners(ORDERS.name)
            others = [url for url in others if url != self._service.url]
            if others and _FORWARDED not in request.headers:
                return await self._pass_on(request, others[0], 0)
            await _wait_for_move(deadline)

    # -- asking

    async def get_order(self, request: web.Request) -> web.StreamResponse:
        wait_ms = _wait_ms(request, 0)
        found = await self._find(request, wait_ms, lambda order: True)
        if isinstance(found, web.StreamResponse):
            return found
        return web.json_response(to_json(await self._service.worker.read(found.events[-1])))

    async def get_validated(self, request: web.Request) -> web.StreamResponse:
        wait_ms = _wait_ms(request, self._settings.default_wait_ms)
        found = await self._find(request, wait_ms, lambda order: is_judged(order.state))
        if isinstance(found, web.StreamResponse):
            return found
        if not is_judged(found.state):
            raise ProblemError(504, f"the order was not judged within {wait_ms} ms")
        return web.json_response(to_json(await self._service.worker.read(found.events[-1])))

    async def get_events(self, request: web.Request) -> web.StreamResponse:
        found = await self._find(request, _wait_ms(request, 0), lambda order: True)
        if isinstance(found, web.StreamResponse):
            return found
        return web.json_response(await self._history(found))

    async def get_stream(self, request: web.Request) -> web.StreamResponse:
        found = await self._find(request, _wait_ms(request, 0), lambda order: True)
        if isinstance(found, web.StreamResponse):
            return found
        order_id = request.match_info["order_id"]
        view = self._service.worker.view
        return await stream_order(request, view, partition_of(order_id), order_id, self._history)

    async def _history(self, order: StoredOrder) -> dict[str, Any]:
        worker = self._service.worker
        events = [to_json(await worker.read(event)) for event in list(order.events)]
        checks = [await worker.read_check(verdict) for verdict in list(order.checks.values())]
        return {"events": events, "checks": checks}

    # -- commanding

    async def delete_order(self, request: web.Request) -> web.StreamResponse:
        return await self._command(request, Command.CANCEL)

    async def post_shipment(self, request: web.Request) -> web.StreamResponse:
        return await self._command(request, Command.SHIP)

    async def _command(self, request: web.Request, command: Command) -> web.StreamResponse:
        """Accept a command that the order's state allows; its effect is the order's next event."""
        found = await self._find(request, 0, lambda order: True)
        if isinstance(found, web.StreamResponse):
            return found
        if not is_possible(found.state, command):
            raise ProblemError(409, f"{command.value} is not possible: the order is {found.state}")
        current = await self._service.worker.read(found.events[-1])
        try:
            await self._service.desk.command(current, command)
        except (BrokerUnavailableError, NotHeldError):
            raise unavailable("the command could not be stored; it may be tried again") from None
        location = f"/v1/orders/{current['order_id']}"
        return web.json_response(to_json(current), status=202, headers={"Location": location})

    # -- finding

    async def _find(
        self, request: web.Request, wait_ms: int, is_enough: Callable[[StoredOrder], bool]
    ) -> StoredOrder | web.StreamResponse:
        """Return the order when it satisfies the condition or time is over, or its owner's
        answer."""
        order_id = request.match_info["order_id"]
        deadline = clock.now_seconds() + wait_ms / 1000
        while True:
            left = max(deadline - clock.now_seconds(), 0.0)
            url = await self._owner(request, order_id, max(left, _MOVE_GRACE_SECONDS))
            if url is not None:
                return await self._pass_on(request, url, left)
            try:
                order = await self._service.worker.view.wait_for(
                    partition_of(order_id), order_id, is_enough, left
                )
            except NotHeldError:
                continue
            if order is None:
                raise ProblemError(404, f"there is no order {order_id}")
            return order

    # -- other instances

    async def _owner(
        self, request: web.Request, order_id: str, patience_seconds: float
    ) -> str | None:
        """Return the URL of the instance that holds the order, None if it is this one."""
        partition = partition_of(order_id)
        deadline = clock.now_seconds() + patience_seconds
        while True:
            service = self._service
            if service.worker.view.holds(partition):
                return None
            url = service.directory.owner(ORDERS.name, partition)
            if url not in (None, service.url) and _FORWARDED not in request.headers:
                return url
            await _wait_for_move(deadline)

    async def _pass_on(
        self, request: web.Request, url: str, wait_seconds: float
    ) -> web.StreamResponse:
        assert self._session is not None
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        headers[_FORWARDED] = "1"
        is_stream = request.path.endswith("/stream")
        seconds = wait_seconds + _FORWARD_MARGIN_SECONDS
        timeout = PASS_ON_TIMEOUT if is_stream else aiohttp.ClientTimeout(total=seconds)
        try:
            async with self._session.request(
                request.method,
                url + request.path_qs,
                data=await request.read(),
                headers=headers,
                timeout=timeout,
            ) as answer:
                if answer.content_type == EVENT_STREAM:
                    return await copy_stream(request, answer)
                kept = {
                    name: answer.headers[name]
                    for name in ("Content-Type", "Location", "Retry-After")
                    if name in answer.headers
                }
                return web.Response(body=await answer.read(), status=answer.status, headers=kept)
        except (aiohttp.ClientError, TimeoutError):
            raise unavailable("the instance that holds the order does not answer") from None


async def _wait_for_move(deadline: float) -> None:
    if clock.now_seconds() >= deadline:
        raise unavailable("partitions are moving between instances")
    await asyncio.sleep(_MOVE_POLL_SECONDS)


def _parse(body: bytes) -> Any:
    try:
        return parse_json(body)
    except MalformedJsonError as error:
        raise ProblemError(400, str(error)) from None


def _idempotency_key(request: web.Request) -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not (0 < len(key) <= _KEY_MAX and key.isascii() and key.isprintable()):
        detail = f"Idempotency-Key must have 1 to {_KEY_MAX} printable ASCII characters"
        raise ProblemError(400, detail)
    return key


def _traceparent(request: web.Request) -> str:
    given = request.headers.get(TRACEPARENT)
    if given is not None and parse_trace_id(given) is not None:
        return given
    return new_traceparent(clock.random_hex(16), clock.random_hex(8))


def _wait_ms(request: web.Request, default_ms: int) -> int:
    text = request.query.get("timeout")
    if text is None:
        return default_ms
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise ProblemError(400, "timeout must be a whole number of milliseconds")
    return min(int(text), _WAIT_MAX_MS)
