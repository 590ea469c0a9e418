"""The cluster live, and the switches of the stack that the console belongs to."""

from contextlib import aclosing
from typing import Final

from aiohttp import web

from common.http.problems import ProblemError
from console.answers import json_answer
from console.console import CONSOLE
from console.own_stack import OwnStack
from console.views.records import open_events


async def watch(request: web.Request) -> web.StreamResponse:
    """Send pictures of the cluster with what has happened, until the client goes."""
    async with (
        open_events(request) as events,
        aclosing(request.app[CONSOLE].watch.watch()) as pictures,
    ):
        async for text in pictures:
            await events.send("picture", text)
    return events.response


def _stack(request: web.Request) -> OwnStack:
    found = request.app[CONSOLE].stack
    if found is None:
        raise ProblemError(404, "This console belongs to no stack: millstream up starts one.")
    return found


async def get_stack(request: web.Request) -> web.Response:
    """Return addresses, states and first steps of the stack."""
    return json_answer(_stack(request).shown())


async def change_part(request: web.Request) -> web.Response:
    """Stop, kill, pause or start a part of the stack."""
    part, action = request.match_info["part"], request.match_info["action"]
    _stack(request).change(part, action)
    return json_answer({"part": part, "action": action}, 202)


ROUTES: Final = (
    web.get("/api/watch", watch),
    web.get("/api/stack", get_stack),
    web.post("/api/stack/parts/{part}/{action}", change_part),
)
