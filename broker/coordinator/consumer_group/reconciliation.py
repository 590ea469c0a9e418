"""How a member gets from what it has to what it is to have, one heartbeat at a time. Pure.

              has to give up something                  said that it has
    STABLE ─────────────────────────────► UNREVOKED_PARTITIONS ────────► (look again)
      │ ▲
      │ └─── all of it was free ──────────────────────────────┐
      ▼                                                       │
    to get something that another owns ─► UNRELEASED_PARTITIONS (looked at again every heartbeat)

A member that has to give up stays in its epoch until it has: so whoever is in the target epoch has
given up what it had to. Giving up comes first, and nothing is got meanwhile. What a member is told
to have (`assigned`) is its own from that answer on.

Source: KIP-848, "Reconciliation"; the epochs of partitions, KIP-1251.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from broker.coordinator.consumer_group.member import (
    Assignment,
    CurrentAssignment,
    MemberState,
    Owned,
)

Owners = Mapping[bytes, Mapping[int, str]]
"""Who owns a partition, by topic id; who is to give one up owns it until then."""


def reconcile(
    current: CurrentAssignment,
    target: Assignment,
    *,
    target_epoch: int,
    reported: Collection[tuple[bytes, int]] | None,
    owners: Owners,
) -> CurrentAssignment:
    """Return the member's next step, which may be to stay where it is.

    `target` has nothing of topics that the member does not subscribe to, `reported` is what it
    says that it has; None when it did not say.
    """
    if current.state is MemberState.STABLE and current.member_epoch == target_epoch:
        # It has its target, unless it has just stopped to subscribe to a topic.
        if not restricted(current.assigned, target, is_wanted=False):
            return current
    elif current.state is MemberState.UNREVOKED_PARTITIONS:
        if has_any(current.pending_revocation, reported):
            return current
    elif current.state is MemberState.UNKNOWN:
        # It has confirmed that it has nothing (see heartbeat.py), so it begins anew.
        current = replace(current, member_epoch=target_epoch)
    return next_assignment(current, target, target_epoch, reported, owners)


def has_any(owned: Owned, reported: Collection[tuple[bytes, int]] | None) -> bool:
    """Tell whether the member has any of these still; not saying counts as having them."""
    if reported is None:
        return True
    return any(partition in owned.get(topic_id, ()) for topic_id, partition in reported)


def next_assignment(
    current: CurrentAssignment,
    target: Assignment,
    target_epoch: int,
    reported: Collection[tuple[bytes, int]] | None,
    owners: Owners,
) -> CurrentAssignment:
    """Compare what a member has with its target, and take the next step."""
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
        # Of what it gave up a moment ago the member is still down as the owner.
        own = current.pending_revocation.get(topic_id, {})
        taken = owners.get(topic_id, {})
        missing = partitions - had.keys()
        free = [each for each in missing if each not in taken or each in own]
        is_waiting |= len(free) < len(missing)
        if free:
            assigned.setdefault(topic_id, {}).update(dict.fromkeys(free, target_epoch))
    state = MemberState.UNRELEASED_PARTITIONS if is_waiting else MemberState.STABLE
    return moved(current, target_epoch, state, assigned, {})


def restricted(owned: Owned, target: Assignment, *, is_wanted: bool) -> Owned:
    """Return what of the owned is in the target, or what is not."""
    kept: dict[bytes, dict[int, int]] = {}
    for topic_id, partitions in owned.items():
        wanted = target.get(topic_id, frozenset())
        some = {
            partition: epoch
            for partition, epoch in partitions.items()
            if (partition in wanted) is is_wanted
        }
        if some:
            kept[topic_id] = some
    return kept


def moved(
    current: CurrentAssignment,
    member_epoch: int,
    state: MemberState,
    assigned: Owned,
    pending_revocation: Owned,
) -> CurrentAssignment:
    """Return the next half. If the answer that tells of it is lost, the member is in the epoch
    before, and may come back with that."""
    return CurrentAssignment(
        member_epoch, current.member_epoch, state, assigned, pending_revocation
    )
