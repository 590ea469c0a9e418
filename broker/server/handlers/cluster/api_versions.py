"""ApiVersions (key 18), versions 0-4: the first request of every client.

v3 carries the client's name and version and is answered with a v0 header, so that a client that
speaks a newer version can read the refusal (KIP-511). An unsupported version is answered in v0 with
UNSUPPORTED_VERSION and the whole table.
"""

from collections.abc import Collection

from broker.errors import ErrorCode
from broker.metadata.features import SUPPORTED_FEATURES
from broker.protocol.api_keys import API_VERSION_RANGES, ApiKey
from broker.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.network.dispatch import RequestContext

FIRST_VERSION_WITH_FEATURES = 3
FIRST_VERSION_WITH_LEVEL_ZERO = 4


class ApiVersions:
    """Answers the table of served APIs and the features of the cluster."""

    def __init__(self, served_apis: Collection[ApiKey], metadata: ClusterMetadata) -> None:
        self._table = [
            ApiVersion(
                api_key=int(key),
                min_version=API_VERSION_RANGES[key].advertised_min,
                max_version=API_VERSION_RANGES[key].max,
            )
            for key in sorted(served_apis)
        ]
        self._metadata = metadata

    def handle(
        self, context: RequestContext, request: ApiVersionsRequest | None
    ) -> ApiVersionsResponse:
        """Answer the table of served APIs; `request` is None when its version is not supported."""
        error = ErrorCode.NONE if request is not None else ErrorCode.UNSUPPORTED_VERSION
        if context.api_version < FIRST_VERSION_WITH_FEATURES:
            return ApiVersionsResponse(error_code=error, api_keys=self._table)
        lowest_told = 0 if context.api_version >= FIRST_VERSION_WITH_LEVEL_ZERO else 1
        return ApiVersionsResponse(
            error_code=error,
            api_keys=self._table,
            supported_features=[
                SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
                for name, (lowest, highest) in SUPPORTED_FEATURES.items()
                if lowest >= lowest_told
            ],
            finalized_features_epoch=self._metadata.applied_offset - 1,
            finalized_features=[
                FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
                for name, level in sorted(self._metadata.image.features.items())
            ],
        )
