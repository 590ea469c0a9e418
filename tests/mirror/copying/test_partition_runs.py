"""Messages that come at once, in runs of one partition each."""

from millstream.mirror import TopicPartition
from mirror.copying.source_task import Run, runs_of
from tests.mirror.dedicated.test_mirror_figures import Message as _Message


class Message(_Message):
    """One of a partition that can be chosen."""

    def __init__(self, partition: int, offset: int) -> None:
        super().__init__(None, None, o=offset)
        self._partition = partition

    def partition(self) -> int:
        return self._partition


def test_runs_are_of_one_partition_and_in_the_order_they_came_in() -> None:
    one, two, three, four = Message(0, 3), Message(0, 4), Message(1, 9), Message(0, 7)
    first, second = TopicPartition("orders", 0), TopicPartition("orders", 1)
    assert list(runs_of([one, two, three, four])) == [
        Run(first, [one, two], [3, 4]),
        Run(second, [three], [9]),
        Run(first, [four], [7]),
    ]
    assert list(runs_of([])) == []
