"""The image of a node that is the whole cluster, with the handlers that it still has inside."""

from broker.metadata.configs import ConfigControl
from broker.metadata.image import MetadataImage
from broker.metadata.producer_ids import ProducerIdControl
from broker.metadata.topics import TopicControl


class ClusterState(MetadataImage):
    """An image whose parts also make records."""

    topics: TopicControl
    configs: ConfigControl
    producer_ids: ProducerIdControl

    def __init__(self) -> None:
        super().__init__()
        self.topics = TopicControl()
        self.configs = ConfigControl()
        self.producer_ids = ProducerIdControl()
