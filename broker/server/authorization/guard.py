"""Puts the check of an API before its handler, with the current rules of the metadata image."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from broker.config.broker_config import BrokerConfig
from broker.config.security_config import AuthorizerConfig
from broker.coordinator.output import TopicRights
from broker.metadata.image import MetadataImage
from broker.security.authorizer import Authorizer, Requester
from broker.server.authorization.access import CLUSTER, TOPIC, Access, Topics
from broker.server.authorization.audit import Audit
from broker.server.authorization.table import CHECKS
from broker.server.authorization.verdicts import Closed, Narrowed, Refused, Verdict, with_code
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.network.connection import Connection
from broker.server.network.dispatch import NO_RESPONSE, Answer, Handler, RequestContext
from broker.server.network.later import Steps
from common.kafka.acls import Acl, AclOperation
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import response_class
from common.kafka.protocol.message import Message


class _VisibleTopics(NamedTuple):
    """The topics that a requester may describe; nothing is noted in the audit log."""

    access: Access
    version: int

    def may_describe(self, topic: str) -> bool:
        return self.access.can_see(AclOperation.DESCRIBE, TOPIC, topic)


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


class Guard:
    """Puts checks before handlers; each check uses the current rules and topics."""

    def __init__(self, rules: ImageRules, topics: Topics, audit: Audit) -> None:
        self._rules = rules
        self._topics = topics
        self._audit = audit

    def access(self, connection: Connection, api: str) -> Access:
        """Return the rights of the principal at the other end of a connection."""
        return self._access(Requester(connection.peer.principal, connection.peer.host), api)

    def topic_rights(self, context: RequestContext) -> TopicRights:
        """Return which topics the sender of a request may describe."""
        access = self.access(context.connection, "")
        return _VisibleTopics(access, self._rules.version)

    def _access(self, requester: Requester, api: str) -> Access:
        return Access(self._rules.current(), self._topics, requester, api, self._audit)

    def guarded(self, api_key: int, handler: Handler) -> Handler:
        """Return the handler with its check before it; an API without a check is a bug."""
        key = ApiKey(api_key)
        check, name = CHECKS[key], key.name

        def handle(context: RequestContext, request: Any) -> Answer | Steps[Answer]:
            access = self.access(context.connection, name)
            match check(access, request, context.api_version):
                case None:
                    return handler(context, request)
                case Refused(response):
                    return response
                case Closed():
                    context.connection.close()
                    return NO_RESPONSE
                case Narrowed(complete):
                    return _completed(handler(context, request), complete)

        return handle

    def controllers_verdict(
        self, requester: Requester, request: Message, api_version: int
    ) -> Verdict:
        """Check a request to a controller.

        CLUSTER_ACTION is for the cluster's own nodes, which may send every request: a broker has
        checked the requests that it forwards. Other clients need the same rights as at a broker.
        """
        key = ApiKey(request.__api_key__)
        access = self._access(requester, key.name)
        if access.can_see(AclOperation.CLUSTER_ACTION, CLUSTER):
            return None
        if key in CHECKS and key is not ApiKey.FETCH:
            return CHECKS[key](access, request, api_version)
        access.may(AclOperation.CLUSTER_ACTION, CLUSTER)
        return with_code(response_class(key), ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _completed(
    answer: Answer | Steps[Answer], complete: Callable[[Any], None]
) -> Answer | Steps[Answer]:
    """Let the check complete an answer, which a handler may return later."""
    if isinstance(answer, Message):
        complete(answer)
        return answer
    return answer if answer is NO_RESPONSE else _completed_later(answer, complete)


def _completed_later(steps: Steps[Answer], complete: Callable[[Any], None]) -> Steps[Answer]:
    answer = yield from steps
    if isinstance(answer, Message):
        complete(answer)
    return answer


def guard_of(config: BrokerConfig, metadata: ClusterMetadata, audit: Audit) -> Guard | None:
    """Return the guard of a node, None if its configuration has no authorizer."""
    authorizer = config.security.authorizer
    if authorizer is None:
        return None
    rules = ImageRules(authorizer, lambda: metadata.image)
    topics = ImageTopics(lambda: metadata.image, creates_topics=config.auto_create_topics)
    return Guard(rules, topics, audit)


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
