"""Dispatches the requests of controller listeners, and has the table of the APIs served there.

Raft's own requests go to the Raft node, which decides when they are answered. All other requests
are for the active controller; any other node answers NOT_CONTROLLER, so that a broker or an admin
client looks for the controller on another node (KIP-919).
"""

import logging
from collections.abc import Callable
from ipaddress import ip_address

from broker.config.broker_config import BrokerConfig
from broker.metadata.controller import CONTROLLER_APIS
from broker.metadata.features import SUPPORTED_FEATURES
from broker.model import plain_address
from broker.security.authorizer import Requester
from broker.server.authorization.guard import Guard
from broker.server.authorization.table import CHECKS
from broker.server.authorization.verdicts import Narrowed, Refused, Verdict
from broker.server.cluster.metadata_quorum import ClusterMetadata, finalized_features
from broker.server.cluster.security import (
    TOKEN_APIS,
    described_acls,
    described_credentials,
    described_tokens,
    enveloped,
    opened,
    token_refusal,
)
from broker.server.network.connection import Connection
from broker.server.network.dispatch import (
    Answer,
    RequestContext,
    close_malformed,
    decoded_in_pieces,
    encode,
    making,
)
from broker.server.network.later import Later, Making, Steps
from broker.server.network.sending import Part
from broker.server.quorum.controller.controller_channel import is_elsewhere
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.framing import (
    DecodeError,
    RequestHeader,
    UnsupportedVersion,
    begin_request,
    response_frame,
)
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from common.kafka.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from common.kafka.protocol.messages.describe_acls import DescribeAclsRequest
from common.kafka.protocol.messages.describe_cluster import DescribeClusterRequest
from common.kafka.protocol.messages.describe_configs import DescribeConfigsRequest
from common.kafka.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from common.kafka.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from common.kafka.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from common.kafka.protocol.principal import decode_principal

log = logging.getLogger("millstream.controller.dispatch")

RAFT_APIS = frozenset(
    {
        ApiKey.FETCH,
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.UPDATE_RAFT_VOTER,
    }
)
SERVED_APIS = (
    RAFT_APIS
    | CONTROLLER_APIS
    | {
        ApiKey.API_VERSIONS,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    }
    | TOKEN_APIS
)


DESCRIBED = frozenset(
    {
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    }
)
"""The requests that every node answers from its image."""
QUORUM_APIS = frozenset({ApiKey.DESCRIBE_QUORUM, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER})
"""The requests of clients that the leader of the quorum answers."""
FORWARDED_APIS = (CONTROLLER_APIS & frozenset(CHECKS)) | QUORUM_APIS
"""The requests of clients that a broker may forward in an Envelope."""


