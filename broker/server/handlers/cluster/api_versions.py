"""ApiVersions (key 18), versions 0-4: the first request of every client.

v3 carries the client's name and version and is answered with a v0 header, so that a client that
speaks a newer version can read the refusal (KIP-511). An unsupported version is answered in v0 with
UNSUPPORTED_VERSION and the whole table.
"""

import re
from collections.abc import Collection
from sys import intern

from broker.metadata.features import SUPPORTED_FEATURES
from broker.server.cluster.metadata_quorum import ClusterMetadata, finalized_features
from broker.server.network.connection import Connection
from broker.server.network.dispatch import RequestContext
from broker.server.telemetry.client_telemetry import ClientTelemetry
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

FIRST_VERSION_WITH_FEATURES = 3
FIRST_VERSION_WITH_LEVEL_ZERO = 4
MAX_SOFTWARE_CHARACTERS = 200
OF_TELEMETRY = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})

_is_software = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?").fullmatch


class ApiVersions:
    """Answers the table of served APIs and the features of the cluster."""

    def __init__(
        self,
        served_apis: Collection[ApiKey],
        metadata: ClusterMetadata,
        telemetry: ClientTelemetry,
    ) -> None:
        self._whole_table = [
            ApiVersion(
                api_key=int(key),
                min_version=API_VERSION_RANGES[key].advertised_min,
                max_version=API_VERSION_RANGES[key].max,
            )
            for key in sorted(served_apis)
        ]
        self._table_without_telemetry = [
            row for row in self._whole_table if row.api_key not in OF_TELEMETRY
        ]
        self._metadata = metadata
        self._telemetry = telemetry

    @property
    def _table(self) -> list[ApiVersion]:
        if self._telemetry.is_advertised:
            return self._whole_table
        return self._table_without_telemetry

    def handle(
        self, context: RequestContext, request: ApiVersionsRequest | None
    ) -> ApiVersionsResponse:
        """Answer the table of served APIs; `request` is None when its version is not supported."""
        error = ErrorCode.NONE if request is not None else ErrorCode.UNSUPPORTED_VERSION
        if context.api_version < FIRST_VERSION_WITH_FEATURES:
            return ApiVersionsResponse(error_code=error, api_keys=self._table)
        if request is not None:
            _note_software(context.connection, request)
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
                for name, level in finalized_features(self._metadata)
            ],
        )


def _note_software(connection: Connection, request: ApiVersionsRequest) -> None:
    """Remember the name and version of the client's library, if they are valid (KIP-511)."""
    name, version = request.client_software_name, request.client_software_version
    is_short = len(name) + len(version) <= MAX_SOFTWARE_CHARACTERS
    if is_short and _is_software(name) and _is_software(version):
        connection.peer = connection.peer._replace(
            software_name=intern(name), software_version=intern(version)
        )
