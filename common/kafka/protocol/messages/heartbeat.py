"""Heartbeat (key 12), versions 0-4: a member of a classic group is alive.

The answer informs the member of a rebalance. v3 adds static members (KIP-345), v4 is flexible.
"""

from common.kafka.protocol.message import Message, int16, int32, string


class HeartbeatRequest(Message, api_key=12, versions="0-4", flexible="4+"):
    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None)


class HeartbeatResponse(Message, api_key=12, versions="0-4", flexible="4+"):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
