"""`PUT /faults {"delay_ms": n}`: makes a service slow on purpose, to see how the others cope.

It is there only if the service was started with `allow_faults`; `millstream load --slow` switches
it.
"""

from collections.abc import Callable

from aiohttp import web

from common.http.problems import ProblemError, unavailable
from common.process.json_text import NotJsonError, read_json
from common.processing.processor import Processor

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
