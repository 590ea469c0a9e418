"""What records of one micro-batch see of each other, and what is written of them."""

from streams.micro_batch import Effect, Message, MicroBatch


def message(value: bytes) -> Message:
    return Message("topic", b"key", value, [])


def test_a_record_sees_the_rows_of_those_before_it() -> None:
    batch = MicroBatch()
    assert batch.row(0, "a") is None
    batch.add(0, [Effect("a", {"n": 1}, [])])
    assert batch.row(0, "a") == {"n": 1}
    assert batch.row(1, "a") is None


def test_everything_is_sent_in_order_and_the_last_row_of_a_key_is_written() -> None:
    batch = MicroBatch()
    batch.add(0, [Effect("a", {"n": 1}, [message(b"1"), message(b"2")])])
    batch.add(0, [Effect("a", None, [message(b"3")])])
    batch.add(0, [Effect("a", {"n": 2}, [])])
    assert [one.value for one in batch.messages] == [b"1", b"2", b"3"]
    assert batch.rows == {(0, "a"): {"n": 2}}
