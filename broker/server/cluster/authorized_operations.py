"""The authorized operations of a client, as the sum of 1 << AclOperation (KIP-430).

These are all operations that the kind of resource supports: every client has them without an
authorizer. With one, `broker.server.authorization` replaces them in the answers.
"""

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = range(3, 10)
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = range(10, 13)

NOT_ASKED_FOR = -(1 << 31)


def _sum(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


ON_TOPIC = _sum(READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
ON_GROUP = _sum(READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
ON_CLUSTER = _sum(
    CREATE,
    ALTER,
    DESCRIBE,
    CLUSTER_ACTION,
    DESCRIBE_CONFIGS,
    ALTER_CONFIGS,
    IDEMPOTENT_WRITE,
)
