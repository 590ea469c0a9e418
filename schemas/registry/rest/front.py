"""The front page at `/` for browsers; other clients get the answer of Confluent's registry."""

from collections.abc import Mapping

from aiohttp import web

from common.http.front import FrontPage, Link, Step
from common.http.serving import Handler, front_page_handler
from schemas.registry.rest.answers import TOPIC_KEY, WRITES_KEY
from schemas.registry.rest.settings import get_root

_LINKS = (
    Link("/subjects", "/subjects", "the names that schemas are registered under"),
    Link("/schemas", "/schemas", "every schema, with subject, version and id"),
    Link("/schemas/types", "/schemas/types", "Avro, JSON Schema, Protobuf"),
    Link("/config", "/config", "which changes are compatible, unless a subject says otherwise"),
    Link("/mode", "/mode", "whether it can be written to"),
)
_STEPS = (
    Step(
        "See the newest schema of the orders.",
        "curl -s {origin}/subjects/orders-value/versions/latest",
    ),
    Step("Let any client of Confluent's registry use it.", "schema.registry.url={origin}"),
)


def front_page(neighbours: Mapping[str, str]) -> Handler:
    """Return the handler of `/`."""
    page = FrontPage(
        name="registry",
        title="Schema registry",
        what="Keeps the schema of every event, and refuses a change that readers could not read. "
        "Its interface is that of Confluent's registry.",
        steps=_STEPS,
        links=_LINKS,
        neighbours=neighbours,
    )

    return front_page_handler(page, _state, get_root)


async def _state(request: web.Request) -> tuple[list[str], dict[str, str]]:
    topic, leadership = request.app[TOPIC_KEY], request.app[WRITES_KEY].leadership
    missing = [] if topic.is_loaded else ["its topic to be read"]
    if leadership.leader is None:
        missing.append("a leader")
    leader = "none yet" if leadership.leader is None else leadership.leader.url
    return missing, {"Subjects": str(len(topic.registry.subjects())), "Leader": leader}
