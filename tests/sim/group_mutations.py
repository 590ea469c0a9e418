"""Bugs to plant in the coordinator of classic groups: each omits one rule."""

from typing import Any

import pytest

from broker.coordinator.classic_group import liveness, rebalance, sync
from broker.coordinator.classic_group.classic_group import ClassicGroup
from broker.coordinator.group import offsets
from broker.coordinator.group_state import step
from broker.coordinator.group_state.offset_store import OffsetStore

original_begin = ClassicGroup.begin_generation
original_committing = offsets.committing_group
original_put = OffsetStore.put


def keep_the_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let members join an earlier generation."""

    def begin(group: ClassicGroup, timestamp_ms: int) -> None:
        original_begin(group, timestamp_ms)
        group.generation_id = max(1, group.generation_id - 1)

    monkeypatch.setattr(ClassicGroup, "begin_generation", begin)


def commit_with_a_generation_that_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept the commit of a member of an earlier generation."""

    def committing(state: step.Step, context: Any, request: Any) -> ClassicGroup:
        group = state.shard.of(ClassicGroup).get(request.group_id)
        if group is None or request.member_id not in group.members:
            return original_committing(state, context, request)
        return group

    monkeypatch.setattr(offsets, "committing_group", committing)


def forget_the_last_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the first committed offset."""

    def put(store: OffsetStore, group_id: str, partition: Any, committed: Any) -> None:
        if store.get(group_id, partition.topic, partition.partition) is None:
            original_put(store, group_id, partition, committed)

    monkeypatch.setattr(OffsetStore, "put", put)


def write_nothing_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write no records, so that a coordinator's crash loses its state."""
    monkeypatch.setattr(step.Step, "append", lambda self, record: None)


def let_sessions_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore session timeouts."""
    monkeypatch.setattr(liveness, "on_session_deadline", lambda *arguments: None)


def wait_for_no_one_to_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a leader that crashed before it sent the assignment."""
    monkeypatch.setattr(sync, "on_sync_deadline", lambda step, group: None)


def stay_stable_when_a_member_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not rebalance when a member crashes."""
    monkeypatch.setattr(liveness, "rebalance", lambda step, group, reason: None)


def answer_a_new_generation_with_old_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer with the assignment of the previous generation."""
    monkeypatch.setattr(rebalance, "reset_assignments", lambda step, group, code: None)


MUTATIONS = [
    keep_the_generation,
    commit_with_a_generation_that_is_over,
    forget_the_last_commit,
    write_nothing_down,
    let_sessions_last,
    wait_for_no_one_to_sync,
    stay_stable_when_a_member_dies,
    answer_a_new_generation_with_old_shares,
]
