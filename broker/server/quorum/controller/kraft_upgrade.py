"""UpdateFeatures for `kraft.version`, whose level is in the Raft log and not in metadata records.

The other features of the same request are the controller's. All are changed or none: the level is
checked first, the controller decides next, and then the Raft leader writes the level and the
voters. The answer is sent when that record is committed.
"""

from collections.abc import Callable
from typing import NamedTuple

from broker.metadata.control.settings.features import UPGRADE, update_failed
from broker.metadata.features import KRAFT_VERSION, SUPPORTED_FEATURES
from broker.server.quorum.controller.active_controller import OnResponse
from broker.server.quorum.raft.raft_shell import RaftShell
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

FIRST_VERSION_WITHOUT_RESULTS = 2

Submit = Callable[[Message, int, OnResponse], None]
Refuse = Callable[[Message, int, KafkaError], Message]


class _Waiting(NamedTuple):
    end_offset: int
    request: UpdateFeaturesRequest
    api_version: int
    response: Message
    on_response: OnResponse


def names_kraft_version(request: Message) -> bool:
    """Return True if a request is to change `kraft.version`, perhaps with other features."""
    return isinstance(request, UpdateFeaturesRequest) and any(
        update.feature == KRAFT_VERSION for update in request.feature_updates
    )


class KraftUpgrade:
    """Carries out the changes of `kraft.version` while this node leads the quorum."""

    def __init__(self, raft: RaftShell, node_id: int, refuse: Refuse) -> None:
        self._raft = raft
        self._node_id = node_id
        self._refuse = refuse
        self._waiting: list[_Waiting] = []

    def submit(
        self,
        request: UpdateFeaturesRequest,
        api_version: int,
        on_response: OnResponse,
        submit_rest: Submit,
    ) -> None:
        """Check the level, let the controller decide on the other features, write the level."""
        own = [each for each in request.feature_updates if each.feature == KRAFT_VERSION]
        rest = [each for each in request.feature_updates if each.feature != KRAFT_VERSION]
        try:
            self._check(own)
        except KafkaError as error:
            on_response(self._refuse(request, api_version, error))
            return

        def decided(response: Message) -> None:
            assert isinstance(response, UpdateFeaturesResponse), response
            if response.error_code or request.validate_only:
                on_response(response)
                return
            self._write(_Waiting(0, request, api_version, response, on_response))

        if not rest:
            decided(UpdateFeaturesResponse(error_message=None, results=_results(own, api_version)))
            return
        others = UpdateFeaturesRequest(
            timeout_ms=request.timeout_ms,
            feature_updates=rest,
            validate_only=request.validate_only,
        )
        submit_rest(others, api_version, decided)

    def _check(self, updates: list[FeatureUpdateKey]) -> None:
        if len(updates) > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A feature is named more than once.")
        update = updates[0]
        lowest, highest = SUPPORTED_FEATURES[KRAFT_VERSION]
        try:
            if not lowest <= update.max_version_level <= highest:
                raise KafkaError(
                    ErrorCode.INVALID_UPDATE_VERSION,
                    f"Local controller {self._node_id} only supports versions {lowest}-{highest}",
                )
            if update.upgrade_type != UPGRADE or update.allow_downgrade:
                raise KafkaError(
                    ErrorCode.INVALID_UPDATE_VERSION, f"{KRAFT_VERSION} cannot be downgraded."
                )
            self._raft.upgrade_kraft_version(update.max_version_level, validate_only=True)
        except KafkaError as error:
            raise update_failed(update, error) from error

    def _write(self, waiting: _Waiting) -> None:
        (update,) = (
            each for each in waiting.request.feature_updates if each.feature == KRAFT_VERSION
        )
        try:
            position = self._raft.upgrade_kraft_version(
                update.max_version_level, validate_only=False
            )
        except KafkaError as error:
            failed = update_failed(update, error)
            waiting.on_response(self._refuse(waiting.request, waiting.api_version, failed))
            return
        if position is None:
            waiting.on_response(waiting.response)
            return
        self._waiting.append(waiting._replace(end_offset=position.offset))

    def advance(self) -> None:
        """Answer the changes that are committed."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if self._raft.applied_offset >= each.end_offset:
                each.on_response(each.response)
            else:
                self._waiting.append(each)

    def end(self) -> None:
        """Refuse the changes that wait: this node is not the leader."""
        waiting, self._waiting = self._waiting, []
        error = KafkaError(ErrorCode.NOT_CONTROLLER, "This is not the active controller.")
        for each in waiting:
            each.on_response(self._refuse(each.request, each.api_version, error))


def _results(updates: list[FeatureUpdateKey], api_version: int) -> list[UpdatableFeatureResult]:
    if api_version >= FIRST_VERSION_WITHOUT_RESULTS:
        return []
    return [
        UpdatableFeatureResult(feature=update.feature, error_message=None) for update in updates
    ]
