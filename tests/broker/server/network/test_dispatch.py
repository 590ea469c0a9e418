"""Answers that come later."""

import logging
from types import SimpleNamespace
from typing import Any

from broker.protocol.api_keys import ApiKey
from broker.protocol.framing import RequestHeader
from broker.protocol.messages.describe_cluster import DescribeClusterResponse
from broker.server.network.connection import Slot
from broker.server.network.dispatch import RequestContext


class Connection:
    """Keeps what a context does to its connection."""

    def __init__(self) -> None:
        self.peer = SimpleNamespace(host="127.0.0.1")
        self.is_closed = False
        self.slots: list[Any] = []

    def new_slot(self) -> Slot:
        self.slots.append(Slot(self))  # type: ignore[arg-type]
        return self.slots[-1]

    def on_slot_done(self) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True


def test_an_answer_that_cannot_be_said_costs_one_client_its_connection(caplog: Any) -> None:
    # Who replies is the metadata quorum, say, and an exception there would end the node.
    connection: Any = Connection()
    context = RequestContext(connection, RequestHeader(ApiKey.DESCRIBE_CLUSTER, 0, 7, None))
    context.defer()
    with caplog.at_level(logging.ERROR):
        context.reply(DescribeClusterResponse(endpoint_type=2))
    assert connection.is_closed
    assert "cannot be said in version 0" in caplog.text
