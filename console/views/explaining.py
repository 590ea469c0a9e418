"""Why something is as it is: the findings of `explain`, for the page.

The tables of causes are loaded when somebody asks: they would take a fifth of the console's start.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from common.kafka.admin.client import AdminClient
from console.answers import Fields, json_answer
from console.console import CONSOLE

if TYPE_CHECKING:
    from explain.explanations import Explanation

_LOOK_SECONDS: Final = 1.0


async def get_topic(request: web.Request) -> web.Response:
    """Return the findings on a topic, one of its partitions, or one offset."""
    fields = Fields(request.query)
    number = fields.whole("partition", most=(1 << 31) - 1) if fields.given("partition") else None
    offset = fields.whole("offset") if number is not None and fields.given("offset") else None
    admin = request.app[CONSOLE].cluster.admin
    return json_answer(await admin.run(_topic, request.match_info["topic"], number, offset))


def _topic(client: AdminClient, name: str, number: int | None, offset: int | None) -> Any:
    from explain.subjects import explain_topic

    return _plain(client, explain_topic, name, number, offset)


async def get_group(request: web.Request) -> web.Response:
    """Return the findings on a group; one that is behind is looked at twice."""
    admin = request.app[CONSOLE].cluster.admin
    return json_answer(await admin.run(_group, request.match_info["group"]))


def _group(client: AdminClient, group_id: str) -> Any:
    from explain.subjects import explain_group

    return _plain(client, explain_group, group_id, seconds=_LOOK_SECONDS)


async def get_cluster(request: web.Request) -> web.Response:
    """Return the findings on the nodes, all partitions and open transactions."""
    return json_answer(await request.app[CONSOLE].cluster.admin.run(_cluster))


def _cluster(client: AdminClient) -> Any:
    from explain.subjects import explain_cluster

    return _plain(client, explain_cluster)


async def get_transaction(request: web.Request) -> web.Response:
    """Return the findings on a transactional id."""
    admin = request.app[CONSOLE].cluster.admin
    return json_answer(await admin.run(_transaction, request.match_info["transaction"]))


def _transaction(client: AdminClient, transactional_id: str) -> Any:
    from explain.subjects import explain_transaction

    return _plain(client, explain_transaction, transactional_id)


async def get_producer(request: web.Request) -> web.Response:
    """Return the findings on a producer id."""
    number = Fields(request.match_info).whole("producer")
    return json_answer(await request.app[CONSOLE].cluster.admin.run(_producer, number))


def _producer(client: AdminClient, number: int) -> Any:
    from explain.subjects import explain_producer

    return _plain(client, explain_producer, number)


def _plain(
    client: AdminClient, explain: "Callable[..., Explanation]", *about: Any, **named: Any
) -> dict[str, Any]:
    """Return an explanation without its figures: its sentences have them."""
    from explain.asking.questions import Questions
    from explain.report import as_object

    plain = as_object(explain(Questions(client), *about, **named))
    for finding in plain["findings"]:
        del finding["figures"]
    return plain


ROUTES: Final = (
    web.get("/api/explain", get_cluster),
    web.get("/api/transactions/{transaction}/explain", get_transaction),
    web.get("/api/producers/{producer}/explain", get_producer),
    web.get("/api/topics/{topic}/explain", get_topic),
    web.get("/api/groups/{group}/explain", get_group),
)
