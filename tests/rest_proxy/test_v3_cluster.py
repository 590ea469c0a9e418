"""Version 3: the cluster, its topics and settings, groups, access control lists."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer

from millstream.testing import LocalStack
from tests.lib.rest_calls import JSON, Cluster, RestCalls

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(rest: RestCalls) -> Cluster:
    return Cluster(rest)


def test_the_cluster_names_all_that_is_in_it(cluster: Cluster) -> None:
    body = cluster.get().body
    assert body == {
        "kind": "KafkaCluster",
        "metadata": {"self": cluster.url, "resource_name": f"crn:///kafka={cluster.cluster_id}"},
        "cluster_id": cluster.cluster_id,
        "controller": {"related": f"{cluster.url}/brokers/1"},
        "acls": {"related": f"{cluster.url}/acls"},
        "brokers": {"related": f"{cluster.url}/brokers"},
        "broker_configs": {"related": f"{cluster.url}/broker-configs"},
        "consumer_groups": {"related": f"{cluster.url}/consumer-groups"},
        "topics": {"related": f"{cluster.url}/topics"},
        "partition_reassignments": {"related": f"{cluster.url}/topics/-/partitions/-/reassignment"},
    }
    listed = cluster.rest.get("/v3/clusters").body
    assert listed["kind"] == "KafkaClusterList"
    assert listed["metadata"] == {"self": f"{cluster.rest.url}/v3/clusters", "next": None}
    assert listed["data"] == [body]


def test_every_relation_and_every_self_leads_to_what_it_names(cluster: Cluster, topic: str) -> None:
    cluster.topic(topic)
    seen: set[str] = set()
    waiting = [f"{cluster.url}", f"{cluster.url}/topics/{topic}"]
    while waiting:
        url = waiting.pop()
        if url in seen or len(seen) > 60:
            continue
        seen.add(url)
        answer = cluster.rest.get(url)
        none_goes_on = url.endswith(("/0/reassignment", "/1/reassignment"))
        assert answer.status == (404 if none_goes_on else 200), (url, answer)
        if isinstance(answer.body, dict) and "kind" in answer.body:
            assert answer.body["metadata"]["self"] == url
            waiting += [
                each["related"]
                for each in answer.body.values()
                if isinstance(each, dict) and "related" in each
            ]
    assert len(seen) > 12


def test_brokers_and_their_replicas(cluster: Cluster, stack: LocalStack, topic: str) -> None:
    cluster.topic(topic)
    (broker,) = cluster.get("/brokers").body["data"]
    assert (broker["broker_id"], broker["host"], broker["rack"]) == (1, "127.0.0.1", None)
    assert stack.bootstrap_servers == f"127.0.0.1:{broker['port']}"
    assert cluster.get("/brokers/1").body == broker
    replicas = cluster.get("/brokers/1/partition-replicas").body["data"]
    own = [each["partition_id"] for each in replicas if each["topic_name"] == topic]
    assert own == [0, 1]
    for path in ("/brokers/7", "/brokers/7/partition-replicas", "/brokers/7/configs", "/brokers/x"):
        assert cluster.get(path).code == 404


def test_a_topic_is_created_changed_and_deleted(cluster: Cluster, topic: str) -> None:
    told = {
        "topic_name": topic,
        "partitions_count": 2,
        "replication_factor": 1,
        "configs": [{"name": "cleanup.policy", "value": "compact"}],
    }
    tried = cluster.send("POST", "/topics", {**told, "validate_only": True})
    assert (tried.status, tried.body["partitions_count"]) == (200, 2)
    assert cluster.get(f"/topics/{topic}").code == 40403
    made = cluster.send("POST", "/topics", told)
    assert (made.status, made.body["kind"]) == (201, "KafkaTopic")
    assert made.headers["Location"] == made.body["metadata"]["self"]
    assert cluster.get(f"/topics/{topic}").body == made.body
    assert made.body in cluster.get("/topics").body["data"]
    grown = cluster.send("PATCH", f"/topics/{topic}", {"partitions_count": 3})
    assert grown.body["partitions_count"] == 3
    allowed = cluster.get(f"/topics/{topic}?include_authorized_operations=true").body
    assert "WRITE" in allowed["authorized_operations"]
    assert cluster.send("DELETE", f"/topics/{topic}").status == 204
    assert cluster.send("DELETE", f"/topics/{topic}").code == 40403


def test_replicas_of_a_new_topic_can_be_placed(cluster: Cluster, topic: str) -> None:
    placed = [{"partition_id": 1, "broker_ids": [1]}, {"partition_id": 0, "broker_ids": [1]}]
    told = {"topic_name": topic, "replicas_assignments": placed}
    assert cluster.send("POST", "/topics", told).body["partitions_count"] == 2
    for wrong in ([], [{"partition_id": 1, "broker_ids": [1]}], [{"partition_id": 0}]):
        told = {"topic_name": "none", "replicas_assignments": wrong}
        assert cluster.send("POST", "/topics", told).code == 42206


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ({"topic_name": "a b"}, 40002),
        ({"topic_name": "new", "replication_factor": 9}, 40002),
        ({"topic_name": "new", "partitions_count": 0}, 40002),
        ({"topic_name": "new", "configs": [{"name": "no.such", "value": "1"}]}, 40002),
        ({"topic_name": "new", "partitions_count": -3}, 42206),
        ({"topic_name": "new", "partitions_count": 1 << 40}, 400),
        ({"topic_name": 5}, 42206),
        ({}, 42206),
        ({"topic_name": "new", "partitions": 3}, 42206),
    ],
)
def test_a_topic_that_cannot_be_is_refused_with_kafkas_reason(
    cluster: Cluster, told: dict[str, object], code: int
) -> None:
    answer = cluster.send("POST", "/topics", told)
    assert answer.code == code, answer
    assert answer.body["message"]


def test_partitions_replicas_offsets_and_reassignments(cluster: Cluster, topic: str) -> None:
    path = cluster.topic(topic) + "/partitions"
    parts = cluster.get(path).body["data"]
    assert [each["partition_id"] for each in parts] == [0, 1]
    assert cluster.get(f"{path}/1").body == parts[1]
    assert parts[1]["leader"] == {"related": f"{cluster.url}{path}/1/replicas/1"}
    (replica,) = cluster.get(f"{path}/1/replicas").body["data"]
    assert (replica["is_leader"], replica["is_in_sync"]) == (True, True)
    assert replica["metadata"]["resource_name"].endswith(f"/topic={topic}/partition=1/replica=1")
    assert cluster.get(f"{path}/1/replicas/1").body == replica
    offsets = cluster.get(f"{path}/1/offset").body
    assert (offsets["earliest_offset"], offsets["latest_offset"]) == (0, 0)
    latest = cluster.get(f"{path}/1/offset?offset_type=latest").body
    assert ("latest_offset" in latest, "earliest_offset" in latest) == (True, False)
    for every in (f"{path}/-/reassignment", "/topics/-/partitions/-/reassignment"):
        assert cluster.get(every).body["kind"] == "KafkaReassignmentList"
    for missing, code in (
        (f"{path}/9", 40402),
        (f"{path}/9/replicas", 40402),
        (f"{path}/1/replicas/9", 404),
        (f"{path}/1/reassignment", 404),
        (f"{path}/x", 404),
        ("/topics/none/partitions", 40403),
    ):
        assert cluster.get(missing).code == code, missing
    assert cluster.get(f"{path}/1/offset?offset_type=middle").code == 400


@pytest.mark.parametrize("owner", ["topics/{topic}/configs", "brokers/1/configs", "broker-configs"])
def test_settings_are_read_set_deleted_and_set_together(
    cluster: Cluster, topic: str, owner: str
) -> None:
    cluster.topic(topic)
    path = "/" + owner.replace("{topic}", topic)
    name = "retention.ms" if "topics" in owner else "log.retention.ms"
    if owner == "brokers/1/configs":
        name = "log.cleaner.threads"
    assert cluster.send("PUT", f"{path}/{name}", {"value": "2"}).status == 204
    found = cluster.get(f"{path}/{name}").body
    assert (found["value"], found["is_default"]) == ("2", False)
    assert found["source"].startswith("DYNAMIC_")
    assert {"name": name, "value": "2", "source": found["source"]} in found["synonyms"]
    assert found in cluster.get(path).body["data"]
    assert cluster.send("DELETE", f"{path}/{name}").status == 204
    many = {"data": [{"name": name, "value": "3"}], "validate_only": True}
    assert cluster.send("POST", f"{path}:alter", many).status == 204
    assert cluster.send("POST", f"{path}:alter", {"data": many["data"]}).status == 204
    assert cluster.get(f"{path}/{name}").body["value"] == "3"
    gone = {"data": [{"name": name, "operation": "DELETE"}]}
    assert cluster.send("POST", f"{path}:alter", gone).status == 204
    assert cluster.send("PUT", f"{path}/{name}", {"value": "many"}).code == 40002
    assert cluster.send("PUT", f"{path}/{name}", {}).code == 42206
    assert cluster.send("POST", f"{path}:alter", {"data": []}).code == 42206
    wrong = {"data": [{"name": name, "operation": "APPEND"}]}
    assert cluster.send("POST", f"{path}:alter", wrong).code == 42206
    assert cluster.get(f"{path}/no.such.setting").code == 404


def test_settings_of_all_topics_and_of_all_brokers(cluster: Cluster, topic: str) -> None:
    cluster.topic(topic)
    topics = cluster.get("/topics/-/configs").body
    assert topics["kind"] == "KafkaTopicConfigList"
    assert topic in {each["topic_name"] for each in topics["data"]}
    brokers = cluster.get("/brokers/-/configs").body
    assert {each["broker_id"] for each in brokers["data"]} == {1}


@pytest.fixture
def member(stack: LocalStack, topic: str, group: str) -> Iterator[Consumer]:
    """A member of a group that has read one of two records."""
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers})
    for value in (b"a", b"b"):
        producer.produce(topic, value, partition=0)
    producer.flush(30)
    consumer = Consumer(
        {
            "bootstrap.servers": stack.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "client.id": "reader",
        }
    )
    consumer.subscribe([topic])
    first = consumer.poll(30)
    assert first is not None
    consumer.commit(message=first, asynchronous=False)
    yield consumer
    consumer.close()


def test_a_group_its_members_and_how_far_they_are_behind(
    cluster: Cluster, member: Consumer, topic: str, group: str
) -> None:
    path = f"/consumer-groups/{group}"
    found = cluster.get(path).body
    assert (found["state"], found["type"], found["is_simple"]) == ("STABLE", "CLASSIC", False)
    assert found["coordinator"] == {"related": f"{cluster.url}/brokers/1"}
    assert found in cluster.get("/consumer-groups").body["data"]
    (consumer,) = cluster.get(f"{path}/consumers").body["data"]
    assert consumer["client_id"] == "reader"
    own = f"{path}/consumers/{consumer['consumer_id']}"
    assert cluster.get(own).body == consumer
    assigned = cluster.get(f"{own}/assignments").body["data"]
    assert [each["partition_id"] for each in assigned] == [0, 1]
    assert cluster.get(f"{own}/assignments/{topic}/partitions/0").body == assigned[0]
    lags = cluster.get(f"{path}/lags").body["data"]
    by_partition = {each["partition_id"]: each for each in lags}
    lag = by_partition[0]
    assert (lag["log_end_offset"], lag["consumer_id"]) == (2, consumer["consumer_id"])
    assert (lag["current_offset"], lag["lag"]) == (1, 1)
    assert cluster.get(f"{path}/lags/{topic}/partitions/0").body == lag
    summary = cluster.get(f"{path}/lag-summary").body
    assert (summary["total_lag"], summary["max_lag"]) == (lag["lag"], lag["lag"])
    for missing, code in (
        ("/consumer-groups/none", 40405),
        ("/consumer-groups/none/lags", 40405),
        (f"{path}/consumers/none", 404),
        (f"{own}/assignments/{topic}/partitions/9", 404),
        (f"{path}/lags/{topic}/partitions/9", 404),
    ):
        assert cluster.get(missing).code == code, missing


def test_offsets_are_reset_and_a_group_is_deleted_once_its_members_have_left(
    cluster: Cluster, member: Consumer, topic: str, group: str
) -> None:
    path = f"/consumer-groups/{group}"
    assert cluster.send("PATCH", f"{path}/offsets", {"to": "earliest"}).code == 40903
    assert cluster.send("DELETE", path).code == 40903
    member.close()

    def lag_after(body: object) -> dict[int, int]:
        answer = cluster.send("PATCH", f"{path}/offsets", body)
        assert answer.status == 200, answer
        return {each["partition_id"]: each["lag"] for each in answer.body["data"]}

    assert lag_after({"to": "earliest"})[0] == 2
    assert lag_after({"to": "latest"})[0] == 0
    assert lag_after({"to": "2020-01-01T00:00:00Z"})[0] == 2
    place = {"topic_name": topic, "partition_id": 0}
    assert lag_after({"offsets": [{**place, "offset": 1}]})[0] == 1
    assert lag_after({"to": "latest", "partitions": [place]})[0] == 0
    wrong: object
    for wrong in ({}, {"to": "soon"}, {"to": "latest", "offsets": []}, {"offsets": []}):
        assert cluster.send("PATCH", f"{path}/offsets", wrong).code == 42206
    assert cluster.send("DELETE", path).status == 204
    assert cluster.send("DELETE", path).code == 40405


def test_what_is_of_another_cluster_is_404(rest: RestCalls) -> None:
    for path in ("", "/brokers", "/topics", "/consumer-groups", "/acls", "/broker-configs"):
        answer = rest.get(f"/v3/clusters/other{path}")
        assert (answer.status, answer.body["message"]) == (404, "Cluster other cannot be found.")


ACL = {
    "resource_type": "TOPIC",
    "resource_name": "orders-",
    "pattern_type": "PREFIXED",
    "principal": "User:reader",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}


def test_acls_without_an_authorizer_and_wrong_ones_are_refused(cluster: Cluster) -> None:
    assert cluster.send("POST", "/acls", ACL).code == 40002
    assert cluster.send("DELETE", "/acls").code == 400
    assert cluster.get("/acls?colour=red").code == 400
    assert cluster.get("/acls?operation=FLY").code == 400
    assert cluster.send("POST", "/acls", {**ACL, "operation": "ANY"}).code == 42206
    assert cluster.send("POST", "/acls", {**ACL, "host": 5}).code == 42206
    assert cluster.send("POST", "/acls:batch", {"data": []}).code == 42206


def test_a_body_of_another_type_is_415(rest: RestCalls, cluster: Cluster) -> None:
    answer = rest.call("POST", f"{cluster.path}/topics", {"topic_name": "x"}, "text/plain")
    assert answer.code == 415
    answer = rest.call("PUT", f"{cluster.path}/brokers", {}, JSON)
    assert (answer.code, "GET" in answer.headers["Allow"]) == (405, True)