class ControllerDispatcher:
    """The frame sink of every connection to a controller listener."""

    def __init__(
        self,
        *,
        step: Callable[[Message], Later],
        submit: Callable[[Message, int, Callable[[Message], None]], None],
        describe_cluster: Callable[[DescribeClusterRequest], Message],
        describe_configs: Callable[[RequestContext, DescribeConfigsRequest], Steps[Message]],
        metadata: ClusterMetadata,
        on_heartbeat: Callable[[Connection, int], None],
        on_closed: Callable[[Connection], None],
        guard: Guard | None,
        config: BrokerConfig,
    ) -> None:
        """Make a dispatcher; without a guard every request is allowed.

        `step` handles the requests of Raft, `submit` those to the active controller.
        """
        self._step = step
        self._submit = submit
        self._describe_cluster = describe_cluster
        self._describe_configs = describe_configs
        self._metadata = metadata
        self._on_heartbeat = on_heartbeat
        self._on_closed = on_closed
        self._guard = guard
        self._config = config
        self.handle: Callable[[RequestContext, Message], Steps[Answer]] = self._handle
        """Handles a decoded request. An attribute, so that a test can put faults before it."""

    def on_frame(self, connection: Connection, frame: memoryview) -> list[Part] | Making | None:
        """Decode one request and pass it on."""
        try:
            header, message = begin_request(frame)
        except UnsupportedVersion as refused:
            return self._answer_unsupported(connection, refused.header)
        except DecodeError as error:
            close_malformed(connection, error)
            return None
        if header.api_key not in SERVED_APIS:
            return self._answer_unsupported(connection, header)
        context = RequestContext(connection, header, header.api_version)
        if isinstance(message, Message):
            return making(header, self.handle(context, message))
        return decoded_in_pieces(context, message, self.handle)

    def _handle(self, context: RequestContext, message: Message) -> Steps[Answer]:
        api_key = ApiKey(context.header.api_key)
        if api_key is ApiKey.API_VERSIONS:
            return self._api_versions(ErrorCode.NONE)
        guard, peer = self._guard, context.connection.peer
        verdict = (
            None
            if guard is None
            else guard.controllers_verdict(
                Requester(peer.principal, peer.host), message, context.api_version
            )
        )
        return (yield from self._answer_as(verdict, context, message))

    def _answer_as(
        self, verdict: Verdict, context: RequestContext, message: Message
    ) -> Steps[Message]:
        if isinstance(verdict, Refused):
            return verdict.response
        response = yield from self._answer(context, message)
        if isinstance(verdict, Narrowed):
            verdict.complete(response)
        return response

    def _answer(self, context: RequestContext, message: Message) -> Steps[Message]:
        key = message.__api_key__
        if key in DESCRIBED:
            return (yield from self._described(context, message))
        if isinstance(message, DescribeConfigsRequest):
            return (yield from self._describe_configs(context, message))
        if isinstance(message, EnvelopeRequest):
            return (yield from self._answer_envelope(context, message))
        if key in TOKEN_APIS:
            return (yield from self._answer_about_token(context, message))
        if key in RAFT_APIS:
            answered = self._step(message)
        else:
            if isinstance(message, BrokerHeartbeatRequest):
                self._on_heartbeat(context.connection, message.broker_id)
            answered = Later()
            self._submit(message, context.api_version, answered.done)
        response: Message = yield answered
        return response

    def _described(self, context: RequestContext, message: Message) -> Steps[Message]:
        """Answer from the image of this node, as a broker does."""
        config, image = self._config, self._metadata.image
        if isinstance(message, DescribeClusterRequest):
            return self._describe_cluster(message)
        if isinstance(message, DescribeAclsRequest):
            return described_acls(config, image, message)
        if isinstance(message, DescribeUserScramCredentialsRequest):
            return described_credentials(image, message)
        assert isinstance(message, DescribeDelegationTokenRequest), message
        secret_key = config.security.tokens.secret_key
        return token_refusal(config, context) or (
            yield from described_tokens(image, secret_key, message, context.api_version)
        )

    def _answer_about_token(self, context: RequestContext, message: Message) -> Steps[Message]:
        refused = token_refusal(self._config, context)
        if refused is not None:
            return refused
        answered = Later()
        self._submit(enveloped(context, message), 0, answered.done)
        response: EnvelopeResponse = yield answered
        return opened(context, response)

    def _answer_envelope(
        self, context: RequestContext, envelope: EnvelopeRequest
    ) -> Steps[Message]:
        """Answer the request that a broker forwards, with the rights of the broker's client."""
        try:
            header, forwarded = begin_request(envelope.request_data)
            principal = decode_principal(envelope.request_principal or b"")
            host = plain_address(str(ip_address(bytes(envelope.client_host_address))))
            if not isinstance(forwarded, Message):
                forwarded = yield from forwarded
        except (ValueError, UnsupportedVersion):
            return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
        if forwarded.__api_key__ in TOKEN_APIS:
            answered = Later()
            self._submit(envelope, 0, answered.done)
            response: Message = yield answered
            return response
        if forwarded.__api_key__ not in FORWARDED_APIS:
            return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
        guard, verdict = self._guard, None
        if guard is not None:
            name = f"{principal.type}:{principal.name}"
            verdict = guard.controllers_verdict(
                Requester(name, host), forwarded, header.api_version
            )
        inner = RequestContext(context.connection, header, header.api_version)
        answer = yield from self._answer_as(verdict, inner, forwarded)
        if is_elsewhere(answer):
            return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
        return EnvelopeResponse(response_data=response_frame(header, answer))

    def _api_versions(self, code: ErrorCode) -> Message:
        return api_versions(self._metadata, code)

    def on_closed(self, connection: Connection) -> None:
        """Pass on the end of a connection."""
        self._on_closed(connection)

    def _answer_unsupported(
        self, connection: Connection, header: RequestHeader
    ) -> list[Part] | None:
        """Answer ApiVersions in version 0 with error 35 (KIP-511); close for any other API."""
        if header.api_key == ApiKey.API_VERSIONS:
            old = RequestHeader(header.api_key, 0, header.correlation_id, header.client_id)
            return encode(old, self._api_versions(ErrorCode.UNSUPPORTED_VERSION))
        log.warning(
            "closed: not served by a controller api_key=%d api_version=%d client=%s",
            header.api_key,
            header.api_version,
            connection.peer.host,
        )
        connection.close()
        return None


def api_versions(metadata: ClusterMetadata, code: ErrorCode) -> ApiVersionsResponse:
    """Return the APIs served on a controller listener, and the feature levels."""
    return ApiVersionsResponse(
        error_code=code,
        api_keys=[
            ApiVersion(
                api_key=key,
                min_version=API_VERSION_RANGES[key].advertised_min,
                max_version=API_VERSION_RANGES[key].max,
            )
            for key in sorted(SERVED_APIS)
        ],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in sorted(SUPPORTED_FEATURES.items())
        ],
        finalized_features_epoch=metadata.applied_offset - 1,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in finalized_features(metadata)
        ],
    )
