"""ApiVersions (key 18), versions 0-4: the first request of every client.

v3 carries the client's name and version and is answered with a v0 header, so that a client that
speaks a newer version can read the refusal (KIP-511). An unsupported version is answered in v0 with
UNSUPPORTED_VERSION and the whole table.
"""

from broker.errors import ErrorCode
from broker.metadata.features import SUPPORTED_FEATURES
from broker.protocol.api_keys import API_VERSION_RANGES
from broker.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from broker.server.broker import Broker
from broker.server.network.dispatch import SERVED_APIS, RequestContext

FIRST_VERSION_WITH_FEATURES = 3
FIRST_VERSION_WITH_LEVEL_ZERO = 4

_TABLE = [
    ApiVersion(
        api_key=int(key),
        min_version=API_VERSION_RANGES[key].advertised_min,
        max_version=API_VERSION_RANGES[key].max,
    )
    for key in sorted(SERVED_APIS)
]


def handle_api_versions(
    broker: Broker, context: RequestContext, request: ApiVersionsRequest | None
) -> ApiVersionsResponse:
    """Answer the table of served APIs; `request` is None when its version is not supported."""
    error = ErrorCode.NONE if request is not None else ErrorCode.UNSUPPORTED_VERSION
    if context.api_version < FIRST_VERSION_WITH_FEATURES:
        return ApiVersionsResponse(error_code=error, api_keys=_TABLE)
    lowest_told = 0 if context.api_version >= FIRST_VERSION_WITH_LEVEL_ZERO else 1
    return ApiVersionsResponse(
        error_code=error,
        api_keys=_TABLE,
        supported_features=[
            SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in SUPPORTED_FEATURES.items()
            if lowest >= lowest_told
        ],
        finalized_features_epoch=broker.quorum.applied_offset - 1,
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in sorted(broker.cluster.features.items())
        ],
    )
