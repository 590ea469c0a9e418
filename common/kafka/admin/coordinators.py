"""Requests to the coordinators of groups and transactions.

Every coordinator gets one request for all its keys. A key whose coordinator has moved, or is still
loading, is retried until the client's timeout; every other error is the outcome of the key.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import TypeVar

from common.kafka.admin.client import AdminClient, Node, error_of
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

FIRST_VERSION_WITH_MANY_KEYS = 4
COORDINATOR_MOVED = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


MAX_KEYS_AT_ONCE = 500
"""The limit of keys per request, which limits the size of an answer."""


class CoordinatorType(IntEnum):
    """The key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


Outcome = TypeVar("Outcome")
Outcomes = dict[str, Outcome | KafkaError]


def ask_coordinators(
    client: AdminClient,
    keys: Iterable[str],
    ask: Callable[[int, Sequence[str]], Outcomes[Outcome]],
    *,
    kind: CoordinatorType = CoordinatorType.GROUP,
    retried: Iterable[ErrorCode] = (),
) -> Outcomes[Outcome]:
    """Return the outcome of each key; `ask` sends one coordinator its keys.

    `retried` are further retriable errors.
    """
    wanted = list(dict.fromkeys(keys))
    passing = COORDINATOR_MOVED | set(retried)
    outcomes: Outcomes[Outcome] = {}

    def left() -> list[str]:
        return [key for key in wanted if key not in outcomes]

    def ask_some(some: Sequence[str]) -> Iterator[tuple[str, Outcome | KafkaError]]:
        for node_id, its_keys in _coordinators(client, some, kind).items():
            if isinstance(node_id, ErrorCode):
                yield from dict.fromkeys(its_keys, error_of(node_id)).items()
            else:
                yield from ask(node_id, its_keys).items()

    def attempt() -> None:
        moved, still = None, left()
        for start in range(0, len(still), MAX_KEYS_AT_ONCE):
            for key, outcome in ask_some(still[start : start + MAX_KEYS_AT_ONCE]):
                if isinstance(outcome, KafkaError) and outcome.code in passing:
                    moved = outcome
                else:
                    outcomes[key] = outcome
        if moved is not None:
            raise moved

    client.retry("the coordinator", attempt, passing)
    return outcomes


def ask_coordinator_nodes(
    client: AdminClient,
    keys: Iterable[str],
    ask: Callable[[Node, Sequence[str]], Outcomes[Outcome]],
) -> Outcomes[Outcome]:
    """Return the outcome of each key, as `ask_coordinators`; `ask` gets the whole node."""

    def ask_node(node_id: int, its_keys: Sequence[str]) -> Outcomes[Outcome]:
        node = client.nodes().nodes.get(node_id)
        if node is None:  # It has just joined or left: the next answer has it.
            return dict.fromkeys(its_keys, error_of(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return ask(node, its_keys)

    return ask_coordinators(client, keys, ask_node)


def ask_group_coordinator(
    client: AdminClient, group_id: str, ask: Callable[[int], Outcome]
) -> Outcome:
    """Return the answer of one group's coordinator, or raise its error."""

    def one(node_id: int, _: Sequence[str]) -> Outcomes[Outcome]:
        try:
            return {group_id: ask(node_id)}
        except KafkaError as error:
            return {group_id: error}

    outcome = ask_coordinators(client, [group_id], one)[group_id]
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome


def _coordinators(
    client: AdminClient, keys: Sequence[str], kind: CoordinatorType
) -> dict[int | ErrorCode, list[str]]:
    """Return the keys by coordinator; by error code those without a coordinator."""
    found: dict[int | ErrorCode, list[str]] = defaultdict(list)
    if not keys:
        return found
    if client.supports_once(ApiKey.FIND_COORDINATOR, FIRST_VERSION_WITH_MANY_KEYS):
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys))
        for one in client.ask_once(request, FindCoordinatorResponse).coordinators:
            found[ErrorCode(one.error_code) if one.error_code else one.node_id].append(one.key)
        return found
    for key in keys:
        request = FindCoordinatorRequest(key=key, key_type=kind)
        answer = client.ask_once(request, FindCoordinatorResponse)
        found[ErrorCode(answer.error_code) if answer.error_code else answer.node_id].append(key)
    return found
