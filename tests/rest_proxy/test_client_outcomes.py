"""Each setting of Kafka's clients has an outcome: it is taken, or refused with its reason."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Producer

from common.credentials.translation import ClientSettingsError, is_security
from common.kafka.admin.settings import AdminSettings
from connect.definitions import validation
from rest_proxy.kafka.client_outcomes import KINDS, TAKEN, client_outcomes
from rest_proxy.settings import Settings, SettingsError

ALL: list[dict[str, Any]] = json.loads(
    Path(validation.__file__).with_name("client_settings.json").read_text()
)
NAMES = [(kind, each["name"]) for each in ALL for kind in each["clients"] if kind in KINDS]
VALUES = {
    "acks": "1",
    "client.dns.lookup": "use_all_dns_ips",
    "client.id": "me",
    "client.rack": "a",
    "compression.type": "lz4",
    "isolation.level": "read_committed",
    "linger.ms": "5",
    "metadata.recovery.strategy": "rebootstrap",
    "session.timeout.ms": "12000",
}
"""Others are true or 1000."""
FLAGS = ("check.crcs", "enable.idempotence", "enable.metrics.push", "exclude.internal.topics")


def value_of(name: str) -> str:
    return "true" if name in FLAGS else VALUES.get(name, "1000")


@pytest.mark.parametrize(("kind", "name"), NAMES)
def test_each_setting_of_the_original_has_an_outcome(kind: str, name: str) -> None:
    full = f"{kind}.{name}"
    if is_security(name):
        with pytest.raises(ClientSettingsError, match="all clients have one login"):
            client_outcomes({full: "x"})
        assert client_outcomes({f"client.{name}": "x"}).security == {name: "x"}
    elif name in TAKEN[kind]:
        assert list(client_outcomes({full: value_of(name)}).of[kind]) == [TAKEN[kind][name]]
    else:
        with pytest.raises(ClientSettingsError, match=f"{full} is not taken: .{{10,}}"):
            client_outcomes({full: "x"})


@pytest.mark.parametrize("kind", KINDS)
def test_the_libraries_take_what_is_taken(kind: str) -> None:
    known = {each["name"] for each in ALL if kind in each["clients"]}
    assert TAKEN[kind].keys() <= known
    of = client_outcomes({f"{kind}.{name}": value_of(name) for name in TAKEN[kind]}).of[kind]
    told: dict[str, Any] = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    match kind:
        case "producer":
            changed = {"enable.idempotence": False, "message.max.bytes": 1000, "batch.size": 1000}
            Producer({**told, **of, **changed})
        case "admin":
            assert of.keys() <= AdminSettings.__dataclass_fields__.keys()
        case _:
            assert of.keys() <= inspect.signature(AIOKafkaConsumer.__init__).parameters.keys()


def test_what_is_said_of_one_client_counts_more_than_what_is_said_of_all() -> None:
    said = {
        "producer.client.id": "one",
        "client.client.id": "all",
        "client.metadata.max.age.ms": "7",
    }
    of = client_outcomes(said).of
    assert of["producer"] == {"client.id": "one", "metadata.max.age.ms": 7}
    assert of["admin"] == {"client_id": "all"}
    assert of["consumer"] == {"client_id": "all", "metadata_max_age_ms": 7}


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("producer.batch.size", "many", "no whole number"),
        ("producer.enable.idempotence", "1", "true or false"),
        ("producer.threads", "5", "no threads"),
        ("consumer.threads", "5", "no threads"),
        ("client.zk.session.timeout.ms", "5", "librdkafka and aiokafka"),
        ("client.no.such", "5", "no such setting"),
        ("consumer.group.id", "g", "an instance says it"),
    ],
)
def test_a_refusal_names_the_setting_and_the_reason(name: str, value: str, why: str) -> None:
    with pytest.raises(SettingsError, match=f"{name}.*{why}"):
        Settings.of({name: value})
