"""The objects of version 3, with kind, address and name; related objects are addresses.

Pure. A field that Kafka does not know is null.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from rest_proxy.kafka.metadata import Broker, Cluster, Partition, Reassignment, Topic
from rest_proxy.web.addresses import path_of

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """The address of the objects of one cluster, without a slash at its end."""

    base: str
    cluster_id: str

    def address(self, *parts: str | int) -> str:
        path = path_of("v3", "clusters", self.cluster_id, *parts)
        return f"{self.base}/{path}"

    def related(self, *parts: str | int) -> Json:
        return {"related": self.address(*parts)}

    def name(self, *pairs: tuple[str, Any]) -> str:
        parts = "".join(f"/{kind}={value}" for kind, value in pairs)
        return f"crn:///kafka={self.cluster_id}{parts}"

    def resource(
        self, kind: str, parts: Sequence[str | int], pairs: Sequence[tuple[str, Any]]
    ) -> Json:
        return {
            "kind": kind,
            "metadata": {"self": self.address(*parts), "resource_name": self.name(*pairs)},
            "cluster_id": self.cluster_id,
        }

    def listing(self, kind: str, parts: Sequence[str | int], data: Sequence[Json]) -> Json:
        metadata = {"self": self.address(*parts), "next": None}
        return {"kind": f"{kind}List", "metadata": metadata, "data": list(data)}


def cluster(place: Place, found: Cluster) -> Json:
    controller = place.related("brokers", found.controller_id)
    return {
        **place.resource("KafkaCluster", (), ()),
        "controller": controller if found.controller_id >= 0 else None,
        "acls": place.related("acls"),
        "brokers": place.related("brokers"),
        "broker_configs": place.related("broker-configs"),
        "consumer_groups": place.related("consumer-groups"),
        "topics": place.related("topics"),
        "partition_reassignments": place.related("topics", "-", "partitions", "-", "reassignment"),
    }


def broker(place: Place, found: Broker) -> Json:
    parts = ("brokers", found.broker_id)
    return {
        **place.resource("KafkaBroker", parts, [("broker", found.broker_id)]),
        "broker_id": found.broker_id,
        "host": found.host,
        "port": found.port,
        "rack": found.rack,
        "configs": place.related(*parts, "configs"),
        "partition_replicas": place.related(*parts, "partition-replicas"),
    }


def topic(place: Place, found: Topic, operations: Sequence[str] | None = None) -> Json:
    parts = ("topics", found.name)
    shown = {
        **place.resource("KafkaTopic", parts, [("topic", found.name)]),
        "topic_name": found.name,
        "is_internal": found.is_internal,
        "replication_factor": len(found.partitions[0].replicas) if found.partitions else 0,
        "partitions_count": len(found.partitions),
        "partitions": place.related(*parts, "partitions"),
        "configs": place.related(*parts, "configs"),
        "partition_reassignments": place.related(*parts, "partitions", "-", "reassignment"),
    }
    return shown if operations is None else {**shown, "authorized_operations": list(operations)}


def partition(place: Place, name: str, found: Partition) -> Json:
    parts = ("topics", name, "partitions", found.partition_id)
    leader = place.related(*parts, "replicas", found.leader) if found.leader >= 0 else None
    return {
        **place.resource(
            "KafkaPartition", parts, [("topic", name), ("partition", found.partition_id)]
        ),
        "topic_name": name,
        "partition_id": found.partition_id,
        "leader": leader,
        "replicas": place.related(*parts, "replicas"),
        "reassignment": place.related(*parts, "reassignment"),
    }


def replica(place: Place, name: str, of: Partition, broker_id: int) -> Json:
    parts = ("topics", name, "partitions", of.partition_id, "replicas", broker_id)
    pairs = [("topic", name), ("partition", of.partition_id), ("replica", broker_id)]
    return {
        **place.resource("KafkaReplica", parts, pairs),
        "topic_name": name,
        "partition_id": of.partition_id,
        "broker_id": broker_id,
        "is_leader": broker_id == of.leader,
        "is_in_sync": broker_id in of.isr,
        "broker": place.related("brokers", broker_id),
    }


def reassignment(place: Place, found: Reassignment) -> Json:
    parts = ("topics", found.topic, "partitions", found.partition_id)
    name = place.name(("topic", found.topic), ("partition", found.partition_id))
    return {
        "kind": "KafkaReassignment",
        "metadata": {
            "self": place.address(*parts, "reassignment"),
            "resource_name": f"{name}/reassignment",
        },
        "cluster_id": place.cluster_id,
        "topic_name": found.topic,
        "partition_id": found.partition_id,
        "adding_replicas": list(found.adding),
        "removing_replicas": list(found.removing),
        "replicas": place.related(*parts, "replicas"),
    }


def acl(place: Place, fields: Mapping[str, str]) -> Json:
    return {
        "kind": "KafkaAcl",
        "metadata": {"self": f"{place.address('acls')}?{urlencode(fields)}"},
        "cluster_id": place.cluster_id,
        **fields,
    }
