"""The metadata quorum as the parts of a broker see it: the committed metadata, and a channel.

`quorum.Quorum` and its channel implement both protocols; a test has its own implementation.
"""

from collections.abc import Callable
from typing import Protocol

from broker.metadata.features import KRAFT_VERSION
from broker.metadata.image import MetadataImage
from common.kafka.protocol.message import Message


class ClusterMetadata(Protocol):
    """The metadata of the cluster, as far as this node knows it to be committed."""

    @property
    def cluster_id(self) -> str:
        """The id of this cluster."""

    @property
    def image(self) -> MetadataImage:
        """The committed metadata that is applied here; each read may return another object."""

    @property
    def applied_offset(self) -> int:
        """The offset below which the metadata log is applied."""

    @property
    def leader_id(self) -> int:
        """The id of the node whose controller is active, -1 when none is known."""

    @property
    def kraft_version(self) -> int:
        """The level of `kraft.version`, which is in the Raft log and not in the image."""


def finalized_features(metadata: ClusterMetadata) -> list[tuple[str, int]]:
    """Return the finalized levels of the cluster, by name; `kraft.version` from level 1 on."""
    levels = dict(metadata.image.features)
    if metadata.kraft_version:
        levels[KRAFT_VERSION] = metadata.kraft_version
    return sorted(levels.items())


class AskController(Protocol):
    """Sends requests to the active controller, in this process or on another node."""

    def __call__(
        self,
        request: Message,
        api_version: int,
        on_response: Callable[[Message], None],
        *,
        timeout_ms: int,
        is_sent_once: bool = False,
    ) -> None:
        """Call `on_response` with the answer, or with a refusal when the time is over.

        With `is_sent_once` a lost connection is a refusal too: the request may be carried out.
        """
