"""How a member gets from its current assignment to its target, heartbeat by heartbeat.

              must revoke partitions                    reports them revoked
    STABLE ─────────────────────────────► UNREVOKED_PARTITIONS ────────► (compare again)
      │ ▲
      │ └─── all missing partitions were free ────────────────┐
      ▼                                                       │
    a missing partition has an owner ───► UNRELEASED_PARTITIONS (compared at every heartbeat)

A member that must revoke partitions stays in its epoch until it has revoked them. So a member in
the target epoch has revoked all that it had to. Revocation comes first, and a member gets no
partition before it ends. A partition in `assigned` belongs to the member from that answer on.

Source: KIP-848, "Reconciliation"; for the epochs of partitions, KIP-1251.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from broker.coordinator.consumer_group.member import (
    Assignment,
    CurrentAssignment,
    MemberState,
    Owned,
)

Key = TypeVar("Key", bytes, str)

Owners = Mapping[bytes, Mapping[int, str]]
"""The owner of each partition, by topic id; a member owns a partition until it has revoked it."""


def reconcile(
    current: CurrentAssignment,
    target: Assignment,
    *,
    target_epoch: int,
    reported: Collection[tuple[bytes, int]] | None,
    owners: Owners,
) -> CurrentAssignment:
    """Return the member's next assignment, which may be the current one.

    `target` has only topics that the member subscribes to. `reported` has the partitions that the
    member reports to own; None if it did not report any.
    """
    if current.state is MemberState.STABLE and current.member_epoch == target_epoch:
        # It has its target, unless it has just ended its subscription to a topic.
        if not restricted(current.assigned, target, is_wanted=False):
            return current
    elif current.state is MemberState.UNREVOKED_PARTITIONS:
        if has_any(current.pending_revocation, reported):
            return current
    elif current.state is MemberState.UNKNOWN:
        # It has confirmed that it owns nothing (see heartbeat.py), so it starts from nothing.
        current = replace(current, member_epoch=target_epoch)
    return next_assignment(current, target, target_epoch, reported, owners)


def has_any(
    owned: Mapping[Key, Mapping[int, int]], reported: Collection[tuple[Key, int]] | None
) -> bool:
    """Return True if the member may still own one of these; without a report it may."""
    if reported is None:
        return True
    return any(partition in owned.get(key, ()) for key, partition in reported)


def next_assignment(
    current: CurrentAssignment,
    target: Assignment,
    target_epoch: int,
    reported: Collection[tuple[bytes, int]] | None,
    owners: Owners,
) -> CurrentAssignment:
    """Compare a member's assignment with its target; return the next assignment."""
    kept = restricted(current.assigned, target, is_wanted=True)
    to_revoke = restricted(current.assigned, target, is_wanted=False)
    if to_revoke and has_any(to_revoke, reported):
        return moved(
            current, current.member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, to_revoke
        )
    is_waiting = False
    assigned = {topic_id: dict(partitions) for topic_id, partitions in kept.items()}
    for topic_id, partitions in target.items():
        had = kept.get(topic_id, {})
        # Partitions that the member has just revoked still have it as the owner.
        own = current.pending_revocation.get(topic_id, {})
        taken = owners.get(topic_id, {})
        missing = partitions - had.keys()
        free = [each for each in missing if each not in taken or each in own]
        is_waiting |= len(free) < len(missing)
        if free:
            assigned.setdefault(topic_id, {}).update(dict.fromkeys(free, target_epoch))
    state = MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE
    return moved(current, target_epoch, state, assigned, {})


def restricted(
    owned: Mapping[Key, Mapping[int, int]],
    target: Mapping[Key, frozenset[int]],
    *,
    is_wanted: bool,
) -> dict[Key, dict[int, int]]:
    """Return the owned partitions that are in the target, or those that are not.

    The keys are topic ids, or the subtopologies of a streams group.
    """
    kept: dict[Key, dict[int, int]] = {}
    for key, partitions in owned.items():
        wanted = target.get(key, frozenset())
        some = {
            partition: epoch
            for partition, epoch in partitions.items()
            if (partition in wanted) is is_wanted
        }
        if some:
            kept[key] = some
    return kept


def moved(
    current: CurrentAssignment,
    member_epoch: int,
    state: MemberState,
    assigned: Owned,
    pending_revocation: Owned,
) -> CurrentAssignment:
    """Return the next assignment, with the present epoch as the previous one.

    If the answer with the new epoch is lost, the member's next heartbeat has the previous epoch.
    """
    return CurrentAssignment(
        member_epoch, current.member_epoch, state, assigned, pending_revocation
    )
