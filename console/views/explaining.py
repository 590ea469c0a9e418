"""Why a record or a group is as it is: the findings of `explain`, for the page."""

from typing import Any, Final

from aiohttp import web

from common.kafka.admin.client import AdminClient
from console.answers import Fields, json_answer
from console.console import CONSOLE
from explain.asking.questions import Questions
from explain.report import as_object
from explain.subjects import explain_group, explain_topic

_LOOK_SECONDS: Final = 1.0


async def get_topic(request: web.Request) -> web.Response:
    """Return the findings on a topic, one of its partitions, or one offset."""
    fields = Fields(request.query)
    number = fields.whole("partition", most=(1 << 31) - 1) if fields.given("partition") else None
    offset = fields.whole("offset") if number is not None and fields.given("offset") else None
    admin = request.app[CONSOLE].cluster.admin
    return json_answer(await admin.run(_topic, request.match_info["topic"], number, offset))


def _topic(client: AdminClient, name: str, number: int | None, offset: int | None) -> Any:
    return _plain(explain_topic(Questions(client), name, number, offset))


async def get_group(request: web.Request) -> web.Response:
    """Return the findings on a group; one that is behind is looked at twice."""
    admin = request.app[CONSOLE].cluster.admin
    return json_answer(await admin.run(_group, request.match_info["group"]))


def _group(client: AdminClient, group_id: str) -> Any:
    return _plain(explain_group(Questions(client), group_id, seconds=_LOOK_SECONDS))


def _plain(found: Any) -> dict[str, Any]:
    """Return an explanation without its figures: its sentences have them."""
    plain = as_object(found)
    for finding in plain["findings"]:
        del finding["figures"]
    return plain


ROUTES: Final = (
    web.get("/api/topics/{topic}/explain", get_topic),
    web.get("/api/groups/{group}/explain", get_group),
)
