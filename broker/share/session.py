"""A share session: the partitions that one member of a share group reads from one broker (KIP-932).

Requests name only the differences. An answer leaves out the partitions without news, except in the
first answer, which has all of them.
"""

from collections.abc import Hashable, Iterable
from typing import NamedTuple

PartitionKey = tuple[bytes, int]
"""Topic id and partition."""

FIRST_EPOCH = 0
"""The epoch of a request that opens a session."""
FINAL_EPOCH = -1
"""The epoch of a request that closes its session."""
MAX_EPOCH = (1 << 31) - 1


class SessionKey(NamedTuple):
    """A member of a share group."""

    group_id: str
    member_id: str


class ShareSession:
    """Invariant: an answer was or will be given for every partition that must have one."""

    __slots__ = ("_must_answer", "epoch", "key", "owner")

    def __init__(self, key: SessionKey, owner: Hashable) -> None:
        self.key = key
        self.owner = owner
        """The connection that opened it."""
        self.epoch = 1
        """The epoch of the next request."""
        self._must_answer: dict[PartitionKey, bool] = {}

    def __len__(self) -> int:
        return len(self._must_answer)

    def __contains__(self, partition: PartitionKey) -> bool:
        return partition in self._must_answer

    @property
    def partitions(self) -> Iterable[PartitionKey]:
        """The partitions, those that gave records last at the end."""
        return self._must_answer.keys()

    def update(self, added: Iterable[PartitionKey], forgotten: Iterable[PartitionKey]) -> None:
        """Apply the differences that a request names."""
        for partition in added:
            self._must_answer.setdefault(partition, True)
        for partition in forgotten:
            self._must_answer.pop(partition, None)

    def advance(self) -> None:
        """Expect the next request; epoch 1 follows the largest one."""
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def rotated(self, epoch: int) -> list[PartitionKey]:
        """Return the partitions in the order of a request: each is the first one at times."""
        partitions = list(self._must_answer)
        if epoch < 1 or not partitions:
            return partitions
        start = epoch % len(partitions)
        return partitions[start:] + partitions[:start]

    def note_answer(self, partition: PartitionKey, *, has_records: bool, has_error: bool) -> bool:
        """Note what there is to answer for a partition; return whether it must be answered.

        The answer after an error is given also without news, so that the client knows its end.
        """
        must_answer = self._must_answer.get(partition)
        if must_answer is None:
            return has_records or has_error
        if has_records:
            del self._must_answer[partition]
        if has_records or must_answer != has_error:
            self._must_answer[partition] = has_error
        return has_records or has_error or must_answer
