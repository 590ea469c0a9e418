"""What `transactions` says, and which transactions it takes for hanging."""

from broker.cli.transactions import OpenTransaction, description_row, hanging_of
from broker.model import TopicPartition
from common.kafka.admin.transactions import TransactionDescription
from common.kafka.protocol.messages.describe_producers import ProducerState

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def opened(partition: TopicPartition, producer_id: int) -> OpenTransaction:
    return OpenTransaction(
        partition, ProducerState(producer_id=producer_id, current_txn_start_offset=3)
    )


def test_a_transaction_hangs_where_no_coordinator_will_write_a_marker() -> None:
    known, other_partition, forgotten, unknown = (
        opened(P0, 1),
        opened(P1, 1),
        opened(P0, 2),
        opened(P0, 3),
    )
    ids = {1: "a", 2: "gone"}
    expected = {"a": [P0]}
    found = hanging_of([known, other_partition, forgotten, unknown], ids, expected)
    assert found == [other_partition, forgotten, unknown]


def test_a_description_tells_how_long_it_has_lasted() -> None:
    ongoing = TransactionDescription(1, 7, 2, "Ongoing", 60_000, 1_000, [P0, P1])
    assert description_row("a", ongoing, 4_500) == (
        ("1", "a", "7", "2", "Ongoing", "60000", "1000", "3500", "t-0,t-1")
    )
    empty = ongoing._replace(state="Empty", start_time_ms=None, partitions=[])
    assert description_row("a", empty, 4_500)[4:] == ("Empty", "60000", "None", "None", "")
