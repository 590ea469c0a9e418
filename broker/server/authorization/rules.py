"""The authorizer of a node: it has the current rules of the metadata image."""

from collections.abc import Callable, Iterable

from broker.config.security_config import AuthorizerConfig
from broker.metadata.image import MetadataImage
from broker.security.acls import Acl
from broker.security.authorizer import Authorizer


class ImageRules:
    """Owns the index of the image's rules, and builds it again when the rules have changed."""

    def __init__(self, config: AuthorizerConfig, image: Callable[[], MetadataImage]) -> None:
        self._config = config
        self._image = image
        self._seen: tuple[object, int] | None = None
        self.version = 0
        """How often the rules have changed."""
        self._authorizer = self._index(())

    def current(self) -> Authorizer:
        """Return the authorizer for the next decision."""
        acls = self._image().acls
        seen = (acls, acls.version)
        if self._seen is None or self._seen[0] is not acls or self._seen[1] != acls.version:
            self._seen = seen
            self.version += 1
            self._authorizer = self._index(acls.values())
        return self._authorizer

    def _index(self, acls: Iterable[Acl]) -> Authorizer:
        return Authorizer(
            acls,
            super_users=self._config.super_users,
            allow_everyone_if_no_acl_found=self._config.allow_everyone_if_no_acl_found,
        )


class ImageTopics:
    """The topics of the metadata image, for checks."""

    def __init__(self, image: Callable[[], MetadataImage], *, creates_topics: bool) -> None:
        self._image = image
        self.creates_topics = creates_topics

    def name_of(self, topic_id: bytes) -> str | None:
        """Return the name of a topic, None if there is none with this id."""
        topic = self._image().topics.by_id.get(topic_id)
        return None if topic is None else topic.name

    def exists(self, name: str) -> bool:
        """Return whether there is a topic of this name."""
        return name in self._image().topics.by_name
