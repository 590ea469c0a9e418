"""What the settings of a worker do: providers, policies, topics that are made and kept in mind."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource

from connect.plugins.catalogue import Plugins
from connect.worker.client_settings import KAFKA_LOG
from connect.worker.environment import Environment
from connect.worker.override_policy import override_policy
from connect.worker.settings import WorkerSettings
from millstream.connect.errors import ConfigException
from millstream.testing import LocalBroker
from tests.lib.connect_topics import produce, put
from tests.lib.connect_worker import WORKER_SETTINGS, ConnectWorker, eventually

POLICY = "connector.client.config.override.policy"
ALLOWED = {
    "connector.client.config.override.allowlist": "linger.ms, batch.size, client.id, group.id, "
    "bootstrap.servers"
}


def test_clients_that_nobody_polls_keep_no_log_in_memory() -> None:
    """An admin client with a logger would keep some lines a second while no broker is there."""
    written = {
        **WORKER_SETTINGS,
        "bootstrap.servers": "127.0.0.1:1",
        "offset.storage.file.filename": "x",
    }
    settings = WorkerSettings.of(written, is_distributed=False)
    store: Any = None
    environment = Environment(settings, Plugins([]), {}, store)
    admin = environment.client("admin", {})
    assert "logger" not in admin
    assert (admin["log_level"], admin["reconnect.backoff.ms"]) == ("2", "500")
    assert environment.client("admin", {"admin.override.log_level": "7"})["log_level"] == "7"
    assert environment.client("producer", {})["logger"] is KAFKA_LOG


@pytest.mark.parametrize(
    ("policy", "allowed"),
    [
        ("All", {"linger.ms", "acks", "sasl.jaas.config"}),
        ("None", set()),
        ("Principal", {"sasl.jaas.config"}),
        ("Allowlist", {"linger.ms"}),
        ("org.apache.kafka.connect.connector.policy.AllClientConfig", None),
        (
            "org.apache.kafka.connect.connector.policy.NoneConnectorClientConfigOverridePolicy",
            set(),
        ),
    ],
)
def test_a_policy_says_which_settings_of_clients_may_be_overridden(
    policy: str, allowed: set[str] | None
) -> None:
    written = {**WORKER_SETTINGS, "offset.storage.file.filename": "x", POLICY: policy, **ALLOWED}
    settings = WorkerSettings.of({**written}, is_distributed=False)
    if allowed is None:
        with pytest.raises(ConfigException, match="policy"):
            override_policy(settings)
        return
    refused = override_policy(settings)
    told = {name: refused(name) for name in ("linger.ms", "acks", "sasl.jaas.config")}
    assert {name for name, why in told.items() if why is None} == allowed
    assert all("does not allow" in why for why in told.values() if why is not None)


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as started:
        yield started


def settings(broker: LocalBroker, folder: Path, **more: str) -> dict[str, str]:
    providers = "org.apache.kafka.common.config.provider"
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "offset.storage.file.filename": str(folder / "offsets"),
        "config.providers": "env,directory",
        "config.providers.env.class": f"{providers}.EnvVarConfigProvider",
        "config.providers.env.param.allowlist.pattern": "SHOP_.*",
        "config.providers.directory.class": f"{providers}.DirectoryConfigProvider",
        **more,
    }


@pytest.fixture(scope="module")
def worker(
    broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectWorker]:
    folder = tmp_path_factory.mktemp("settings")
    told = settings(broker, folder, **{"topic.tracking.allow.reset": "false", POLICY: "Allowlist"})
    with (
        patch.dict(os.environ, {"SHOP_FILE": str(folder / "in.txt"), "OTHER_FILE": "hidden"}),
        ConnectWorker(folder, {**told, **ALLOWED}) as started,
    ):
        yield started


@pytest.mark.slow
def test_variables_come_from_the_environment_and_from_files_of_a_directory(
    worker: ConnectWorker, broker: LocalBroker
) -> None:
    (worker.folder / "in.txt").write_text("one\ntwo\n")
    (worker.folder / "secrets").mkdir()
    (worker.folder / "secrets" / "topic").write_text("made-lines")
    config = {
        "connector.class": "FileStreamSource",
        "file": "${env:SHOP_FILE}",
        "topic": f"${{directory:{worker.folder}/secrets:topic}}",
        "producer.override.linger.ms": "1",
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": "2",
        "topic.creation.groups": "kept,other",
        "topic.creation.kept.include": "made-.*,x",
        "topic.creation.kept.exclude": ".*-not",
        "topic.creation.kept.partitions": "3",
        "topic.creation.kept.retention.ms": "1234567",
        "topic.creation.other.include": "made-.*",
        "topic.creation.other.partitions": "5",
    }
    assert worker.call("PUT", "/connectors/lines/config", config).status == 201
    shown = worker.call("GET", "/connectors/lines/config").body
    assert shown["file"] == "${env:SHOP_FILE}"
    topics = "/connectors/lines/topics"
    worker.wait_for("lines", connector="RUNNING", t0="RUNNING")
    eventually(lambda: worker.call("GET", topics).body == {"lines": {"topics": ["made-lines"]}})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    made = admin.list_topics("made-lines", timeout=60).topics["made-lines"]
    assert len(made.partitions) == 3
    resource = ConfigResource(ConfigResource.Type.TOPIC, "made-lines")
    (found,) = admin.describe_configs([resource]).values()
    assert found.result()["retention.ms"].value == "1234567"


@pytest.mark.slow
def test_what_the_policy_forbids_is_refused(worker: ConnectWorker) -> None:
    config = {"connector.class": "FileStreamSource", "topic": "t", "producer.override.acks": "0"}
    answered = worker.call("PUT", "/connectors/forbidden/config", config)
    assert answered.status == 400
    assert "'Allowlist' policy does not allow 'acks'" in answered.body["message"]


@pytest.mark.slow
def test_a_sinks_consumer_is_what_its_connector_makes_of_it(
    worker: ConnectWorker, broker: LocalBroker
) -> None:
    produce(broker, "overridden", *"abc")
    put(
        worker,
        "own-group",
        connector__class="FileStreamSink",
        topics="overridden",
        file=str(worker.folder / "overridden-out"),
        consumer__override__group__id="group-of-mine",
        consumer__override__client__id="consumer-of-mine",
    )
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})

    def clients(group: str) -> list[str]:
        (future,) = admin.describe_consumer_groups([group]).values()
        return [member.client_id for member in future.result(20).members]

    eventually(lambda: clients("group-of-mine") == ["consumer-of-mine"])
    at = {"kafka_topic": "overridden", "kafka_partition": 0}
    committed = {"offsets": [{"partition": at, "offset": {"kafka_offset": 3}}]}
    path = "/connectors/own-group/offsets"
    # The REST interface shows the offsets of the overridden group.
    eventually(lambda: worker.call("GET", path).body == committed)
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("group-of-mine")])
    (found,) = asked["group-of-mine"].result(20).topic_partitions
    assert (found.topic, found.partition, found.offset) == ("overridden", 0, 3)
    groups = {each.group_id for each in admin.list_consumer_groups().result(20).valid}
    assert ("group-of-mine" in groups, "connect-own-group" in groups) == (True, False)
    assert worker.call("DELETE", "/connectors/own-group").status == 204


@pytest.mark.slow
def test_the_client_that_makes_topics_is_what_its_connector_makes_of_it(
    worker: ConnectWorker,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        put(
            worker,
            "own-admin",
            connector__class="FileStreamSink",
            topics="overridden",
            file=str(worker.folder / "admin-out"),
            errors__deadletterqueue__topic__name="letters",
            admin__override__bootstrap__servers=f"127.0.0.1:{listener.getsockname()[1]}",
            admin__override__client__id="admin-of-mine",
        )
        # It goes where it was told to, and says who it is in its first request.
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(30)
            assert b"admin-of-mine" in connection.recv(4096)
    assert worker.call("DELETE", "/connectors/own-admin").status == 204


@pytest.mark.slow
def test_topics_are_not_forgotten_when_the_worker_forbids_it(worker: ConnectWorker) -> None:
    answered = worker.call("PUT", "/connectors/lines/topics/reset")
    assert answered.status == 403
    assert "disabled" in answered.body["message"]


@pytest.mark.slow
def test_without_tracking_nobody_is_told_of_topics(broker: LocalBroker, tmp_path: Path) -> None:
    told = settings(broker, tmp_path, **{"topic.tracking.enable": "false"})
    with ConnectWorker(tmp_path, told) as worker:
        for method, path in (("GET", "topics"), ("PUT", "topics/reset")):
            answered = worker.call(method, f"/connectors/lines/{path}")
            assert answered.status == 403
            assert "disabled" in answered.body["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "told",
    [
        {"group.protocol": "consumer"},
        {
            "partition.assignment.strategy": "org.apache.kafka.clients.consumer."
            "CooperativeStickyAssignor"
        },
    ],
)
def test_sinks_share_partitions_that_are_given_one_after_the_other(
    broker: LocalBroker, tmp_path: Path, told: dict[str, str]
) -> None:
    topic, copied = f"shared-{len(told)}-{next(iter(told))}", tmp_path / "copied"
    broker.create_topic(topic, 2)
    overrides = {f"consumer.override.{name}": value for name, value in told.items()}
    config = {"connector.class": "FileStreamSink", "topics": topic, "file": str(copied)}
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "offset.storage.file.filename": str(tmp_path / "offsets"),
    }
    with ConnectWorker(tmp_path, settings) as worker:
        one = {**config, **overrides, "tasks.max": "1"}
        assert worker.call("PUT", "/connectors/shared/config", one).status == 201
        produce(broker, topic, "a")
        eventually(lambda: copied.exists() and copied.read_text() == "a\n")
        two = {**one, "tasks.max": "2"}
        assert worker.call("PUT", "/connectors/shared/config", two).status == 200
        worker.wait_for("shared", connector="RUNNING", t0="RUNNING", t1="RUNNING")
        produce(broker, topic, *"bcdefgh")
        eventually(lambda: sorted(copied.read_text().split()) == list("abcdefgh"))
        states = worker.states("shared")
        assert set(states.values()) == {"RUNNING"}, states
