"""The admin client: it finds the nodes of a cluster, chooses one for each request, and retries.

A request goes to any node, to the controller, or to one broker. The nodes come from Metadata (from
DescribeCluster if the tool was given controllers, KIP-919). The client retries after a lost
connection and after NOT_CONTROLLER, at growing intervals, until `default.api.timeout.ms` has
passed; then the error names the last failure. Every other error is the answer. Until a first node
has answered the timeout is ten seconds, unless that setting is given.
"""

import time
from collections.abc import Callable, Collection, Iterator
from enum import Enum
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from common.kafka.admin.settings import AdminSettings
from common.kafka.client.blocking import Connection
from common.kafka.client.exchange import ConnectionFailed, OtherProtocol
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.message import Message, Struct
from common.kafka.protocol.messages.api_versions import ApiVersionsResponse
from common.kafka.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from common.kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from common.process.clock import now_ms

ENDPOINT_TYPE_CONTROLLER = 2

ERROR_TEXTS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.OFFSET_OUT_OF_RANGE: "The offset is outside of what the log holds.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The group has members, and only they may commit.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "The group is actively subscribed to the topic.",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "The transactionalId could not be found.",
    ErrorCode.INVALID_PRODUCER_EPOCH: "The producer has a newer epoch by now.",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "There is a newer coordinator of the transaction.",
}
"""Texts of frequent errors that brokers send without one."""

OTHER_PROTOCOL_MS = 1_000
"""How long a client tries nodes that seem to speak another protocol."""

Answer = TypeVar("Answer", bound=Message)
Outcome = TypeVar("Outcome")


class NoAnswerError(KafkaError):
    """REQUEST_TIMED_OUT, from the client itself: no node answered before the deadline."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)


class To(Enum):
    """The node of a request that is not for one broker."""

    ANY_NODE = "any node"
    CONTROLLER = "the controller"


class Node(NamedTuple):
    """One node of the cluster, from the cluster's metadata."""

    node_id: int
    host: str
    port: int
    rack: str | None


class ClusterNodes(NamedTuple):
    """The nodes of the cluster, and the one for requests to the controller."""

    controller_id: int
    nodes: dict[int, Node]


