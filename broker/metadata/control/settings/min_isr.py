"""`min.insync.replicas` while eligible leader replicas are enabled (KIP-966).

The number of required in-sync replicas decides which replicas are eligible, so the controller and
every leader must use the same number: the topic's own, else the cluster's. When the feature is
enabled, the cluster's number is recorded and the numbers of single brokers are removed. While it is
enabled, neither can be undone.
"""

from collections.abc import Iterable

from broker.metadata.control.view import ClusterView
from broker.metadata.parts.configs import BROKER_RESOURCE, CLUSTER_DEFAULT
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.records.metadata import ConfigRecord

MIN_ISR = "min.insync.replicas"


def agree_on_min_isr(view: ClusterView) -> list[Message]:
    """Return the records that leave exactly one number for the cluster."""
    configs = view.image.configs
    records: list[Message] = []
    if MIN_ISR not in configs.settings_of(*CLUSTER_DEFAULT):
        own = str(view.config.log.min_insync_replicas)
        records.append(_record(CLUSTER_DEFAULT[1], own))
    records += [
        _record(name, None)
        for resource_type, name in sorted(configs)
        if resource_type == BROKER_RESOURCE
        and (resource_type, name) != CLUSTER_DEFAULT
        and MIN_ISR in configs.settings_of(resource_type, name)
    ]
    return records


def validate_min_isr(view: ClusterView, records: Iterable[ConfigRecord]) -> None:
    """Raise INVALID_CONFIG for a change that would not leave exactly one number."""
    if not view.is_elr_enabled:
        return
    for record in records:
        if record.resource_type != BROKER_RESOURCE or record.name != MIN_ISR:
            continue
        if record.resource_name:
            problem = f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
        elif record.value is None:
            problem = f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
        else:
            continue
        raise KafkaError(ErrorCode.INVALID_CONFIG, problem)


def _record(name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        resource_type=BROKER_RESOURCE, resource_name=name, name=MIN_ISR, value=value
    )
