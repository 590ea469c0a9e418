"""The active controller: it turns each request into a decision.

It exists while its node leads the quorum and has replayed all records from before its epoch; a node
that loses the leadership drops it. It decides on the committed image only: the shell asks for the
next decision after the records of the previous one are committed and replayed. Its own state is
only the brokers' sessions (`control/sessions.py`) and the deadlines of periodic elections
(`control/leadership/periodic_elections.py`).

The life of a CreateTopics: `handle` calls `control/topics.py`, which checks the names and settings,
places the replicas (`placement.py`) and returns an answer with records. The shell appends the
records. After their commit every node replays them, and the shell sends the answer.
"""

from collections.abc import Callable
from typing import Any

from broker.metadata.control.heartbeats import handle_broker_heartbeat
from broker.metadata.control.leadership.broker_changes import fence_broker
from broker.metadata.control.leadership.directories import handle_assign_replicas_to_dirs
from broker.metadata.control.leadership.elections import handle_elect_leaders
from broker.metadata.control.leadership.isr import handle_alter_partition
from broker.metadata.control.leadership.periodic_elections import PeriodicElections
from broker.metadata.control.leadership.reassignments import (
    handle_alter_partition_reassignments,
    handle_list_partition_reassignments,
)
from broker.metadata.control.partitions import handle_create_partitions
from broker.metadata.control.producer_ids import handle_allocate_producer_ids
from broker.metadata.control.refusals import refuse
from broker.metadata.control.registration import (
    handle_broker_registration,
    handle_controller_registration,
    handle_unregister_broker,
)
from broker.metadata.control.security.acls import handle_create_acls, handle_delete_acls
from broker.metadata.control.security.delegation_tokens import TokenExpiry, handle_envelope
from broker.metadata.control.security.scram import (
    handle_alter_user_scram_credentials,
    missing_secret,
)
from broker.metadata.control.sessions import NEVER_MS
from broker.metadata.control.settings.configs import (
    handle_alter_configs,
    handle_incremental_alter_configs,
)
from broker.metadata.control.settings.features import bootstrap_records, handle_update_features
from broker.metadata.control.settings.quotas import (
    handle_alter_client_quotas,
    handle_describe_client_quotas,
)
from broker.metadata.control.topics import handle_create_topics, handle_delete_topics
from broker.metadata.control.view import (
    ClusterView,
    ControllerConfig,
    Decision,
    DecisionSteps,
    Moment,
    Random,
)
from broker.metadata.image import MetadataImage
from common.kafka.errors import KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.message import Message

__all__ = [
    "CONTROLLER_APIS",
    "NEVER_MS",
    "Controller",
    "ControllerConfig",
    "Decision",
    "DecisionSteps",
    "Moment",
    "Random",
    "refuse",
]

Handler = Callable[[ClusterView, Any, int, Moment], Decision | DecisionSteps]

HANDLERS: dict[ApiKey, Handler] = {
    ApiKey.CREATE_TOPICS: handle_create_topics,
    ApiKey.DELETE_TOPICS: handle_delete_topics,
    ApiKey.ALTER_CONFIGS: handle_alter_configs,
    ApiKey.CREATE_PARTITIONS: handle_create_partitions,
    ApiKey.ELECT_LEADERS: handle_elect_leaders,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: handle_incremental_alter_configs,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: handle_alter_partition_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: handle_list_partition_reassignments,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: handle_describe_client_quotas,
    ApiKey.ALTER_CLIENT_QUOTAS: handle_alter_client_quotas,
    ApiKey.CREATE_ACLS: handle_create_acls,
    ApiKey.DELETE_ACLS: handle_delete_acls,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: handle_alter_user_scram_credentials,
    ApiKey.ENVELOPE: handle_envelope,
    ApiKey.ALTER_PARTITION: handle_alter_partition,
    ApiKey.UPDATE_FEATURES: handle_update_features,
    ApiKey.BROKER_REGISTRATION: handle_broker_registration,
    ApiKey.BROKER_HEARTBEAT: handle_broker_heartbeat,
    ApiKey.UNREGISTER_BROKER: handle_unregister_broker,
    ApiKey.ALLOCATE_PRODUCER_IDS: handle_allocate_producer_ids,
    ApiKey.CONTROLLER_REGISTRATION: handle_controller_registration,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: handle_assign_replicas_to_dirs,
}