class AdminClient:
    """A client of one cluster, used in a `with` block; it has one connection per node."""

    def __init__(self, settings: AdminSettings) -> None:
        self.settings = settings
        self._connections: dict[tuple[str, int], Connection] = {}
        self._has_connected = False
        self._nodes: ClusterNodes | None = None

    # --- requests ---

    def ask(self, request: Message, answer: type[Answer], to: To | int = To.ANY_NODE) -> Answer:
        """Send a request and return its answer, whatever its error codes.

        Raise NoAnswerError if no node answered in time; KafkaError: NOT_CONTROLLER if no controller
        was found, UNSUPPORTED_VERSION if the node is too old for the request.
        """

        def attempt(deadline_ms: int) -> Answer:
            connection = self._connection(to, deadline_ms)
            response = self._ask_once(connection, request, deadline_ms)
            if _has_code(response, ErrorCode.NOT_CONTROLLER):
                raise KafkaError(
                    ErrorCode.NOT_CONTROLLER, f"{connection} is no longer the controller"
                )
            assert isinstance(response, answer)
            return response

        return self._until_done(type(request).__name__.removesuffix("Request"), attempt)

    def retry(
        self, what: str, attempt: Callable[[], Outcome], retried: Collection[ErrorCode]
    ) -> Outcome:
        """Call `attempt` until it succeeds, fails with a definite error, or times out.

        `retried` are the errors after which the client finds the node again. The attempt uses
        `ask_once`, so that it does not retry a lost node until the timeout.
        """
        return self._until_done(what, lambda _: attempt(), retried)

    def ask_once(
        self,
        request: Message,
        answer: type[Answer],
        to: To | int = To.ANY_NODE,
        *,
        max_version: int | None = None,
    ) -> Answer:
        """Send a request once, within `retry`; `max_version` limits its version."""
        deadline_ms = now_ms() + self.settings.request_timeout_ms
        connection = self._connection(to, deadline_ms)
        response = self._ask_once(connection, request, deadline_ms, max_version)
        assert isinstance(response, answer)
        return response

    def nodes(self) -> ClusterNodes:
        """Request and return the nodes of the cluster."""
        self._nodes = None
        return self._until_done("Metadata", self._known_nodes)

    def require_node(self, node_id: int) -> None:
        """Raise KafkaError(BROKER_NOT_AVAILABLE) unless a node is there.

        A request to it would wait for the node until the timeout.
        """
        there = sorted(self.nodes().nodes)
        if node_id not in there:
            raise KafkaError(
                ErrorCode.BROKER_NOT_AVAILABLE,
                f"There is no node {node_id}, or it is down. There are: "
                f"{', '.join(map(str, there))}.",
            )

    def api_versions(self, to: To | int = To.ANY_NODE) -> ApiVersionsResponse:
        """Return the ApiVersions answer of a node: versions and features."""
        return self._until_done(
            "ApiVersions", lambda deadline_ms: self._connection(to, deadline_ms).api_versions
        )

    def supports(self, api_key: ApiKey, version: int = 0, to: To | int = To.ANY_NODE) -> bool:
        """Return True if a node supports an API, in this version or a later one."""
        return _has_version(self.api_versions(to), api_key, version)

    def supports_once(self, api_key: ApiKey, version: int, to: To | int = To.ANY_NODE) -> bool:
        """Return `supports`, with one attempt; for use within `retry`."""
        deadline_ms = now_ms() + self.settings.request_timeout_ms
        return _has_version(self._connection(to, deadline_ms).api_versions, api_key, version)

    # --- internals ---

    def _until_done(
        self,
        what: str,
        attempt: Callable[[int], Outcome],
        retried: Collection[ErrorCode] = (ErrorCode.NOT_CONTROLLER,),
    ) -> Outcome:
        """Call `attempt` with the deadline until it succeeds or times out."""
        addresses = ", ".join(f"{host}:{port}" for host, port in self.settings.bootstrap)
        told = f"{what}: the cluster at {addresses} has not answered yet"
        with self.settings.watch.waiting(told):
            return self._attempts(what, attempt, retried)

    def _attempts(
        self, what: str, attempt: Callable[[int], Outcome], retried: Collection[ErrorCode]
    ) -> Outcome:
        start_ms = now_ms()
        deadline_ms = start_ms + self.settings.api_timeout_ms
        backoff_ms = self.settings.retry_backoff_ms
        while True:
            try:
                return attempt(deadline_ms)
            except ConnectionFailed as error:
                if isinstance(error, OtherProtocol) and not self._has_connected:
                    # A node that starts may end a connection too, but not for long.
                    deadline_ms = min(deadline_ms, start_ms + OTHER_PROTOCOL_MS)
                failure: KafkaError = NoAnswerError(f"Timed out waiting for {what}: {error}")
            except KafkaError as error:
                if error.code not in retried:
                    raise
                failure = error
            self._nodes = None
            if not self._has_connected:
                give_up_ms = start_ms + self.settings.first_contact_timeout_ms
                deadline_ms = min(deadline_ms, give_up_ms)
            if now_ms() + backoff_ms >= deadline_ms:
                raise failure
            time.sleep(backoff_ms / 1000)
            backoff_ms = min(2 * backoff_ms, self.settings.retry_backoff_max_ms)

    def _ask_once(
        self,
        connection: Connection,
        request: Message,
        deadline_ms: int,
        max_version: int | None = None,
    ) -> Message:
        until_ms = min(deadline_ms, now_ms() + self.settings.request_timeout_ms)
        try:
            response = connection.ask(request, until_ms, max_version)
        except TimeoutError as error:
            self._forget(connection)
            raise ConnectionFailed(f"{connection} did not answer in time") from error
        except ConnectionFailed:
            self._forget(connection)
            raise
        self.settings.watch.answered(type(request).__name__.removesuffix("Request"))
        return response

    def _connection(self, to: To | int, deadline_ms: int) -> Connection:
        if to is To.ANY_NODE:
            return self._any_connection(deadline_ms)
        known = self._known_nodes(deadline_ms)
        node_id = known.controller_id if to is To.CONTROLLER else to
        node = known.nodes.get(node_id)
        if node is None:
            self._nodes = None
            what = "the controller is not known" if to is To.CONTROLLER else f"no node {node_id}"
            raise ConnectionFailed(what)
        return self._connect((node.host, node.port), deadline_ms)

    def _any_connection(self, deadline_ms: int) -> Connection:
        """Return an open connection, or the first that succeeds."""
        for connection in self._connections.values():
            return connection
        known = self._nodes.nodes.values() if self._nodes else ()
        failures: list[ConnectionFailed] = []
        addresses = [*self.settings.bootstrap, *((node.host, node.port) for node in known)]
        for address in dict.fromkeys(addresses):
            try:
                return self._connect(address, deadline_ms)
            except ConnectionFailed as error:
                failures.append(error)
        if all(isinstance(error, OtherProtocol) for error in failures):
            raise failures[0]
        raise ConnectionFailed("; ".join(map(str, failures)))

    def _connect(self, address: tuple[str, int], deadline_ms: int) -> Connection:
        if address not in self._connections:
            until_ms = min(deadline_ms, now_ms() + self._connect_timeout_ms)
            try:
                connection = Connection(
                    address,
                    self.settings.client_id,
                    self.settings.security,
                    now_ms=now_ms,
                    deadline_ms=until_ms,
                )
            except TimeoutError as error:
                where = f"{address[0]}:{address[1]}"
                raise ConnectionFailed(f"{where} did not answer in time") from error
            self._connections[address] = connection
            self._has_connected = True
        return self._connections[address]

    @property
    def _connect_timeout_ms(self) -> int:
        if self._has_connected:
            return self.settings.request_timeout_ms
        # Addresses that never answer leave the last one its share of the time.
        return self.settings.first_contact_timeout_ms // len(self.settings.bootstrap)

    def _forget(self, connection: Connection) -> None:
        connection.close()
        self._connections.pop(connection.address, None)

    def _known_nodes(self, deadline_ms: int) -> ClusterNodes:
        if self._nodes is None:
            connection = self._any_connection(deadline_ms)
            if self.settings.is_controller_bootstrap:
                request: Message = DescribeClusterRequest(endpoint_type=ENDPOINT_TYPE_CONTROLLER)
            else:
                # Version 0 reads an empty list as all topics.
                request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
            self._nodes = _nodes_in(self._ask_once(connection, request, deadline_ms))
        return self._nodes

    def close(self) -> None:
        """Close every connection."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def raise_for(code: int, message: str | None = None) -> None:
    """Raise the KafkaError of an error code other than 0."""
    if code:
        raise error_of(code, message)


def error_of(code: int, message: str | None = None) -> KafkaError:
    """Return the exception of an error code; an unknown code is named in its text."""
    known = ErrorCode(code)
    text = f"unknown error {code}" if known != code else ERROR_TEXTS.get(known)
    return KafkaError(known, message or text)


def _nodes_in(response: Message) -> ClusterNodes:
    if isinstance(response, DescribeClusterResponse):
        raise_for(response.error_code, response.error_message)
        nodes = {
            broker.broker_id: Node(broker.broker_id, broker.host, broker.port, broker.rack)
            for broker in response.brokers
        }
        return ClusterNodes(response.controller_id, nodes)
    assert isinstance(response, MetadataResponse)
    return ClusterNodes(
        response.controller_id,
        {
            broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in response.brokers
        },
    )


def _has_version(versions: ApiVersionsResponse, api_key: ApiKey, version: int) -> bool:
    return any(
        entry.api_key == api_key and entry.max_version >= version for entry in versions.api_keys
    )


def _has_code(response: Struct, code: ErrorCode) -> bool:
    """Return True if an answer has this error code in any field."""
    return any(found == code for found in _codes(response))


def _codes(struct: Struct) -> Iterator[int]:
    for name, field in struct.__fields__.items():
        value = getattr(struct, name)
        if name == "error_code":
            yield value
        elif field.kind == "array" and not isinstance(field.element, str):
            for element in value or ():
                yield from _codes(element)
