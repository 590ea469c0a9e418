"""ApiVersions (key 18), versions 0-4: the first request of every client.

v3 carries the client's name and version and is answered with a v0 header, so that a client that
speaks a newer version can read the refusal (KIP-511). An unsupported version is answered in v0 with
UNSUPPORTED_VERSION and the whole table.
"""

from broker.errors import ErrorCode
from broker.protocol.api_keys import API_VERSION_RANGES
from broker.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from broker.server.broker import Broker
from broker.server.dispatch import SERVED_APIS, RequestContext

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
    return ApiVersionsResponse(
        error_code=error, api_keys=_TABLE, finalized_features_epoch=broker.metadata_log.end_offset
    )
