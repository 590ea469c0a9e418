"""Classic groups: JoinGroup, SyncGroup, Heartbeat and LeaveGroup, as in Apache Kafka 4.3.

Parked requests and deadlines are soft state: after a reload, every loaded member gets a full
session timeout. Start with `classic_group.py` (states and invariants), then `join.py`.
"""
