"""A question to a shard: a Later that is done with the shard's reply."""

from collections.abc import Callable

from broker.server.network.later import Later


class AskedShard(Later):
    """Identifies one question to the shard; the question is dropped if its connection closes."""

    __slots__ = ("_forget", "shard_number")

    def __init__(self, shard_number: int, forget: Callable[["AskedShard"], None]) -> None:
        super().__init__()
        self.shard_number = shard_number
        self._forget = forget

    def abandon(self) -> None:
        """Tell the shard to drop the question."""
        super().abandon()
        self._forget(self)
