"""The requests of a broker to the active controller, in this process or over a connection.

Requests are sent one at a time, in order. While there is no leader they wait; after an answer of
NOT_CONTROLLER or a lost connection a request is sent again, until the caller's timeout. A request
whose connection was lost may have been carried out: the answer to its second copy then shows the
effect of the first (TOPIC_ALREADY_EXISTS), as with any Kafka client. A caller that has to know
every copy under way uses `is_sent_once`: it is notified of the lost connection and retries itself.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from broker.server.network.client_connection import ClientConnection, ClientSettings
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message, Struct
from common.kafka.protocol.messages.add_raft_voter import AddRaftVoterResponse
from common.kafka.protocol.messages.describe_quorum import DescribeQuorumResponse
from common.kafka.protocol.messages.remove_raft_voter import RemoveRaftVoterResponse

OnResponse = Callable[[Message], None]
Refuse = Callable[[Message, int, KafkaError], Message]


class Leadership(Protocol):
    """The node's view of the leader of the quorum."""

    @property
    def node_id(self) -> int:
        """The id of this node."""

    @property
    def leader_id(self) -> int:
        """The id of the leader, -1 when none is known."""

    @property
    def is_serving(self) -> bool:
        """True if the active controller is in this process, and ready."""

    def submit(self, request: Message, api_version: int, on_response: OnResponse) -> None:
        """Hand a request to the controller in this process."""


class _QueuedRequest:
    """A request and its caller; `on_response` is None once the caller was answered."""

    __slots__ = ("api_version", "deadline_ms", "is_sent_once", "on_response", "request", "timer")

    def __init__(
        self, request: Message, api_version: int, on_response: OnResponse, *, is_sent_once: bool
    ) -> None:
        self.request = request
        self.api_version = api_version
        self.on_response: OnResponse | None = on_response
        self.is_sent_once = is_sent_once
        self.deadline_ms = 0
        self.timer: asyncio.TimerHandle | None = None


class ControllerChannel:
    """Sends requests to the active controller. Invariant: at most one, the first, is under way."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        now_ms: Callable[[], int],
        leadership: Leadership,
        address_of: Callable[[int], tuple[str, int] | None],
        settings: ClientSettings,
        refuse: Refuse,
    ) -> None:
        """Make a channel; `address_of` returns None for a controller whose address is unknown."""
        self._loop = loop
        self._now_ms = now_ms
        self._leadership = leadership
        self._address_of = address_of
        self._settings = settings
        self._refusal_of = refuse
        self._queue: deque[_QueuedRequest] = deque()
        self._under_way: _QueuedRequest | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._connection: ClientConnection | None = None
        self._is_advancing = False
        self._is_closed = False

    def ask(
        self,
        request: Message,
        api_version: int,
        on_response: OnResponse,
        *,
        timeout_ms: int,
        is_sent_once: bool = False,
    ) -> None:
        """Queue a request; `on_response` is called exactly once, possibly before this returns.

        After `timeout_ms` it gets the refusal REQUEST_TIMED_OUT; with `is_sent_once` also when the
        connection is lost on which the request was sent.
        """
        question = _QueuedRequest(request, api_version, on_response, is_sent_once=is_sent_once)
        if self._is_closed:
            self._refuse(question, "This node is stopping.")
            return
        question.deadline_ms = self._now_ms() + timeout_ms
        self._queue.append(question)
        self._advance()
        if question.on_response is not None:
            question.timer = self._loop.call_later(timeout_ms / 1000, self._on_timeout, question)

    def on_leader_change(self) -> None:
        """Send the queue to the new active controller, if there is one."""
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        connection = self._connection
        if connection is not None and self._address() != connection.address:
            connection.close()
            self._connection = None
            # The answer from the old leader will not come.
            lost, self._under_way = self._under_way, None
            if lost is not None and lost.is_sent_once:
                self._tell_of_loss(lost)
        self._advance()

    def close(self) -> None:
        """Refuse all waiting and all later requests."""
        self._is_closed = True
        if self._retry is not None:
            self._retry.cancel()
        if self._connection is not None:
            self._connection.close()
        questions, self._queue = self._queue, deque()
        for question in questions:
            self._refuse(question, "This node is stopping.")

    def _address(self) -> tuple[str, int] | None:
        """Return the connection to the leader; None if there is none, or it is this node."""
        leadership = self._leadership
        if leadership.leader_id == leadership.node_id:
            return None
        return self._address_of(leadership.leader_id)

    def _advance(self) -> None:
        if self._is_advancing or self._is_closed:
            return
        self._is_advancing = True
        while self._queue and self._under_way is None and self._retry is None:
            question = self._queue[0]
            if question.on_response is None:
                self._queue.popleft()
            elif not self._send(question):
                break
        self._is_advancing = False

    def _send(self, question: _QueuedRequest) -> bool:
        """Send a request to the leader; return False if there is none."""
        address = self._address()
        if self._leadership.is_serving:
            self._under_way = question
            self._leadership.submit(
                question.request,
                question.api_version,
                lambda response: self._on_answer(question, response),
            )
            return True
        if address is None:
            return False
        if self._connection is None:
            self._connection = ClientConnection(self._loop, address, self._settings)
        self._under_way = question
        self._connection.ask(
            question.request,
            question.api_version,
            max(1, question.deadline_ms - self._now_ms()),
            lambda response: self._on_answer(question, response),
        )
        return True

    def _on_answer(self, question: _QueuedRequest, response: Message | None) -> None:
        if self._under_way is not question:
            return
        self._under_way = None
        if response is None and question.is_sent_once:
            self._tell_of_loss(question)
            self._advance()
            return
        if response is None or is_elsewhere(response):
            backoff_ms = self._settings.retry_backoff_ms
            self._retry = self._loop.call_later(backoff_ms / 1000, self._try_again)
            return
        self._queue.popleft()
        self._finish(question, response)
        self._advance()

    def _try_again(self) -> None:
        self._retry = None
        self._advance()

    def _on_timeout(self, question: _QueuedRequest) -> None:
        """Refuse a request after its timeout; the next one is sent if it was under way."""
        question.timer = None
        if self._under_way is question:
            self._under_way = None
        if question in self._queue:
            self._queue.remove(question)
        self._refuse(question, "The active controller did not answer in time.")
        self._advance()

    def _tell_of_loss(self, question: _QueuedRequest) -> None:
        self._queue.remove(question)
        self._refuse(question, "The connection to the active controller was lost.")

    def _refuse(self, question: _QueuedRequest, why: str) -> None:
        error = KafkaError(ErrorCode.REQUEST_TIMED_OUT, why)
        refusal = self._refusal_of(question.request, question.api_version, error)
        self._finish(question, refusal)

    def _finish(self, question: _QueuedRequest, response: Message) -> None:
        on_response, question.on_response = question.on_response, None
        if question.timer is not None:
            question.timer.cancel()
        if on_response is not None:
            on_response(response)


def is_elsewhere(response: Message) -> bool:
    """Return whether an answer says that its node is not the active controller.

    Some answers have an error at the top level, others have the same error beside each item.
    """
    said = ErrorCode.NOT_CONTROLLER
    if isinstance(
        response, DescribeQuorumResponse | AddRaftVoterResponse | RemoveRaftVoterResponse
    ):
        said = ErrorCode.NOT_LEADER_OR_FOLLOWER
    return said in _first_errors(response)


def _first_errors(part: Struct) -> Iterator[int]:
    yield getattr(part, "error_code", 0)
    for name in part.__fields__:
        value = getattr(part, name)
        if isinstance(value, list) and value and isinstance(value[0], Struct):
            yield from _first_errors(value[0])
