"""What other brokers got wrong, as conversations: each finding is a transcript of its own.

`REWRITE=1` writes what happens now; read the diff. What Apache Kafka 4.3.1 answered is recorded:
with a node of it that has a topic `t` of two partitions, `MILLSTREAM_RECORD_FROM=127.0.0.1:9092`
asks it again.
"""

import os
import secrets
from pathlib import Path

import pytest

from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from common.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.lib.raw_kafka import RawConnection
from tests.lib.transaction_transcript import Asked, BrokerScenario, Player

FOLDER = Path(__file__).parent / "transaction_transcripts"
TRANSCRIPTS = sorted(FOLDER.glob("*.txt"))
ANSWERS = sorted((Path(__file__).parent / "transaction_answers").glob("*.txt"))
RECORD_FROM = os.environ.get("MILLSTREAM_RECORD_FROM")


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_finding_is_not_ours(path):
    played = Player().play(path.read_text())
    if os.environ.get("REWRITE"):
        path.write_text(played)
    assert played == path.read_text()


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.stem)
def test_the_shard_answers_as_kafka_did(path):
    if RECORD_FROM:
        broker = BrokerScenario(RECORD_FROM, f"{path.stem}-{secrets.token_hex(4)}")
        path.write_text(Asked(broker).play(path.read_text()))
        broker.close()
    assert Asked().play(path.read_text()) == path.read_text()


@pytest.mark.slow
def test_the_whole_broker_answers_as_kafka_did(kafka_broker):
    bootstrap = kafka_broker.bootstrap_servers
    with RawConnection(bootstrap) as connection:
        topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1)
        connection.ask(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic]))
        coordinator = FindCoordinatorRequest(key_type=1, coordinator_keys=["any"])
        connection.ask(ApiKey.FIND_COORDINATOR, 4, coordinator)
    for path in ANSWERS:
        broker = BrokerScenario(bootstrap, path.stem)
        assert Asked(broker).play(path.read_text()) == path.read_text()
        broker.close()


def test_there_are_transcripts():
    assert len(TRANSCRIPTS) >= 9
