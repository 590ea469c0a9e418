"""The settings of each share group, as the metadata has them at the moment."""

from broker.metadata.features import SHARE_VERSION
from broker.metadata.parts.configs import GROUP_RESOURCE
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.share.group_settings import ShareGroupSettings, ShareLeaderConfig

MAX_KNOWN = 1_000


class ShareSettings:
    """Invariant: a group whose settings are remembered has had no change of them since."""

    def __init__(self, config: ShareLeaderConfig, metadata: ClusterMetadata) -> None:
        self._config = config
        self._metadata = metadata
        self._known: dict[str, ShareGroupSettings] = {}

    def of(self, group_id: str) -> ShareGroupSettings:
        """Return the settings of a group."""
        known = self._known.get(group_id)
        if known is None:
            configs = self._metadata.image.configs
            own = configs.settings_of(GROUP_RESOURCE, group_id)
            known = self._config.of_group(own)
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[group_id] = known
        return known

    def forget(self) -> None:
        """Read the settings again: some have changed."""
        self._known.clear()


def has_share_groups(metadata: ClusterMetadata) -> bool:
    """Return whether the feature share.version is enabled."""
    return metadata.image.features.get(SHARE_VERSION, 0) > 0
