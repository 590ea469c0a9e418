"""The admin client for an event loop: its requests block, so each is made on a thread.

A thread has a client of its own, whose connections it keeps. There are few threads, and a call that
waits for one ends in time like every other.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from common.credentials.connecting import Security
from common.kafka.acls import Acl, AclFilter
from common.kafka.admin import acls, groups, topics
from common.kafka.admin.client import ERROR_TEXTS, AdminClient, NoAnswerError
from common.kafka.admin.groups import GroupDescription
from common.kafka.admin.settings import AdminSettings
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.wire import EncodeError
from rest_proxy.kafka.errors import BROKER_NOT_AVAILABLE, KAFKA_SECONDS, bounded, refusal_of_code
from rest_proxy.refusals import RestError, bad_request

_THREADS: Final = 4
_LIMIT_MS: Final = int(KAFKA_SECONDS * 1000)
_MAX_PARTITIONS: Final = 100_000
"""Of one topic. More would keep a cluster busy for hours."""
_MAX_REPLICAS: Final = 10_000

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


class Admin:
    """Owns the threads and their clients. Every call raises RestError."""

    def __init__(
        self, bootstrap_servers: str, security: Security, client_id: str, **told: Any
    ) -> None:
        """`told` are fields of `AdminSettings`."""
        self._settings = AdminSettings.within(
            _LIMIT_MS, bootstrap_servers, security, client_id=client_id, **told
        )
        self._threads = ThreadPoolExecutor(_THREADS, "admin")
        self._own = threading.local()
        self._clients: list[AdminClient] = []

    async def close(self) -> None:
        """Drop what waits for a thread, and disconnect."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for client in self._clients:
            client.close()

    # --- topics ---

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int | None,
        replication: int | None,
        assignment: list[list[int]] | None,
        configs: dict[str, str],
        validate_only: bool,
    ) -> None:
        """Create a topic. The brokers decide on numbers that are left out (KIP-464)."""
        if (partitions or 0) > _MAX_PARTITIONS:
            raise bad_request(
                f"Invalid NewTopic({name}): num_partitions out of expected range "
                f"1..{_MAX_PARTITIONS} or -1 for broker default"
            )
        if (replication or 0) > _MAX_REPLICAS:
            raise bad_request(
                f"Invalid NewTopic({name}): replication_factor out of expected range "
                f"-1..{_MAX_REPLICAS}"
            )
        if assignment is not None and not all(assignment):
            raise bad_request(
                "replica_assignment must be a list of int lists with an outer size of "
                "num_partitions"
            )
        await self._asked(
            topics.create_topic,
            name,
            partition_count=-1 if partitions is None else partitions,
            replication_factor=-1 if replication is None else replication,
            assignment=assignment,
            configs=configs,
            validate_only=validate_only,
        )

    async def create_partitions(self, name: str, total: int) -> None:
        if not 1 <= total <= _MAX_PARTITIONS:
            raise bad_request(
                f"Invalid NewPartitions({name}): new_total_cnt out of expected range "
                f"1..{_MAX_PARTITIONS}"
            )
        await self._asked(topics.create_partitions, {name: total})

    async def delete_topic(self, name: str) -> None:
        await self._asked(topics.delete_topics, [name])

    async def authorized_operations(self, name: str) -> list[str]:
        return [each.name for each in await self._asked(topics.authorized_operations, name)]

    # --- groups ---

    async def group_ids(self) -> list[str]:
        return [each.group_id for each in await self._asked(groups.list_consumer_groups)]

    async def groups(self, group_ids: Sequence[str]) -> list[GroupDescription]:
        """Return descriptions; an unknown group is left out."""
        described = await self._asked(groups.describe_consumer_groups, group_ids)
        found = []
        for each in group_ids:
            outcome = described[each]
            if isinstance(outcome, GroupDescription):
                found.append(outcome)
            elif outcome.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise _refusal(outcome)
        return found

    async def delete_group(self, group_id: str) -> None:
        outcome = (await self._asked(groups.delete_groups, [group_id]))[group_id]
        if outcome is not None:
            raise _refusal(outcome)

    # --- access control lists ---

    async def acls(self, wanted: AclFilter) -> list[Acl]:
        """Return the rules that match; a cluster without an authorizer has none."""
        return await self._asked(_acls, wanted)

    async def create_acls(self, rules: Sequence[Acl]) -> None:
        await self._asked(acls.create_acls, rules)

    async def delete_acls(self, wanted: AclFilter) -> list[Acl]:
        return await self._asked(acls.delete_acls, [wanted])

    # --- threads ---

    async def _asked(
        self,
        ask: Callable[Concatenate[AdminClient, Given], Answer],
        *arguments: Given.args,
        **named: Given.kwargs,
    ) -> Answer:
        def on_thread() -> Answer:
            if not hasattr(self._own, "client"):
                self._own.client = AdminClient(self._settings)
                self._clients.append(self._own.client)
            return ask(self._own.client, *arguments, **named)

        try:
            async with bounded():
                return await asyncio.get_running_loop().run_in_executor(self._threads, on_thread)
        except KafkaError as error:
            raise _refusal(error) from None
        # A number beyond its type, or a text beyond its field.
        except EncodeError as error:
            raise bad_request(str(error)) from None


def _acls(client: AdminClient, wanted: AclFilter) -> list[Acl]:
    try:
        return acls.describe_acls(client, wanted)
    except KafkaError as error:
        if error.code == ErrorCode.SECURITY_DISABLED:
            return []
        raise


def _refusal(error: KafkaError) -> RestError:
    if isinstance(error, NoAnswerError):
        return RestError(BROKER_NOT_AVAILABLE, f"Kafka cannot be reached: {error}")
    if error.message in (None, ERROR_TEXTS.get(error.code)):
        # The broker said no more than the code. The library takes long to import.
        from confluent_kafka import KafkaError as Texts

        return refusal_of_code(error.code, Texts(error.code).str())
    return refusal_of_code(error.code, error.message)
