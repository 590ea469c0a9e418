"""Our shard gives Apache Kafka's answers: every transcript was recorded from Apache Kafka 4.3.1.

To record them again: start Kafka with `group.initial.rebalance.delay.ms=0` and topics `t` and `u`,
run this file with `MILLSTREAM_RECORD_FROM=127.0.0.1:9092`, and read the diff. A new transcript
needs only its commands.
"""

import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.lib.group_transcript import BrokerPeer, Player, ShardPeer
from tests.lib.raw_kafka import RawConnection

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))
RECORD_FROM = os.environ.get("MILLSTREAM_RECORD_FROM")


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_shard_answers_as_kafka_did(path):
    if RECORD_FROM:
        peer = BrokerPeer(RECORD_FROM, f"~{secrets.token_hex(4)}")
        path.write_text(Player(peer).play(path.read_text()))
        peer.close()
    assert Player(ShardPeer()).play(path.read_text()) == path.read_text()


@pytest.mark.slow
def test_the_whole_broker_answers_as_kafka_did(kafka_broker):
    bootstrap = kafka_broker.bootstrap_servers
    with RawConnection(bootstrap) as connection:
        topics = [
            CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in "tu"
        ]
        connection.ask(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=topics, timeout_ms=5000))
        connection.find_coordinator("any")

    def play(path: Path) -> str:
        peer = BrokerPeer(bootstrap, f"~{path.stem}")
        try:
            return Player(peer).play(path.read_text())
        finally:
            peer.close()

    # Each has groups of its own, and mostly waits to see that an answer does not come.
    with ThreadPoolExecutor(len(TRANSCRIPTS)) as pool:
        for path, played in zip(TRANSCRIPTS, pool.map(play, TRANSCRIPTS), strict=True):
            assert played == path.read_text()


def test_there_are_transcripts():
    assert len(TRANSCRIPTS) >= 6
