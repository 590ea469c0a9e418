"""The lookup of a member, the same in consumer groups, share groups and streams groups."""

from collections.abc import Mapping
from typing import TypeVar

from common.kafka.errors import ErrorCode, KafkaError

MemberT = TypeVar("MemberT")


def known_member(members: Mapping[str, MemberT], member_id: str, group_id: str) -> MemberT:
    """Return a member of a group; raise UNKNOWN_MEMBER_ID."""
    member = members.get(member_id)
    if member is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}."
        )
    return member
