"""Two ways to use each tool, and each sub-command, which its `--help` shows."""

from collections.abc import Mapping

_AT = "--bootstrap-server localhost:9092"

EXAMPLES: Mapping[str, tuple[str, str]] = {
    "topics": (
        f"millstream topics {_AT} --create --topic orders --partitions 6",
        f"millstream topics {_AT} --describe --topic orders",
    ),
    "configs": (
        f"millstream configs {_AT} --describe --entity-type topics --entity-name orders",
        f"millstream configs {_AT} --alter --topic orders --add-config retention.ms=3600000",
    ),
    "acls": (
        f"millstream acls {_AT} --add --allow-principal User:alice --consumer --topic orders "
        "--group packing",
        f"millstream acls {_AT} --list --topic orders",
    ),
    "delegation-tokens": (
        f"millstream delegation-tokens {_AT} --command-config alice.properties --create "
        "--max-life-time-period -1 --renewer-principal User:bob",
        f"millstream delegation-tokens {_AT} --command-config alice.properties --describe",
    ),
    "security": (
        "millstream security check server.properties",
        "millstream security check server.properties --strict",
    ),
    "security check": (
        "millstream security check server.properties",
        "millstream security check server.properties --override authorizer.class.name=",
    ),
    "faults": (
        "millstream faults --listen 127.0.0.1:19092 --upstream localhost:9092",
        "millstream faults --listen 127.0.0.1:19092 --upstream kafka.example.org:9093 "
        "--command-config tls.properties --control 127.0.0.1:9300",
    ),
    "client-metrics": (
        f"millstream client-metrics {_AT} --alter --name all --metrics '*' --interval 30000",
        f"millstream client-metrics {_AT} --describe",
    ),
    "groups": (
        f"millstream groups {_AT} --list",
        f"millstream groups {_AT} --list --group-type consumer",
    ),
    "consumer-groups": (
        f"millstream consumer-groups {_AT} --describe --group billing",
        f"millstream consumer-groups {_AT} --reset-offsets --group billing --topic orders "
        "--to-earliest --dry-run",
    ),
    "streams-groups": (
        f"millstream streams-groups {_AT} --describe --group counter --members",
        f"millstream streams-groups {_AT} --delete --group counter --delete-all-internal-topics",
    ),
    "share-groups": (
        f"millstream share-groups {_AT} --describe --group packers",
        f"millstream share-groups {_AT} --reset-offsets --group packers --topic jobs --to-earliest "
        "--execute",
    ),
    "transactions": (
        f"millstream transactions {_AT} list",
        f"millstream transactions {_AT} describe --transactional-id billing-1",
    ),
    "log-dirs": (
        f"millstream log-dirs {_AT} --describe",
        f"millstream log-dirs {_AT} --describe --broker-list 1,2 --topic-list orders",
    ),
    "get-offsets": (
        f"millstream get-offsets {_AT} --topic orders",
        f"millstream get-offsets {_AT} --topic-partitions orders:0-3 --time earliest",
    ),
    "delete-records": (
        f"millstream delete-records {_AT} --offset-json-file before.json",
        f"millstream delete-records {_AT} --offset-json-file before.json --command-config "
        "admin.properties",
    ),
    "broker-api-versions": (
        f"millstream broker-api-versions {_AT}",
        f"millstream broker-api-versions {_AT} --command-config admin.properties",
    ),
    "console-producer": (
        f"echo hello | millstream console-producer {_AT} --topic orders",
        f"millstream console-producer {_AT} --topic orders --reader-property parse.key=true "
        "--reader-property key.separator=:",
    ),
    "console-consumer": (
        f"millstream console-consumer {_AT} --topic orders --from-beginning --max-messages 10",
        f"millstream console-consumer {_AT} --topic orders --group billing --formatter-property "
        "print.key=true",
    ),
    "console-share-consumer": (
        f"millstream console-share-consumer {_AT} --topic orders --max-messages 10",
        f"millstream console-share-consumer {_AT} --topic orders --group packers --release "
        "--formatter-property print.delivery=true --timeout-ms 2000",
    ),
    "e2e-latency": (
        f"millstream e2e-latency {_AT} --topic latency --num-records 10000 --producer-acks all "
        "--record-size 100",
        f"millstream e2e-latency {_AT} --topic latency --num-records 10000 --producer-acks 1 "
        "--record-size 100 --num-headers 2 --record-header-key-size 5 --record-header-size 10",
    ),
    "verifiable-producer": (
        f"millstream verifiable-producer {_AT} --topic numbers --max-messages 100",
        f"millstream verifiable-producer {_AT} --topic numbers --throughput 100",
    ),
    "verifiable-consumer": (
        f"millstream verifiable-consumer {_AT} --topic numbers --group-id readers",
        f"millstream verifiable-consumer {_AT} --topic numbers --group-id readers --group-protocol "
        "consumer --max-messages 100",
    ),
    "verifiable-share-consumer": (
        f"millstream verifiable-share-consumer {_AT} --topic numbers --group-id packers",
        f"millstream verifiable-share-consumer {_AT} --topic numbers --group-id packers "
        "--acknowledgement-mode sync --offset-reset-strategy earliest --max-messages 100",
    ),
    "producer-perf-test": (
        f"millstream producer-perf-test {_AT} --topic orders --num-records 100000 "
        "--record-size 1000 --throughput -1",
        f"millstream producer-perf-test {_AT} --topic orders --num-records 6000 --record-size 100 "
        "--throughput 100 --transaction-duration-ms 1000",
    ),
    "consumer-perf-test": (
        f"millstream consumer-perf-test {_AT} --topic orders --num-records 100000",
        f"millstream consumer-perf-test {_AT} --topic orders --num-records 100000 "
        "--show-detailed-stats",
    ),
    "share-consumer-perf-test": (
        f"millstream share-consumer-perf-test {_AT} --topic orders --num-records 100000",
        f"millstream share-consumer-perf-test {_AT} --topic orders --num-records 100000 "
        "--threads 4 --show-consumer-stats",
    ),
    "metadata-quorum": (
        f"millstream metadata-quorum {_AT} describe --status",
        f"millstream metadata-quorum {_AT} describe --replication --human-readable",
    ),
    "features": (
        f"millstream features {_AT} describe",
        f"millstream features {_AT} upgrade --feature transaction.version=2 --dry-run",
    ),
    "leader-election": (
        f"millstream leader-election {_AT} --election-type preferred --all-topic-partitions",
        f"millstream leader-election {_AT} --election-type preferred --topic orders --partition 0",
    ),
    "reassign-partitions": (
        f"millstream reassign-partitions {_AT} --generate --topics-to-move-json-file topics.json "
        "--broker-list 1,2,3",
        f"millstream reassign-partitions {_AT} --execute --reassignment-json-file plan.json",
    ),
    "replica-verification": (
        "millstream replica-verification --broker-list localhost:9092",
        "millstream replica-verification --broker-list localhost:9092 --topics-include orders "
        "--time -1",
    ),
    "metadata-quorum add-controller": (
        "millstream metadata-quorum --bootstrap-controller 127.0.0.1:9093 "
        "--command-config server.properties add-controller",
        f"millstream metadata-quorum {_AT} --command-config server.properties add-controller "
        "--dry-run",
    ),
    "metadata-quorum remove-controller": (
        f"millstream metadata-quorum {_AT} remove-controller -i 3 -d JEXY6aqzQY-32P5TStzaFg",
        f"millstream metadata-quorum {_AT} remove-controller --controller-id 3 "
        "--controller-directory-id JEXY6aqzQY-32P5TStzaFg --dry-run",
    ),
    "metadata-quorum describe": (
        f"millstream metadata-quorum {_AT} describe --status",
        f"millstream metadata-quorum {_AT} describe --replication --human-readable",
    ),
    "features describe": (
        f"millstream features {_AT} describe",
        f"millstream features {_AT} describe --node-id 1",
    ),
    "features upgrade": (
        f"millstream features {_AT} upgrade --feature transaction.version=2 --dry-run",
        f"millstream features {_AT} upgrade --release-version 4.3",
    ),
    "features downgrade": (
        f"millstream features {_AT} downgrade --feature transaction.version=1 --dry-run",
        f"millstream features {_AT} downgrade --feature transaction.version=1",
    ),
    "features disable": (
        f"millstream features {_AT} disable --feature group.version --dry-run",
        f"millstream features {_AT} disable --feature group.version",
    ),
    "features version-mapping": (
        f"millstream features {_AT} version-mapping",
        f"millstream features {_AT} version-mapping --release-version 4.3",
    ),
    "features feature-dependencies": (
        f"millstream features {_AT} feature-dependencies --feature transaction.version=2",
        f"millstream features {_AT} feature-dependencies --feature group.version=1 --feature "
        "transaction.version=2",
    ),
    "transactions list": (
        f"millstream transactions {_AT} list",
        f"millstream transactions {_AT} list --duration-filter 60000",
    ),
    "transactions describe": (
        f"millstream transactions {_AT} describe --transactional-id billing-1",
        f"millstream transactions {_AT} --command-config admin.properties describe "
        "--transactional-id billing-1",
    ),
    "transactions describe-producers": (
        f"millstream transactions {_AT} describe-producers --topic orders --partition 0",
        f"millstream transactions {_AT} describe-producers --topic orders --partition 0 "
        "--broker-id 1",
    ),
    "transactions abort": (
        f"millstream transactions {_AT} abort --topic orders --partition 0 --start-offset 17",
        f"millstream transactions {_AT} abort --topic orders --partition 0 --producer-id 4 "
        "--producer-epoch 1 --coordinator-epoch 2",
    ),
    "transactions find-hanging": (
        f"millstream transactions {_AT} find-hanging --topic orders",
        f"millstream transactions {_AT} find-hanging --broker-id 1 --max-transaction-timeout 30",
    ),
    "transactions forceTerminateTransaction": (
        f"millstream transactions {_AT} forceTerminateTransaction --transactionalId billing-1",
        f"millstream transactions {_AT} force-terminate --transactional-id billing-1",
    ),
    "cluster cluster-id": (
        f"millstream cluster cluster-id {_AT}",
        "millstream cluster cluster-id --bootstrap-controller localhost:9093",
    ),
    "cluster unregister": (
        f"millstream cluster unregister {_AT} --id 3",
        f"millstream cluster unregister {_AT} --id 3 --command-config admin.properties",
    ),
    "cluster list-endpoints": (
        f"millstream cluster list-endpoints {_AT}",
        "millstream cluster list-endpoints --bootstrap-controller localhost:9093",
    ),
    "storage format": (
        "millstream storage format --cluster-id ID --config server.properties",
        "millstream storage format --cluster-id ID --config server.properties --standalone",
    ),
    "storage info": (
        "millstream storage info --config server.properties",
        "millstream storage info -c server.properties",
    ),
    "storage random-uuid": (
        "millstream storage random-uuid",
        "millstream storage format --cluster-id $(millstream storage random-uuid) --config "
        "server.properties",
    ),
    "cluster": (
        f"millstream cluster cluster-id {_AT}",
        f"millstream cluster list-endpoints {_AT}",
    ),
    "broker start": (
        "millstream broker start --override log.dirs=/var/lib/millstream",
        "millstream broker start server.properties --override num.partitions=6",
    ),
    "storage": (
        "millstream storage random-uuid",
        "millstream storage format --cluster-id ID --config server.properties",
    ),
    "dump-log": (
        "millstream dump-log --files orders-0/00000000000000000000.log --print-data-log",
        "millstream dump-log --files orders-0/00000000000000000000.index --index-sanity-check",
    ),
}
