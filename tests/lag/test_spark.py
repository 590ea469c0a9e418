"""The offsets of a Spark query, from the files of its checkpoint."""

from pathlib import Path

import pytest

from common.kafka.topics import TopicPartition
from lag.spark import CheckpointError, checkpoint_offsets


def write(folder: Path, batch: int, *sources: str, is_done: bool = True) -> None:
    for name in ("offsets", "commits"):
        (folder / name).mkdir(exist_ok=True)
    lines = ["v1", '{"batchWatermarkMs":0}', *sources]
    (folder / "offsets" / str(batch)).write_text("\n".join(lines))
    if is_done:
        (folder / "commits" / str(batch)).write_text("v1\n{}")


def test_the_last_micro_batch_that_is_done_counts(tmp_path: Path) -> None:
    write(tmp_path, 9, '{"orders":{"0":3}}')
    write(tmp_path, 10, '{"orders":{"0":5,"1":7}}', '{"payments":{"0":2}}', "-", "[4]")
    write(tmp_path, 11, '{"orders":{"0":99}}', is_done=False)
    assert checkpoint_offsets(tmp_path) == {
        TopicPartition("orders", 0): 5,
        TopicPartition("orders", 1): 7,
        TopicPartition("payments", 0): 2,
    }


def test_a_query_that_has_done_nothing_has_no_offsets(tmp_path: Path) -> None:
    write(tmp_path, 0, '{"orders":{"0":3}}', is_done=False)
    assert checkpoint_offsets(tmp_path) == {}


@pytest.mark.parametrize(
    "source", ['{"orders":3}', '{"orders":{"x":1,"0":-2,"1":"a"}}', "{", '{"a":{"12345678901":1}}']
)
def test_what_is_no_offset_is_left_out(tmp_path: Path, source: str) -> None:
    write(tmp_path, 0, source)
    assert checkpoint_offsets(tmp_path) == {}


def test_a_folder_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no checkpoint of Spark"):
        checkpoint_offsets(tmp_path / "none")
