"""The views as a topic: `order-analytics`, compacted, one JSON document per row.

A record is the current row of a view, not a difference, so a repeated record changes nothing:
at-least-once delivery is enough, and compaction keeps the newest. The store keeps the revision that
is published; after a crash the rest follows.
"""

import json
import logging
from decimal import Decimal
from typing import Any

from confluent_kafka import KafkaException, Producer

from common.credentials.access import KafkaAccess
from common.kafka.admin.client import AdminClient
from common.kafka.admin.settings import AdminSettings
from common.kafka.admin.topics import create_topic, list_topics
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.topics import COMPACT
from spark_analytics.jobs.topics import RESULTS
from spark_analytics.serving.writer import PUBLISHED_KEYS, ServingWriter

log = logging.getLogger(__name__)

_PUBLISHED = "published_revision"
_PARTITIONS = 6
_FLUSH_SECONDS = 10.0
_ADMIN_MS = 10_000


def message_of(view: str, row: dict[str, Any]) -> tuple[str, str]:
    """Return key and value of a view's row; amounts as decimal strings."""
    key = "/".join([view, *(str(row[name]) for name in PUBLISHED_KEYS[view])])
    value = {"view": view} | {
        name: value for name, value in row.items() if name not in ("revision", "revenue_e4")
    }
    if "revenue_e4" in row:
        value["revenue"] = f"{Decimal(row['revenue_e4']).scaleb(-4):.4f}"
    return key, json.dumps(value, separators=(",", ":"))


class ResultsPublisher:
    """Publishes the rows of the store that changed since the last publication."""

    def __init__(
        self, kafka: KafkaAccess, store: ServingWriter, replication_factor: int = 3
    ) -> None:
        self._kafka = kafka
        self._store = store
        self._replication_factor = replication_factor
        # librdkafka would log a lost broker many times a second; the job logs it once.
        self._where: dict[str, Any] = {**kafka.librdkafka(), "log_level": 2}
        self._producer: Producer | None = None
        self._failures: list[str] = []

    def publish(self) -> int:
        """Publish all changed rows and return their count.

        Raise KafkaException on any failure, KafkaError if the topic cannot be created.
        """
        published = self._store.property(_PUBLISHED) or 0
        revision = self._store.property("revision") or 0
        if revision <= published:
            return 0
        producer = self._connected()
        count = 0
        for view in PUBLISHED_KEYS:
            columns, rows = self._store.changed_rows(view, published)
            for row in rows:
                key, value = message_of(view, dict(zip(columns, row, strict=True)))
                self._send(producer, key, value)
            count += len(rows)
        left = producer.flush(_FLUSH_SECONDS)
        if left or self._failures:
            problem = self._failures[0] if self._failures else f"{left} not acknowledged"
            self._failures.clear()
            raise KafkaException(problem)
        self._store.set_properties(**{_PUBLISHED: revision})
        return count

    def _send(self, producer: Producer, key: str, value: str) -> None:
        while True:
            try:
                producer.produce(RESULTS, value, key, on_delivery=self._on_delivery)
            except BufferError:
                producer.poll(0.1)
            else:
                return

    def _on_delivery(self, error: object, _: object) -> None:
        if error is not None:
            self._failures.append(str(error))

    def _connected(self) -> Producer:
        if self._producer is None:
            create_results_topic(self._kafka, self._replication_factor)
            self._producer = Producer(
                {**self._where, "enable.idempotence": True, "linger.ms": 5}
                | {"delivery.timeout.ms": 8_000}
            )
        return self._producer


def create_results_topic(kafka: KafkaAccess, replication_factor: int) -> None:
    """Create the topic unless it exists; the replication factor is at most the broker count."""
    settings = AdminSettings.within(_ADMIN_MS, kafka.bootstrap_servers, kafka.security)
    with AdminClient(settings) as admin:
        if any(topic.name == RESULTS for topic in list_topics(admin)):
            return
        replicas = min(replication_factor, len(admin.nodes().nodes))
        try:
            create_topic(
                admin,
                RESULTS,
                partition_count=_PARTITIONS,
                replication_factor=replicas,
                configs=COMPACT,
            )
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