CONTROLLER_APIS = frozenset(HANDLERS)
"""The requests that the controller decides on, and that a broker forwards to it."""


class Controller:
    """Decides for the whole cluster, one operation at a time."""

    def __init__(self, image: MetadataImage, config: ControllerConfig, random: Random) -> None:
        self._view = ClusterView(image, config, random)
        self._elections: PeriodicElections | None = None  # set by `activate`
        self._token_expiry: TokenExpiry | None = None  # set by `activate`

    def activate(self, moment: Moment) -> list[Message]:
        """Become active: start all sessions, and return the first records of a new cluster."""
        self._elections = PeriodicElections(self._view, moment.now_ms)
        self._token_expiry = TokenExpiry(self._view, moment.now_ms)
        leader_id, heard_ms = self._view.config.heard_leader() or (-1, moment.now_ms)
        for broker in self._view.image.brokers.values():
            if not broker.is_fenced:
                last_ms = heard_ms if broker.broker_id == leader_id else moment.now_ms
                self._view.sessions.begin(broker, last_ms, moment.now_ms)
        records = bootstrap_records(self._view)
        return records + missing_secret(self._view, records)

    def handle(
        self, request: Message, api_version: int, moment: Moment
    ) -> Decision | DecisionSteps:
        """Decide on a request; a request that is refused as a whole changes nothing.

        A large decision is returned as steps: the shell commits the records of each before the
        next.
        """
        handler = HANDLERS[ApiKey(request.__api_key__)]
        try:
            decided = handler(self._view, request, api_version, moment)
        except KafkaError as error:
            return Decision(refuse(request, api_version, error))
        if not isinstance(decided, Decision):
            return self._in_steps(decided, request, api_version, moment)
        if self._elections is not None:
            self._elections.note_settings(decided.records, moment.now_ms)
        return decided

    def _in_steps(
        self, steps: DecisionSteps, request: Message, api_version: int, moment: Moment
    ) -> DecisionSteps:
        try:
            decision = yield from steps
        except KafkaError as error:
            return Decision(refuse(request, api_version, error))
        if self._elections is not None:
            self._elections.note_settings(decision.records, moment.now_ms)
        return decision

    def tick(self, moment: Moment) -> list[Message]:
        """Return the records that fence the first broker with an ended session, else of elections.

        Each call handles one of them, so that the next decision sees its effect: call `tick` again
        while `next_deadline_ms` has passed. If it returns no records, nothing is due.
        """
        while (broker_id := self._view.sessions.first_ended(moment.now_ms)) is not None:
            if records := self.lose_broker(broker_id, moment):
                return records
        tokens = self._token_expiry
        if tokens is not None and _is_due(tokens.next_deadline_ms(), moment.now_ms):
            return tokens.tick(moment)
        return [] if self._elections is None else self._elections.tick(moment.now_ms)

    def lose_broker(self, broker_id: int, moment: Moment) -> list[Message]:
        """Return the records that fence a broker whose process is known to have ended."""
        self._view.sessions.end(broker_id)
        broker = self._view.image.brokers.get(broker_id)
        if broker is None or broker.is_fenced:
            return []
        return fence_broker(self._view, broker)

    def expire_tokens(self, moment: Moment) -> list[Message]:
        """Return the records that remove the expired tokens, before `tick` would."""
        return [] if self._token_expiry is None else self._token_expiry.tick(moment)

    def next_deadline_ms(self) -> int:
        """Return when to call `tick`: NEVER_MS if the only broker is in this process."""
        deadline_ms = self._view.sessions.next_deadline_ms()
        if self._elections is not None:
            deadline_ms = min(deadline_ms, self._elections.next_deadline_ms())
        tokens_ms = None if self._token_expiry is None else self._token_expiry.next_deadline_ms()
        return deadline_ms if tokens_ms is None else min(deadline_ms, tokens_ms)


def _is_due(deadline_ms: int | None, now_ms: int) -> bool:
    return deadline_ms is not None and deadline_ms <= now_ms
