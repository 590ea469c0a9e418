"""Metadata records of the migration from ZooKeeper, which only the tools read."""

from common.kafka.protocol.message import Message, int8


class ZkMigrationStateRecord(Message, api_key=21, versions="0", flexible="0+"):
    zk_migration_state: int = int8()


MIGRATION_RECORDS = {ZkMigrationStateRecord.__api_key__: ZkMigrationStateRecord}
