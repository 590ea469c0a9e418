"""A question to a shard, which is done with the shard's reply."""

from collections.abc import Callable

from broker.server.network.later import Later


class AskedShard(Later):
    """Names one question to the shard; a reply that nobody waits for any more is given up."""

    __slots__ = ("_forget", "shard_number")

    def __init__(self, shard_number: int, forget: Callable[["AskedShard"], None]) -> None:
        super().__init__()
        self.shard_number = shard_number
        self._forget = forget

    def abandon(self) -> None:
        """Have the shard forget that somebody waits."""
        super().abandon()
        self._forget(self)
