"""What the parts of a broker know of the metadata quorum: what it has committed, and how to ask it.

`quorum.Quorum` and its channel are behind both; in a test it is what the test says.
"""

from collections.abc import Callable
from typing import Protocol

from broker.metadata.image import MetadataImage
from broker.protocol.message import Message


class ClusterMetadata(Protocol):
    """The metadata of the cluster, as far as this node knows it to be committed."""

    @property
    def cluster_id(self) -> str:
        """The id of this cluster."""

    @property
    def image(self) -> MetadataImage:
        """Everything that is committed and applied here; may be another object next time."""

    @property
    def applied_offset(self) -> int:
        """Up to where the metadata log is applied."""

    @property
    def leader_id(self) -> int:
        """The node whose controller is active, -1 when none is known."""


class AskController(Protocol):
    """Asks the active controller, wherever it is, and waits for it as long as it takes."""

    def __call__(
        self,
        request: Message,
        api_version: int,
        on_response: Callable[[Message], None],
        *,
        timeout_ms: int,
        is_sent_once: bool = False,
    ) -> None:
        """Call `on_response` with its answer, or with a refusal when the time is over.

        With `is_sent_once` also when the connection is lost: then it may yet be carried out.
        """
