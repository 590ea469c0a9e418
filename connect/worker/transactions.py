"""Transactional producers with Kafka Connect's transactional ids (KIP-618).

A retriable error is retried until the caller stops it; any other error is a ConnectException.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from connect.herder.names import TaskId
from connect.worker.settings import WorkerSettings
from millstream.connect.errors import ConnectException

log = logging.getLogger(__name__)

_TRY_SECONDS: Final = 5.0
_SHUT_OUT: Final = (
    KafkaError._FENCED,  # noqa: SLF001 - librdkafka's code
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
)


def transactional_id(settings: WorkerSettings, task: TaskId) -> str:
    """Return the transactional id of a task's producer, the same on every worker."""
    return f"{settings['group.id']}-{task}"


def begin_transactions(
    client: Mapping[str, Any], of: str, may_try: Callable[[], bool] = lambda: True
) -> Producer:
    """Return a producer that has fenced all others with its id. Raises ConnectException."""
    producer = Producer({**client, "transactional.id": of, "enable.idempotence": "true"})
    insist(f"transactions of {of} cannot be begun", producer.init_transactions, may_try)
    return producer


def insist(what: str, do: Callable[[float], object], may_try: Callable[[], bool]) -> None:
    """Call `do` and retry it. Raises ConnectException, whose message begins with `what`."""
    while True:
        try:
            do(_TRY_SECONDS)
        except KafkaException as error:
            problem = error.args[0]
            if problem.retriable() and may_try():
                continue
            if problem.code() in _SHUT_OUT:
                raise ConnectException(
                    f"{what}: another producer of the same task has begun, or the transaction took "
                    "longer than producer.override.transaction.timeout.ms allows"
                ) from error
            raise ConnectException(f"{what}: {error}") from error
        return
