"""What a test sees of a cluster: decoded records, what became of transactions, groups and lags."""

import io
import json
import struct
import urllib.request

import pytest
from confluent_kafka import Consumer, Producer
from fastavro import schemaless_writer

from millstream.testing import LocalBroker, LocalRegistry
from millstream.testing.looking import ClusterView, KafkaRefusedError, NotSeenError
from stack.looking import plain

WAIT_SECONDS = 30


@pytest.mark.parametrize(
    ("data", "decoded"),
    [
        (b'{"id": 1}', {"id": 1}),
        (b"[1, 2]", [1, 2]),
        (b"{no JSON", "{no JSON"),
        (b"42", "42"),
        ("gr\u00fc\u00df\n".encode(), "gr\u00fc\u00df\n"),
        (b"\x00\x01", "0001"),
        (b"\xff", "ff"),
        (b"", ""),
    ],
)
def test_bytes_are_json_or_text_or_digits(data: bytes, decoded: object) -> None:
    assert plain(data) == decoded


def transactional(broker: LocalBroker) -> Producer:
    producer = Producer({**broker.client_settings(), "transactional.id": "t", "log_level": 0})
    producer.init_transactions(WAIT_SECONDS)
    return producer


@pytest.mark.slow
def test_records_have_the_states_of_their_transactions() -> None:
    with LocalBroker() as broker:
        broker.create_topic("orders")
        producer = transactional(broker)
        for name, end in (
            ("kept", producer.commit_transaction),
            ("dropped", producer.abort_transaction),
        ):
            producer.begin_transaction()
            producer.produce("orders", key=name, value=b'{"id": 7}', headers={"h": b"1"})
            producer.flush(WAIT_SECONDS)
            end(WAIT_SECONDS)
        producer.begin_transaction()
        producer.produce("orders", key="waiting")
        producer.flush(WAIT_SECONDS)
        seen = broker.view().records("orders", with_markers=True)
        assert [(each.offset, each.key, each.transaction) for each in seen] == [
            (0, "kept", "committed"),
            (1, None, "commit marker"),
            (2, "dropped", "aborted"),
            (3, None, "abort marker"),
            (4, "waiting", "open"),
        ]
        assert seen[0].value == {"id": 7}
        assert seen[0].raw_value == b'{"id": 7}'
        assert seen[0].headers == (("h", b"1"),)
        assert [each.key for each in broker.records("orders")] == ["kept", "dropped", "waiting"]
        assert [each.key for each in broker.records("orders", read_committed=True)] == ["kept"]
        assert broker.records("orders", 0) == broker.records("orders")


@pytest.mark.slow
def test_a_wait_in_vain_shows_the_topic_as_a_table() -> None:
    with LocalBroker() as broker:
        with pytest.raises(NotSeenError, match=r"0 of 1 records after 0\.1 s\ntopic orders:"):
            broker.wait_for_records("orders", 1, 0.1)
        broker.create_topic("orders")
        producer = Producer(broker.client_settings())
        producer.produce("orders", key="k", value="x" * 100)
        producer.flush(WAIT_SECONDS)
        assert [each.key for each in broker.wait_for_records("orders", 1)] == ["k"]
        with pytest.raises(NotSeenError) as failed:
            broker.wait_for_records("orders", 2, 0.1, read_committed=True)
        first, title, head, row = str(failed.value).splitlines()
        assert first == "1 of 2 committed records after 0.1 s"
        assert title == "topic orders: 1 records and markers"
        assert head.split() == [
            "partition",
            "offset",
            "time",
            "(UTC)",
            "key",
            "value",
            "transaction",
        ]
        assert row.split()[:2] + row.split()[3:] == ["0", "0", "k", "x" * 37 + "...", "-"]


@pytest.mark.slow
def test_a_group_lags_by_what_it_has_not_committed() -> None:
    with LocalBroker() as broker:
        broker.create_topic("orders", 2)
        producer = Producer(broker.client_settings())
        for partition in (0, 0, 1):
            producer.produce("orders", value="v", partition=partition)
        producer.flush(WAIT_SECONDS)
        assert (broker.group("fraud").state, broker.group("fraud").lag) == ("Dead", None)
        consumer = Consumer(
            {
                **broker.client_settings(),
                "group.id": "fraud",
                "client.id": "reader",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe(["orders"])
        for _ in range(3):
            assert consumer.poll(WAIT_SECONDS) is not None
        group = broker.group("fraud")
        (member,) = group.members
        assert (group.state, group.type, group.lag) == ("Stable", "Classic", 3)
        assert (member.client_id, member.partitions) == ("reader", (("orders", 0), ("orders", 1)))
        with pytest.raises(NotSeenError, match="the lag is 3, not 0") as failed:
            broker.wait_for_lag("fraud", 0, 0.1)
        assert str(failed.value).splitlines()[-1].split() == [
            "orders",
            "1",
            "-",
            "1",
            "1",
            "reader",
        ]
        consumer.commit(asynchronous=False)
        assert broker.wait_for_lag("fraud").lag == 0
        consumer.close()


@pytest.mark.slow
def test_the_schemas_of_a_registry_decode() -> None:
    schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    with LocalBroker() as broker, LocalRegistry(broker.bootstrap_servers) as registry:
        body = json.dumps({"schema": json.dumps(schema)}).encode()
        request = urllib.request.Request(
            f"{registry.url}/subjects/orders-value/versions",
            body,
            {"Content-Type": "application/vnd.schemaregistry.v1+json"},
        )
        with urllib.request.urlopen(request) as answer:
            schema_id = json.load(answer)["id"]
        encoded = io.BytesIO(struct.pack(">BI", 0, schema_id))
        encoded.seek(0, io.SEEK_END)
        schemaless_writer(encoded, schema, {"id": 7})
        producer = Producer(broker.client_settings())
        producer.produce("orders", key="not of the registry", value=encoded.getvalue())
        producer.flush(WAIT_SECONDS)
        (record,) = broker.wait_for_records("orders", 1)
        assert record.value == encoded.getvalue().hex()
        broker.registry_url = registry.url
        (record,) = broker.records("orders")
        assert (record.key, record.value) == ("not of the registry", {"id": 7})


@pytest.mark.slow
def test_a_secured_broker_is_looked_into_as_its_administrator() -> None:
    with LocalBroker(security="sasl_ssl") as broker:
        broker.create_topic("orders")
        assert broker.records("orders") == []


@pytest.mark.slow
def test_a_refusal_has_the_name_of_its_error() -> None:
    with LocalBroker() as broker:
        with pytest.raises(KafkaRefusedError) as refused:
            broker.records("missing")
        assert refused.value.code == "UNKNOWN_TOPIC_OR_PARTITION"
        address = broker.bootstrap_servers
    with ClusterView("no address") as view, pytest.raises(KafkaRefusedError, match="no address"):
        view.records("orders")
    with ClusterView(address) as view, pytest.raises(KafkaRefusedError) as refused:
        view.records("orders")
    assert refused.value.code == "REQUEST_TIMED_OUT"
