"""Two ways to use each tool, and each sub-command, which its `--help` shows."""

from collections.abc import Mapping

_AT = "--bootstrap-server localhost:9092"

EXAMPLES: Mapping[str, tuple[str, str]] = {
    "topics": (
        f"millrace topics {_AT} --create --topic orders --partitions 6",
        f"millrace topics {_AT} --describe --topic orders",
    ),
    "configs": (
        f"millrace configs {_AT} --describe --entity-type topics --entity-name orders",
        f"millrace configs {_AT} --alter --topic orders --add-config retention.ms=3600000",
    ),
    "acls": (
        f"millrace acls {_AT} --add --allow-principal User:alice --consumer --topic orders "
        "--group packing",
        f"millrace acls {_AT} --list --topic orders",
    ),
    "delegation-tokens": (
        f"millrace delegation-tokens {_AT} --command-config alice.properties --create "
        "--max-life-time-period -1 --renewer-principal User:bob",
        f"millrace delegation-tokens {_AT} --command-config alice.properties --describe",
    ),
    "security": (
        "millrace security check server.properties",
        "millrace security check server.properties --strict",
    ),
    "security check": (
        "millrace security check server.properties",
        "millrace security check server.properties --override authorizer.class.name=",
    ),
    "client-metrics": (
        f"millrace client-metrics {_AT} --alter --name all --metrics '*' --interval 30000",
        f"millrace client-metrics {_AT} --describe",
    ),
    "groups": (
        f"millrace groups {_AT} --list",
        f"millrace groups {_AT} --list --group-type consumer",
    ),
    "consumer-groups": (
        f"millrace consumer-groups {_AT} --describe --group billing",
        f"millrace consumer-groups {_AT} --reset-offsets --group billing --topic orders "
        "--to-earliest --dry-run",
    ),
    "streams-groups": (
        f"millrace streams-groups {_AT} --describe --group counter --members",
        f"millrace streams-groups {_AT} --delete --group counter --delete-all-internal-topics",
    ),
    "share-groups": (
        f"millrace share-groups {_AT} --describe --group packers",
        f"millrace share-groups {_AT} --reset-offsets --group packers --topic jobs --to-earliest "
        "--execute",
    ),
    "transactions": (
        f"millrace transactions {_AT} list",
        f"millrace transactions {_AT} describe --transactional-id billing-1",
    ),
    "log-dirs": (
        f"millrace log-dirs {_AT} --describe",
        f"millrace log-dirs {_AT} --describe --broker-list 1,2 --topic-list orders",
    ),
    "get-offsets": (
        f"millrace get-offsets {_AT} --topic orders",
        f"millrace get-offsets {_AT} --topic-partitions orders:0-3 --time earliest",
    ),
    "delete-records": (
        f"millrace delete-records {_AT} --offset-json-file before.json",
        f"millrace delete-records {_AT} --offset-json-file before.json --command-config "
        "admin.properties",
    ),
    "broker-api-versions": (
        f"millrace broker-api-versions {_AT}",
        f"millrace broker-api-versions {_AT} --command-config admin.properties",
    ),
    "console-producer": (
        f"echo hello | millrace console-producer {_AT} --topic orders",
        f"millrace console-producer {_AT} --topic orders --reader-property parse.key=true "
        "--reader-property key.separator=:",
    ),
    "console-consumer": (
        f"millrace console-consumer {_AT} --topic orders --from-beginning --max-messages 10",
        f"millrace console-consumer {_AT} --topic orders --group billing --formatter-property "
        "print.key=true",
    ),
    "console-share-consumer": (
        f"millrace console-share-consumer {_AT} --topic orders --max-messages 10",
        f"millrace console-share-consumer {_AT} --topic orders --group packers --release "
        "--formatter-property print.delivery=true --timeout-ms 2000",
    ),
    "e2e-latency": (
        f"millrace e2e-latency {_AT} --topic latency --num-records 10000 --producer-acks all "
        "--record-size 100",
        f"millrace e2e-latency {_AT} --topic latency --num-records 10000 --producer-acks 1 "
        "--record-size 100 --num-headers 2 --record-header-key-size 5 --record-header-size 10",
    ),
    "verifiable-producer": (
        f"millrace verifiable-producer {_AT} --topic numbers --max-messages 100",
        f"millrace verifiable-producer {_AT} --topic numbers --throughput 100",
    ),
    "verifiable-consumer": (
        f"millrace verifiable-consumer {_AT} --topic numbers --group-id readers",
        f"millrace verifiable-consumer {_AT} --topic numbers --group-id readers --group-protocol "
        "consumer --max-messages 100",
    ),
    "verifiable-share-consumer": (
        f"millrace verifiable-share-consumer {_AT} --topic numbers --group-id packers",
        f"millrace verifiable-share-consumer {_AT} --topic numbers --group-id packers "
        "--acknowledgement-mode sync --offset-reset-strategy earliest --max-messages 100",
    ),
    "producer-perf-test": (
        f"millrace producer-perf-test {_AT} --topic orders --num-records 100000 "
        "--record-size 1000 --throughput -1",
        f"millrace producer-perf-test {_AT} --topic orders --num-records 6000 --record-size 100 "
        "--throughput 100 --transaction-duration-ms 1000",
    ),
    "consumer-perf-test": (
        f"millrace consumer-perf-test {_AT} --topic orders --num-records 100000",
        f"millrace consumer-perf-test {_AT} --topic orders --num-records 100000 "
        "--show-detailed-stats",
    ),
    "share-consumer-perf-test": (
        f"millrace share-consumer-perf-test {_AT} --topic orders --num-records 100000",
        f"millrace share-consumer-perf-test {_AT} --topic orders --num-records 100000 --threads 4 "
        "--show-consumer-stats",
    ),
    "metadata-quorum": (
        f"millrace metadata-quorum {_AT} describe --status",
        f"millrace metadata-quorum {_AT} describe --replication --human-readable",
    ),
    "features": (
        f"millrace features {_AT} describe",
        f"millrace features {_AT} upgrade --feature transaction.version=2 --dry-run",
    ),
    "leader-election": (
        f"millrace leader-election {_AT} --election-type preferred --all-topic-partitions",
        f"millrace leader-election {_AT} --election-type preferred --topic orders --partition 0",
    ),
    "reassign-partitions": (
        f"millrace reassign-partitions {_AT} --generate --topics-to-move-json-file topics.json "
        "--broker-list 1,2,3",
        f"millrace reassign-partitions {_AT} --execute --reassignment-json-file plan.json",
    ),
    "replica-verification": (
        "millrace replica-verification --broker-list localhost:9092",
        "millrace replica-verification --broker-list localhost:9092 --topics-include orders "
        "--time -1",
    ),
    "metadata-quorum add-controller": (
        "millrace metadata-quorum --bootstrap-controller 127.0.0.1:9093 "
        "--command-config server.properties add-controller",
        f"millrace metadata-quorum {_AT} --command-config server.properties add-controller "
        "--dry-run",
    ),
    "metadata-quorum remove-controller": (
        f"millrace metadata-quorum {_AT} remove-controller -i 3 -d JEXY6aqzQY-32P5TStzaFg",
        f"millrace metadata-quorum {_AT} remove-controller --controller-id 3 "
        "--controller-directory-id JEXY6aqzQY-32P5TStzaFg --dry-run",
    ),
    "metadata-quorum describe": (
        f"millrace metadata-quorum {_AT} describe --status",
        f"millrace metadata-quorum {_AT} describe --replication --human-readable",
    ),
    "features describe": (
        f"millrace features {_AT} describe",
        f"millrace features {_AT} describe --node-id 1",
    ),
    "features upgrade": (
        f"millrace features {_AT} upgrade --feature transaction.version=2 --dry-run",
        f"millrace features {_AT} upgrade --release-version 4.3",
    ),
    "features downgrade": (
        f"millrace features {_AT} downgrade --feature transaction.version=1 --dry-run",
        f"millrace features {_AT} downgrade --feature transaction.version=1",
    ),
    "features disable": (
        f"millrace features {_AT} disable --feature group.version --dry-run",
        f"millrace features {_AT} disable --feature group.version",
    ),
    "features version-mapping": (
        f"millrace features {_AT} version-mapping",
        f"millrace features {_AT} version-mapping --release-version 4.3",
    ),
    "features feature-dependencies": (
        f"millrace features {_AT} feature-dependencies --feature transaction.version=2",
        f"millrace features {_AT} feature-dependencies --feature group.version=1 --feature "
        "transaction.version=2",
    ),
    "transactions list": (
        f"millrace transactions {_AT} list",
        f"millrace transactions {_AT} list --duration-filter 60000",
    ),
    "transactions describe": (
        f"millrace transactions {_AT} describe --transactional-id billing-1",
        f"millrace transactions {_AT} --command-config admin.properties describe "
        "--transactional-id billing-1",
    ),
    "transactions describe-producers": (
        f"millrace transactions {_AT} describe-producers --topic orders --partition 0",
        f"millrace transactions {_AT} describe-producers --topic orders --partition 0 "
        "--broker-id 1",
    ),
    "transactions abort": (
        f"millrace transactions {_AT} abort --topic orders --partition 0 --start-offset 17",
        f"millrace transactions {_AT} abort --topic orders --partition 0 --producer-id 4 "
        "--producer-epoch 1 --coordinator-epoch 2",
    ),
    "transactions find-hanging": (
        f"millrace transactions {_AT} find-hanging --topic orders",
        f"millrace transactions {_AT} find-hanging --broker-id 1 --max-transaction-timeout 30",
    ),
    "transactions forceTerminateTransaction": (
        f"millrace transactions {_AT} forceTerminateTransaction --transactionalId billing-1",
        f"millrace transactions {_AT} force-terminate --transactional-id billing-1",
    ),
    "cluster cluster-id": (
        f"millrace cluster cluster-id {_AT}",
        "millrace cluster cluster-id --bootstrap-controller localhost:9093",
    ),
    "cluster unregister": (
        f"millrace cluster unregister {_AT} --id 3",
        f"millrace cluster unregister {_AT} --id 3 --command-config admin.properties",
    ),
    "cluster list-endpoints": (
        f"millrace cluster list-endpoints {_AT}",
        "millrace cluster list-endpoints --bootstrap-controller localhost:9093",
    ),
    "storage format": (
        "millrace storage format --cluster-id ID --config server.properties",
        "millrace storage format --cluster-id ID --config server.properties --standalone",
    ),
    "storage info": (
        "millrace storage info --config server.properties",
        "millrace storage info -c server.properties",
    ),
    "storage random-uuid": (
        "millrace storage random-uuid",
        "millrace storage format --cluster-id $(millrace storage random-uuid) --config "
        "server.properties",
    ),
    "cluster": (
        f"millrace cluster cluster-id {_AT}",
        f"millrace cluster list-endpoints {_AT}",
    ),
    "broker start": (
        "millrace broker start --override log.dirs=/var/lib/millrace",
        "millrace broker start server.properties --override num.partitions=6",
    ),
    "storage": (
        "millrace storage random-uuid",
        "millrace storage format --cluster-id ID --config server.properties",
    ),
    "dump-log": (
        "millrace dump-log --files orders-0/00000000000000000000.log --print-data-log",
        "millrace dump-log --files orders-0/00000000000000000000.index --index-sanity-check",
    ),
}
