"""What only the controller decides: passed on to it, wherever it is, and its answer passed back.

The answer to a change of topics goes out when this broker knows of it too, so that a client that
goes on here finds what it made.
"""

from collections.abc import Callable

from broker.errors import ErrorCode
from broker.protocol.message import Message
from broker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from broker.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from broker.protocol.messages.delete_topics import DeleteTopicsResponse
from broker.server.broker import Broker
from broker.server.network.dispatch import Answer, Later, RequestContext

DEFAULT_TIMEOUT_MS = 30_000
MAX_TIMEOUT_MS = 300_000
VISIBLE_TIMEOUT_MS = 5_000


def handle_forward(broker: Broker, context: RequestContext, request: Message) -> Answer:
    """Ask the controller, in the version the client speaks."""
    later = Later(context)

    def answered(response: Message) -> None:
        broker.waits.until(
            _visible(broker, request, response),
            lambda: later.reply(response),
            timeout_ms=VISIBLE_TIMEOUT_MS,
        )

    wanted_ms = getattr(request, "timeout_ms", DEFAULT_TIMEOUT_MS)
    timeout_ms = wanted_ms if 0 < wanted_ms <= MAX_TIMEOUT_MS else DEFAULT_TIMEOUT_MS
    broker.quorum.channel.ask(request, context.api_version, answered, timeout_ms=timeout_ms)
    return later.answer()


def _visible(broker: Broker, request: Message, response: Message) -> Callable[[], bool]:
    """Return what is so when this node knows of the change that was answered."""
    match request, response:
        case (CreateTopicsRequest(validate_only=False), CreateTopicsResponse()):
            names = [topic.name for topic in response.topics if topic.error_code == ErrorCode.NONE]
            return lambda: all(name in broker.cluster.topics.by_name for name in names)
        case (_, DeleteTopicsResponse()):
            deleted = [topic for topic in response.responses if topic.error_code == ErrorCode.NONE]
            ids = [topic.topic_id for topic in deleted if topic.topic_id != bytes(16)]
            return lambda: not any(topic_id in broker.cluster.topics.by_id for topic_id in ids)
        case (CreatePartitionsRequest(validate_only=False), CreatePartitionsResponse()):
            refused = {result.name for result in response.results if result.error_code}
            counts = {topic.name: topic.count for topic in request.topics}
            return lambda: all(
                name in refused
                or (image := broker.cluster.topics.by_name.get(name)) is None
                or len(image.partitions) >= count
                for name, count in counts.items()
            )
        case _:
            return lambda: True
