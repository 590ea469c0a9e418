"""Metadata records about who may do what, which only the tools read so far."""

from broker.protocol.message import Message, array, binary, int8, int32, int64, string, uuid


class AccessControlEntryRecord(Message, api_key=18, versions="0", flexible="0+"):
    id: bytes = uuid()
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8()
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


class RemoveAccessControlEntryRecord(Message, api_key=19, versions="0", flexible="0+"):
    id: bytes = uuid()


class UserScramCredentialRecord(Message, api_key=11, versions="0", flexible="0+"):
    name: str = string()
    mechanism: int = int8()
    salt: bytes = binary()
    stored_key: bytes = binary()
    server_key: bytes = binary()
    iterations: int = int32()


class RemoveUserScramCredentialRecord(Message, api_key=22, versions="0", flexible="0+"):
    name: str = string()
    mechanism: int = int8()


class DelegationTokenRecord(Message, api_key=10, versions="0", flexible="0+"):
    owner: str = string()
    requester: str = string()
    renewers: list[str] = array(string)
    issue_timestamp: int = int64()
    max_timestamp: int = int64()
    expiration_timestamp: int = int64()
    token_id: str = string()


class RemoveDelegationTokenRecord(Message, api_key=26, versions="0", flexible="0+"):
    token_id: str = string()


class ZkMigrationStateRecord(Message, api_key=21, versions="0", flexible="0+"):
    zk_migration_state: int = int8()


SECURITY_RECORDS = {
    record.__api_key__: record
    for record in (
        AccessControlEntryRecord,
        RemoveAccessControlEntryRecord,
        UserScramCredentialRecord,
        RemoveUserScramCredentialRecord,
        DelegationTokenRecord,
        RemoveDelegationTokenRecord,
        ZkMigrationStateRecord,
    )
}
