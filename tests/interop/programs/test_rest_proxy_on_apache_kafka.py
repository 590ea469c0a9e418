"""The REST proxy on Apache Kafka: nothing in it knows that a broker is ours."""

from pathlib import Path

import pytest

from millstream.testing import LocalRestProxy
from tests.lib.apache_kafka import kafka_libs, running_node
from tests.lib.rest_calls import Cluster, RestCalls, records_type
from tests.lib.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.slow]

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
}
ACL = {
    "resource_type": "TOPIC",
    "resource_name": "orders-",
    "pattern_type": "PREFIXED",
    "principal": "User:reader",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}


def test_topics_records_settings_and_acls_of_apache_kafka(tmp_path: Path) -> None:
    with (
        running_node(kafka_libs(), tmp_path, AUTHORIZER) as bootstrap_servers,
        LocalRestProxy(bootstrap_servers) as proxy,
    ):
        rest = RestCalls(proxy.url)
        cluster = Cluster(rest)
        topics_settings_and_offsets(cluster)
        records_are_read(rest)
        acls(cluster)


def topics_settings_and_offsets(cluster: Cluster) -> None:
    path = cluster.topic("fruit")
    until(lambda: cluster.get(f"{path}?include_authorized_operations=true").status == 200)
    assert cluster.send("PUT", f"{path}/configs/retention.ms", {"value": "5000"}).status == 204
    until_read(cluster, f"{path}/configs/retention.ms", {"source": "DYNAMIC_TOPIC_CONFIG"})
    assert cluster.send("PUT", "/broker-configs/log.retention.ms", {"value": "1"}).status == 204
    until_read(cluster, "/broker-configs/log.retention.ms", {"value": "1"})
    assert cluster.get(f"{path}/partitions/-/reassignment").body["data"] == []
    assert cluster.get(f"{path}/partitions/0/offset").body["latest_offset"] == 0
    assert cluster.get("/topics/none").code == 40403


def until_read(cluster: Cluster, path: str, told: dict[str, str]) -> None:
    """Apache Kafka answers a change when its controller has it; its broker shows it soon after."""
    until(lambda: told.items() <= cluster.get(path).body.items())


def records_are_read(rest: RestCalls) -> None:
    sent = rest.post("/topics/fruit", {"records": [{"value": "apple"}]}, records_type("json"))
    assert sent.body["offsets"][0]["error"] is None
    told = {"format": "json", "auto.offset.reset": "earliest"}
    instance = rest.post("/consumers/eaters", told).body["base_uri"]
    rest.post(f"{instance}/subscription", {"topics": ["fruit"]})
    assert [each["value"] for each in rest.get(f"{instance}/records").body] == ["apple"]
    assert rest.post(f"{instance}/offsets").status == 200
    assert rest.delete(instance).status == 204
    groups = Cluster(rest)
    assert groups.get("/consumer-groups/eaters/lag-summary").body["total_lag"] == 0
    lags = groups.send("PATCH", "/consumer-groups/eaters/offsets", {"to": "earliest"})
    assert sum(each["lag"] for each in lags.body["data"]) == 1
    assert groups.send("DELETE", "/consumer-groups/eaters").status == 204


def acls(cluster: Cluster) -> None:
    assert cluster.send("POST", "/acls", ACL).status == 201
    whole = {**ACL, "resource_type": "CLUSTER", "resource_name": "kafka-cluster"}
    whole |= {"pattern_type": "LITERAL", "operation": "DESCRIBE"}
    assert cluster.send("POST", "/acls:batch", {"data": [whole]}).status == 201
    # As with settings, the broker shows what its controller has soon after.
    until(lambda: len(listed(cluster, "?principal=User:reader")) == 2)
    found = listed(cluster, "?resource_type=TOPIC")
    assert [{name: each[name] for name in ACL} for each in found] == [ACL]
    deleted = cluster.send("DELETE", "/acls?resource_type=CLUSTER").body["data"]
    assert [each["operation"] for each in deleted] == ["DESCRIBE"]
    until(lambda: len(listed(cluster)) == 1)


def listed(cluster: Cluster, query: str = "") -> list[dict[str, str]]:
    data: list[dict[str, str]] = cluster.get(f"/acls{query}").body["data"]
    return data
