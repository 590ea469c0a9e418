"""librdkafka's admin client for an event loop; it is made for the first request."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from importlib import import_module
from typing import Any, Final

from common.kafka.metadata_age import ADMIN_SETTINGS
from rest_proxy.kafka.errors import refusal_of, refusal_of_code
from rest_proxy.kafka.waiting import KAFKA_SECONDS
from rest_proxy.refusals import bad_request

_QUIET: Final = {"log_level": 2}
"""Every error of a connection is also the answer to a call, so it is not logged by the library."""

_CLUSTER_AUTHORIZATION_FAILED: Final = 31


def parts() -> Any:
    """Return the library's module, which is loaded by the first call."""
    return import_module("confluent_kafka.admin")


class Admin:
    """Owns the client. Every call raises RestError."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._made: Any | None = None

    @property
    def _client(self) -> Any:
        if self._made is None:
            self._made = parts().AdminClient({**ADMIN_SETTINGS, **self._settings, **_QUIET})
        return self._made

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
        def ask() -> Any:
            named: dict[str, Any] = {"config": configs}
            if assignment is not None:
                named |= {"num_partitions": len(assignment), "replica_assignment": assignment}
            else:
                # The brokers decide on values that are left out (KIP-464).
                named["num_partitions"] = -1 if partitions is None else partitions
                named["replication_factor"] = -1 if replication is None else replication
            topic = parts().NewTopic(name, **named)
            return self._client.create_topics(
                [topic], validate_only=validate_only, request_timeout=KAFKA_SECONDS
            )[name]

        await _asked(ask)

    async def create_partitions(self, name: str, total: int) -> None:
        await _asked(
            lambda: self._client.create_partitions(
                [parts().NewPartitions(name, total)], request_timeout=KAFKA_SECONDS
            )[name]
        )

    async def delete_topic(self, name: str) -> None:
        await _asked(
            lambda: self._client.delete_topics([name], request_timeout=KAFKA_SECONDS)[name]
        )

    async def authorized_operations(self, name: str) -> list[str]:
        from confluent_kafka import TopicCollection

        found = await _asked(
            lambda: self._client.describe_topics(
                TopicCollection([name]),
                include_authorized_operations=True,
                request_timeout=KAFKA_SECONDS,
            )[name]
        )
        return [each.name for each in found.authorized_operations or ()]

    # --- groups ---

    async def group_ids(self) -> list[str]:
        found = await _asked(
            lambda: self._client.list_consumer_groups(request_timeout=KAFKA_SECONDS)
        )
        if not found.valid and found.errors:
            raise refusal_of(found.errors[0])
        return sorted(each.group_id for each in found.valid)

    async def groups(self, group_ids: Sequence[str]) -> list[Any]:
        """Return descriptions; an unknown group is dead."""
        if not group_ids:
            return []
        try:
            futures = self._client.describe_consumer_groups(
                list(group_ids), request_timeout=KAFKA_SECONDS
            )
        except (ValueError, TypeError) as error:
            raise bad_request(str(error)) from None
        return [await _result(futures[each]) for each in group_ids]

    async def delete_group(self, group_id: str) -> None:
        await _asked(
            lambda: self._client.delete_consumer_groups([group_id], request_timeout=KAFKA_SECONDS)[
                group_id
            ]
        )

    # --- access control lists ---

    async def acls(self, wanted: Any) -> list[Any]:
        found = await _asked(
            lambda: self._client.describe_acls(wanted, request_timeout=KAFKA_SECONDS)
        )
        if not found:
            await self._require_sight_of_acls()
        return list(found)

    async def _require_sight_of_acls(self) -> None:
        """Raise RestError unless the user may see rules.

        librdkafka shows the refusal of DescribeAcls as an empty list.
        """
        told = await _asked(
            lambda: self._client.describe_cluster(
                include_authorized_operations=True, request_timeout=KAFKA_SECONDS
            )
        )
        # None for a user without any right on the cluster.
        if parts().AclOperation.DESCRIBE not in (told.authorized_operations or ()):
            raise refusal_of_code(_CLUSTER_AUTHORIZATION_FAILED)

    async def create_acls(self, bindings: Sequence[Any]) -> None:
        try:
            futures = self._client.create_acls(list(bindings), request_timeout=KAFKA_SECONDS)
        except (ValueError, TypeError) as error:
            raise bad_request(str(error)) from None
        for future in futures.values():
            await _result(future)

    async def delete_acls(self, wanted: Any) -> list[Any]:
        return list(
            await _asked(
                lambda: self._client.delete_acls([wanted], request_timeout=KAFKA_SECONDS)[wanted]
            )
        )


async def _asked(ask: Callable[[], "Future[Any]"]) -> Any:
    from confluent_kafka import KafkaException

    try:
        future = ask()
    except KafkaException as error:
        raise refusal_of(error) from None
    # librdkafka refuses an empty name, and a number beyond its type.
    except (ValueError, TypeError, OverflowError) as error:
        raise bad_request(str(error)) from None
    return await _result(future)


async def _result(future: "Future[Any]") -> Any:
    from confluent_kafka import KafkaException

    try:
        return await asyncio.wrap_future(future)
    except KafkaException as error:
        raise refusal_of(error) from None
