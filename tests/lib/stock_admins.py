"""Unmodified admin clients behind one small interface, each used as its users use it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import aiokafka.admin
import confluent_kafka.admin
import kafka.admin

TIMEOUT_SECONDS = 60
T = TypeVar("T")


class StockAdmin(Protocol):
    """Topics and their settings, through one broker; a missing topic has 0 partitions."""

    def create(self, bootstrap: str, topic: str, partitions: int) -> None: ...

    def partition_count(self, bootstrap: str, topic: str) -> int: ...

    def grow(self, bootstrap: str, topic: str, partitions: int) -> None: ...

    def set_config(self, bootstrap: str, topic: str, name: str, value: str) -> None: ...

    def config(self, bootstrap: str, topic: str, name: str) -> str | None: ...

    def delete(self, bootstrap: str, topic: str) -> None: ...


class ConfluentAdmin:
    def _with(
        self,
        bootstrap: str,
        use: Callable[[confluent_kafka.admin.AdminClient], dict[object, Any]],
    ) -> Any:
        # The client must exist until its answer arrives.
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
        (future,) = use(admin).values()
        return future.result(TIMEOUT_SECONDS)

    def create(self, bootstrap: str, topic: str, partitions: int) -> None:
        new = confluent_kafka.admin.NewTopic(topic, partitions, 1)
        self._with(bootstrap, lambda admin: admin.create_topics([new]))

    def partition_count(self, bootstrap: str, topic: str) -> int:
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
        found = admin.list_topics(timeout=TIMEOUT_SECONDS).topics.get(topic)
        return 0 if found is None else len(found.partitions)

    def grow(self, bootstrap: str, topic: str, partitions: int) -> None:
        new = confluent_kafka.admin.NewPartitions(topic, partitions)
        self._with(bootstrap, lambda admin: admin.create_partitions([new]))

    def set_config(self, bootstrap: str, topic: str, name: str, value: str) -> None:
        entry = confluent_kafka.admin.ConfigEntry(
            name,
            value,
            incremental_operation=confluent_kafka.admin.AlterConfigOpType.SET,
        )
        resource = confluent_kafka.admin.ConfigResource(
            confluent_kafka.admin.ResourceType.TOPIC, topic, incremental_configs=[entry]
        )
        self._with(bootstrap, lambda admin: admin.incremental_alter_configs([resource]))

    def config(self, bootstrap: str, topic: str, name: str) -> str | None:
        resource = confluent_kafka.admin.ConfigResource(
            confluent_kafka.admin.ResourceType.TOPIC, topic
        )
        found = self._with(bootstrap, lambda admin: admin.describe_configs([resource]))
        return found[name].value

    def delete(self, bootstrap: str, topic: str) -> None:
        self._with(bootstrap, lambda admin: admin.delete_topics([topic]))


class KafkaPythonAdmin:
    def _with(self, bootstrap: str, use: Callable[[kafka.admin.KafkaAdminClient], T]) -> T:
        admin = kafka.admin.KafkaAdminClient(bootstrap_servers=bootstrap)
        try:
            return use(admin)
        finally:
            admin.close()

    def create(self, bootstrap: str, topic: str, partitions: int) -> None:
        new = kafka.admin.NewTopic(topic, partitions, 1)
        self._with(bootstrap, lambda admin: admin.create_topics([new]))

    def partition_count(self, bootstrap: str, topic: str) -> int:
        topics = self._with(bootstrap, lambda admin: admin.describe_topics())
        return sum(len(found["partitions"]) for found in topics if found["name"] == topic)

    def grow(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._with(bootstrap, lambda admin: admin.create_partitions({topic: partitions}))

    def set_config(self, bootstrap: str, topic: str, name: str, value: str) -> None:
        resource = kafka.admin.ConfigResource(
            kafka.admin.ConfigResourceType.TOPIC, topic, configs={name: value}
        )
        self._with(bootstrap, lambda admin: admin.alter_configs([resource]))

    def config(self, bootstrap: str, topic: str, name: str) -> str | None:
        resource = kafka.admin.ConfigResource(
            kafka.admin.ConfigResourceType.TOPIC, topic, configs={name: None}
        )
        found = self._with(
            bootstrap, lambda admin: admin.describe_configs([resource], config_filter="all")
        )
        return found["topic"][topic][name]["value"]

    def delete(self, bootstrap: str, topic: str) -> None:
        self._with(bootstrap, lambda admin: admin.delete_topics([topic]))


class AiokafkaAdmin:
    def _with(
        self, bootstrap: str, use: Callable[[aiokafka.admin.AIOKafkaAdminClient], Awaitable[T]]
    ) -> T:
        async def run() -> T:
            admin = aiokafka.admin.AIOKafkaAdminClient(bootstrap_servers=bootstrap)
            await admin.start()
            try:
                return await use(admin)
            finally:
                await admin.close()

        return asyncio.run(asyncio.wait_for(run(), TIMEOUT_SECONDS))

    def _resource(
        self, topic: str, **configs: str
    ) -> aiokafka.admin.config_resource.ConfigResource:
        return aiokafka.admin.config_resource.ConfigResource(
            aiokafka.admin.config_resource.ConfigResourceType.TOPIC, topic, configs or None
        )

    def create(self, bootstrap: str, topic: str, partitions: int) -> None:
        new = aiokafka.admin.NewTopic(topic, partitions, 1)
        answer = self._with(bootstrap, lambda admin: admin.create_topics([new]))
        assert [error[1] for error in answer.topic_errors] == [0], answer

    def partition_count(self, bootstrap: str, topic: str) -> int:
        topics = self._with(bootstrap, lambda admin: admin.describe_topics())
        return sum(len(found["partitions"]) for found in topics if found["topic"] == topic)

    def grow(self, bootstrap: str, topic: str, partitions: int) -> None:
        new = aiokafka.admin.NewPartitions(partitions)
        answer = self._with(bootstrap, lambda admin: admin.create_partitions({topic: new}))
        assert [error[1] for error in answer.topic_errors] == [0], answer

    def set_config(self, bootstrap: str, topic: str, name: str, value: str) -> None:
        resource = self._resource(topic, **{name: value})
        (answer,) = self._with(bootstrap, lambda admin: admin.alter_configs([resource]))
        assert [found[0] for found in answer.resources] == [0], answer

    def config(self, bootstrap: str, topic: str, name: str) -> str | None:
        resource = self._resource(topic)
        (answer,) = self._with(bootstrap, lambda admin: admin.describe_configs([resource]))
        (found,) = answer.resources
        return {entry[0]: entry[1] for entry in found[4]}[name]

    def delete(self, bootstrap: str, topic: str) -> None:
        answer = self._with(bootstrap, lambda admin: admin.delete_topics([topic]))
        assert [error[1] for error in answer.topic_error_codes] == [0], answer


ADMINS: dict[str, StockAdmin] = {
    "aiokafka": AiokafkaAdmin(),
    "confluent-kafka": ConfluentAdmin(),
    "kafka-python": KafkaPythonAdmin(),
}
