"""Unmodified clients produce and consume: every codec, headers, groups, each other's records."""

import uuid

import pytest

from millstream.testing import LocalBroker
from tests.lib.stock_clients import CLIENTS, Record

pytestmark = pytest.mark.interop

RECORDS = [
    Record(f"key-{number % 7}".encode(), b"value " * number, (("number", str(number).encode()),))
    for number in range(1, 60)
]
FEW_RECORDS = RECORDS[:3]


@pytest.fixture(scope="module")
def bootstrap() -> object:
    with LocalBroker(num_partitions=3) as broker:
        yield broker.bootstrap_servers


def fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def records_for(producer: str) -> list[Record]:
    # kcat is started once a record.
    return FEW_RECORDS if producer == "kcat" else RECORDS


PRODUCED = [(name, codec) for name, client in CLIENTS.items() for codec in client.codecs]


@pytest.mark.parametrize(("producer", "codec"), PRODUCED)
def test_what_one_client_produces_every_client_consumes(
    bootstrap: str, producer: str, codec: str
) -> None:
    topic = fresh("orders")
    records = records_for(producer)
    CLIENTS[producer].produce(bootstrap, topic, records, codec)
    for name, consumer in CLIENTS.items():
        if codec not in consumer.codecs:
            continue
        found = consumer.consume(bootstrap, topic, fresh(name), len(records))
        assert sorted(found) == sorted(records), name


@pytest.mark.parametrize("name", [name for name in CLIENTS if name != "kcat"])
def test_a_group_goes_on_from_its_committed_offsets(bootstrap: str, name: str) -> None:
    topic, group = fresh("orders"), fresh("group")
    client = CLIENTS[name]
    client.produce(bootstrap, topic, RECORDS[:20], "none")
    assert sorted(client.consume(bootstrap, topic, group, 20)) == sorted(RECORDS[:20])
    client.produce(bootstrap, topic, RECORDS[20:50], "none")
    assert sorted(client.consume(bootstrap, topic, group, 30)) == sorted(RECORDS[20:50])
