"""Shows, alters and resets the offsets of a connector (KIP-875).

The worker keeps a source's offsets; a consumer group keeps a sink's. All functions here block, so
the worker calls them in a thread.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import confluent_kafka
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from connect.definitions.plugin_errors import concealed
from connect.definitions.validation import connector_class
from connect.herder.offsets import (
    Offsets,
    offsets_body,
    read_sink_offsets,
    sink_offsets,
)
from connect.worker.client_settings import ADMIN_SETTINGS
from connect.worker.environment import Environment, filled
from connect.worker.offset_store import OffsetStore
from connect.worker.offsets.group_offsets import committed_offsets
from connect.worker.offsets.kafka_store import offsets_of
from millstream.connect.connectors import SinkConnector, SourceConnector, TopicPartition
from millstream.connect.errors import ConnectException

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS: Final = 30.0
_WRITE_TIMEOUT_MS: Final = 30_000

Config = Mapping[str, str | None]


def shown_offsets(environment: Environment, name: str, config: Config) -> dict[str, Any]:
    """Return the body of the answer to GET. Raises ConnectException."""
    with _resolved(environment, config) as resolved:
        if not issubclass(connector_class(environment.plugins, resolved), SinkConnector):
            with offsets_of(environment, resolved) as store:
                return offsets_body(store.of_connector(name))
        group, client = _group_of(environment, name, resolved)
        return offsets_body(sink_offsets(_committed(client, group)))


def change_offsets(
    environment: Environment, name: str, config: Config, offsets: Offsets | None
) -> str:
    """Alter offsets, or reset all of them for None; return the message for the user.

    Raises ConnectException when the connector refuses or Kafka does.
    """
    with _resolved(environment, config) as resolved:
        connector = connector_class(environment.plugins, resolved)()
        if isinstance(connector, SinkConnector):
            is_known = _change_sink(environment, name, resolved, connector, offsets)
        else:
            assert isinstance(connector, SourceConnector), connector
            with offsets_of(environment, resolved) as store:
                is_known = _change_source(store, name, resolved, connector, offsets)
    done = "reset" if offsets is None else "altered"
    if is_known:
        return f"The offsets for this connector have been {done} successfully"
    return (
        f"The Connect framework-managed offsets for this connector have been {done} successfully. "
        "However, if this connector manages offsets externally, they will need to be manually "
        f"{done} in the system that the connector uses."
    )


@contextmanager
def _resolved(environment: Environment, config: Config) -> Iterator[dict[str, str]]:
    """Yield a configuration with variables replaced; hide their values in raised errors."""
    variables = environment.variables(config)
    concealing = environment.concealing(config, variables)
    with concealed(concealing, f"the request for the offsets of {config.get('name')}"):
        yield filled(config, variables)


def _change_source(
    store: OffsetStore,
    name: str,
    config: Mapping[str, str],
    connector: SourceConnector,
    offsets: Offsets | None,
) -> bool:
    if offsets is None:
        offsets = [(partition, None) for partition, _ in store.of_connector(name)]
    is_known = bool(connector.alter_offsets(config, offsets))
    entries = [(dict(partition or {}), offset) for partition, offset in offsets]
    store.write(name, entries, _WRITE_TIMEOUT_MS)
    return is_known


def _change_sink(
    environment: Environment,
    name: str,
    config: Mapping[str, str],
    connector: SinkConnector,
    offsets: Offsets | None,
) -> bool:
    group, client = _group_of(environment, name, config)
    committed, admin = _committed(client, group), AdminClient({**ADMIN_SETTINGS, **client})
    wanted: dict[TopicPartition, int | None]
    wanted = dict.fromkeys(committed) if offsets is None else read_sink_offsets(offsets)
    is_known = bool(connector.alter_offsets(config, wanted))
    removed = {at for at, offset in wanted.items() if offset is None}
    altered = {at: offset for at, offset in wanted.items() if offset is not None}
    if removed & committed.keys() or offsets is None:
        # The client cannot delete single offsets: delete all and write the others again.
        _delete(admin, group)
        altered = {at: o for at, o in committed.items() if at not in removed} | altered
    if altered:
        _alter(admin, group, altered)
    return is_known


def _group_of(
    environment: Environment, name: str, config: Mapping[str, str]
) -> tuple[str, dict[str, Any]]:
    group = config.get("consumer.override.group.id") or f"connect-{name}"
    client = environment.client("admin", config, **{"client.id": f"connector-adminclient-{name}"})
    return group, client


def _committed(client: Mapping[str, Any], group: str) -> dict[TopicPartition, int]:
    found = committed_offsets(client, [group], _TIMEOUT_SECONDS)[group]
    if isinstance(found, ConnectException):
        raise found
    return {at: each.offset for at, each in found.items()}


def _alter(admin: AdminClient, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    natives = [confluent_kafka.TopicPartition(*at, offset) for at, offset in offsets.items()]
    asked = [ConsumerGroupTopicPartitions(group, natives)]
    future = admin.alter_consumer_group_offsets(asked, request_timeout=_TIMEOUT_SECONDS)[group]
    try:
        result = future.result(_TIMEOUT_SECONDS)
    except KafkaException as error:
        raise _not_changed(error, "alter", group) from error
    for each in result.topic_partitions or []:
        if each.error is not None:
            raise _not_changed(KafkaException(each.error), "alter", group)


def _delete(admin: AdminClient, group: str) -> None:
    future = admin.delete_consumer_groups([group], request_timeout=_TIMEOUT_SECONDS)[group]
    try:
        future.result(_TIMEOUT_SECONDS)
    except KafkaException as error:
        # A group that does not exist has no offsets: the reset has nothing to do.
        if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
            raise _not_changed(error, "reset", group) from error


def _not_changed(error: KafkaException, what: str, group: str) -> ConnectException:
    return ConnectException(
        f"Failed to {what} consumer group offsets for group {group} either because its tasks "
        "haven't stopped completely yet or the connector was resumed before the request could be "
        f"successfully completed: {error}"
    )
