"""What the command-line tools refuse before they ask anybody, with Kafka's words and status."""

import json
from importlib import import_module
from pathlib import Path

import pytest

from broker.cli.admin_settings import admin_settings
from broker.cli.arguments import ToolFailed, tool_parser
from broker.cli.config_entities import ENTITY_TYPES
from broker.cli.configs import check_once, parse_additions
from broker.cli.topics import parse_assignment, parse_topic_configs, topic_pattern
from common.kafka.client.exchange import parse_addresses
from common.kafka.errors import KafkaError

NOWHERE = "--bootstrap-server 127.0.0.1:1"
LATENCY = f"{NOWHERE} --topic t --num-records 1 --record-size 1"

REFUSED = [
    ("topics", "", "Command must include exactly one action"),
    ("topics", "--list --create", "Command must include exactly one action"),
    ("topics", "--list", "--bootstrap-server must be specified"),
    ("topics", "--list", "(or KAFKA_BOOTSTRAP_SERVERS)"),
    ("console-consumer", "--topic a", '[bootstrap-server]" (or KAFKA_BOOTSTRAP_SERVERS)'),
    ("topics", f"{NOWHERE} --delete", 'Missing required argument "[topic]"'),
    ("topics", f"{NOWHERE} --alter --topic a", 'Missing required argument "[partitions]"'),
    ("topics", f"{NOWHERE} --alter --topic a --config b=c", '"[[config], [bootstrap-server]]"'),
    ("topics", f"{NOWHERE} --list --partitions 3", '"[partitions]" can\'t be used with option'),
    (
        "topics",
        f"{NOWHERE} --create --topic a --replica-assignment 1 --partitions 2",
        'Option "[replica-assignment]" can\'t be used with option "[partitions]"',
    ),
    ("topics", f"{NOWHERE} --describe --if-exists", "--topic or --topic-id is required"),
    ("topics", "--nosuch", "unrecognized arguments: --nosuch"),
    ("topics", "--list --zookeeper a:1", "Kafka 4 has no ZooKeeper: use --bootstrap-server"),
    ("console-producer", "--topic t --broker-list a:1", "; use --bootstrap-server HOST:PORT"),
    ("configs", "", "exactly one action: --describe, --alter"),
    ("configs", f"{NOWHERE} --describe", "At least one entity type must be specified"),
    ("configs", "--describe --topic a", "--bootstrap-server or --bootstrap-controller must be"),
    ("configs", f"{NOWHERE} --describe --entity-type nosuch", "Invalid entity type nosuch"),
    (
        "configs",
        f"{NOWHERE} --describe --entity-type topics --entity-type users",
        "Only 'users' and 'clients' entity types may be specified together",
    ),
    (
        "configs",
        f"{NOWHERE} --describe --entity-type topics --entity-type topics",
        "Duplicate entity type(s) specified: topics",
    ),
    ("configs", f"{NOWHERE} --describe --topic a --entity-type topics", "Duplicate entity"),
    ("configs", f"{NOWHERE} --describe --topic a --entity-name b", "specific entity flags"),
    ("configs", f"{NOWHERE} --describe --broker abc", "must be a valid integer broker id"),
    ("configs", f"{NOWHERE} --describe --topic a --add-config b=c", "can't be used with option"),
    ("configs", f"{NOWHERE} --alter --topic a", "At least one of --add-config"),
    ("configs", f"{NOWHERE} --alter --entity-type topics --add-config a=b", "An entity name must"),
    ("configs", f"{NOWHERE} --alter --entity-type users --add-config a=b", "or default entity"),
    (
        "configs",
        f"{NOWHERE} --describe --entity-type topics --entity-default",
        "--entity-default must not be specified with --describe of topics",
    ),
    ("metadata-quorum", NOWHERE, "COMMAND"),
    ("metadata-quorum", f"{NOWHERE} describe", "One of --status or --replication"),
    ("metadata-quorum", f"{NOWHERE} describe --status --replication", "Only one of --status"),
    ("metadata-quorum", f"{NOWHERE} describe --status --human-readable", "only supported along"),
    ("features", f"{NOWHERE} nosuch", "invalid choice: 'nosuch'"),
    ("features", f"{NOWHERE} upgrade", "You must specify at least one feature to upgrade"),
    ("features", f"{NOWHERE} upgrade --feature a", "equals sign not found"),
    ("features", f"{NOWHERE} upgrade --feature a=x", "unable to parse x as a short"),
    ("features", f"{NOWHERE} upgrade --feature a=1 --feature a=2", "specified more than once"),
    ("features", f"{NOWHERE} upgrade --release-version 9.3", "Unknown metadata.version 9.3"),
    (
        "features",
        f"{NOWHERE} version-mapping --release-version 9.9",
        "Unknown release version '9.9'",
    ),
    ("features", f"{NOWHERE} feature-dependencies --feature no=1", "Unknown feature: no"),
    ("leader-election", NOWHERE, "Missing required option(s): election-type"),
    (
        "leader-election",
        f"{NOWHERE} --election-type unclean",
        "One and only one of the following options is required",
    ),
    (
        "leader-election",
        f"{NOWHERE} --election-type unclean --topic a",
        "Missing required option(s): partition",
    ),
    ("reassign-partitions", NOWHERE, "Command must include exactly one action"),
    ("reassign-partitions", "--list", "Please specify either --bootstrap-server or"),
    (
        "reassign-partitions",
        f"{NOWHERE} --execute",
        'Missing required argument "[reassignment-json-file]"',
    ),
    (
        "reassign-partitions",
        f"{NOWHERE} --list --throttle 3",
        'can\'t be used with action "[list]"',
    ),
    ("groups", NOWHERE, "Command must include exactly one action: --list."),
    ("groups", f"{NOWHERE} --list --group-type no", "--group-type must be a valid group type."),
    ("groups", f"{NOWHERE} --list --share --consumer", 'Option "[consumer]" can\'t be used with'),
    ("groups", "--list", "--bootstrap-server"),
    ("get-offsets", "", 'Missing required argument "[bootstrap-server]"'),
    ("get-offsets", f"{NOWHERE} --time soon", "Malformed time argument soon"),
    (
        "get-offsets",
        f"{NOWHERE} --topic-partitions a --topic b",
        "--topic-partitions cannot be used with --topic or --partitions",
    ),
    ("get-offsets", f"{NOWHERE} --topic-partitions a:b", "Invalid rule specification: a:b"),
    ("get-offsets", f"{NOWHERE} --partitions a", "--partitions expects a comma separated list"),
    ("delete-records", NOWHERE, 'Missing required argument "[offset-json-file]"'),
    ("delete-records", f"{NOWHERE} --offset-json-file /nosuch", "cannot read /nosuch"),
    ("streams-groups", NOWHERE, "Command must include exactly one action: --list"),
    ("streams-groups", "--list", 'Missing required argument "[bootstrap-server]"'),
    ("streams-groups", f"{NOWHERE} --describe", "these options: [all-groups], [group]"),
    ("streams-groups", f"{NOWHERE} --describe --group a --state b", "does not take a value"),
    ("streams-groups", f"{NOWHERE} --describe --group a --members --offsets", "at most one of"),
    ("streams-groups", f"{NOWHERE} --list --verbose", "[verbose] is only for [describe]"),
    ("streams-groups", f"{NOWHERE} --list --state Sleepy", "Invalid state list 'Sleepy'"),
    (
        "streams-groups",
        f"{NOWHERE} --delete-offsets --group a",
        "[all-input-topics], [input-topic]",
    ),
    ("streams-groups", f"{NOWHERE} --reset-offsets --group a", "[execute] or [dry-run]"),
    ("streams-groups", f"{NOWHERE} --reset-offsets --group a --dry-run", "following scenarios"),
    (
        "streams-groups",
        f"{NOWHERE} --reset-offsets --group a --dry-run --to-latest",
        "reset scopes should be defined",
    ),
    ("log-dirs", NOWHERE, 'Missing required argument "[describe]"'),
    ("e2e-latency", NOWHERE, 'Missing required argument "[topic]"'),
    ("e2e-latency", f"{LATENCY} --producer-acks 0", "Please use '1' or 'all'"),
    ("e2e-latency", f"{LATENCY} --producer-acks 1 --num-headers -1", "non-negative integer"),
    ("e2e-latency", f"{NOWHERE.split()[1]} t 0 1 10", "must be a positive integer"),
    ("verifiable-producer", f"{NOWHERE} --topic t --acks 2", "invalid choice"),
    ("verifiable-consumer", f"{NOWHERE} --topic t", "arguments are required: --group-id"),
    ("verifiable-share-consumer", f"{NOWHERE} --topic t", "arguments are required: --group-id"),
    (
        "verifiable-share-consumer",
        f"{NOWHERE} --topic t --group-id g --acknowledgement-mode never",
        "invalid choice",
    ),
    ("share-groups", NOWHERE, "Command must include exactly one action: --list"),
    ("share-groups", "--list", 'Missing required argument "[bootstrap-server]"'),
    ("share-groups", f"{NOWHERE} --describe", "takes one of these options: [all-groups], [group]"),
    ("share-groups", f"{NOWHERE} --describe --group a --state b", "does not take a value"),
    ("share-groups", f"{NOWHERE} --describe --group a --members --offsets", "at most one of"),
    ("share-groups", f"{NOWHERE} --list --verbose", "Option [verbose] is only for [describe]"),
    ("share-groups", f"{NOWHERE} --list --state Sleepy", "Invalid state list 'Sleepy'"),
    ("share-groups", f"{NOWHERE} --delete", "takes the options [group] or [all-groups]"),
    ("share-groups", f"{NOWHERE} --delete-offsets --group a", "[group], [topic]"),
    ("share-groups", f"{NOWHERE} --reset-offsets --group a", "[execute] or [dry-run]"),
    ("share-groups", f"{NOWHERE} --reset-offsets --dry-run", "takes the option: [group]"),
    (
        "share-groups",
        f"{NOWHERE} --reset-offsets --group a --execute --topic t",
        "[to-datetime], [to-earliest], [to-latest]",
    ),
    ("consumer-groups", NOWHERE, "Command must include exactly one action: --list"),
    ("consumer-groups", "--list", 'Missing required argument "[bootstrap-server]"'),
    ("consumer-groups", f"{NOWHERE} --describe", "takes one of these options: [group], [all"),
    (
        "consumer-groups",
        f"{NOWHERE} --describe --group a --members --state",
        "takes at most one of these options: [members], [offsets], [state]",
    ),
    ("consumer-groups", f"{NOWHERE} --describe --group a --state b", "does not take a value"),
    ("consumer-groups", f"{NOWHERE} --list --verbose", "Option [verbose] is only for [describe]"),
    ("consumer-groups", f"{NOWHERE} --list --state Sleepy", "Invalid state list 'Sleepy'"),
    ("consumer-groups", f"{NOWHERE} --list --type share", "Invalid type list 'share'"),
    ("consumer-groups", f"{NOWHERE} --delete --group a --topic b", "use --delete-offsets"),
    ("consumer-groups", f"{NOWHERE} --delete-offsets --group a", "[group], [topic]"),
    (
        "consumer-groups",
        f"{NOWHERE} --reset-offsets --group a --topic b --to-latest --dry-run --execute",
        "only accepts one of [execute] and [dry-run]",
    ),
    (
        "consumer-groups",
        f"{NOWHERE} --reset-offsets --group a --topic b --to-latest --shift-by 1",
        'Option "[to-latest]" can\'t be used with option "[shift-by]"',
    ),
    (
        "consumer-groups",
        f"{NOWHERE} --reset-offsets --group a --topic b",
        "requires one of the following scenarios: [to-earliest]",
    ),
    (
        "consumer-groups",
        f"{NOWHERE} --reset-offsets --group a --to-latest",
        "One of the reset scopes should be defined",
    ),
    ("console-producer", NOWHERE, 'Missing required argument "[topic]"'),
    ("console-producer", "--topic a --bootstrap-server b", "it should be host:port"),
    (
        "console-producer",
        f"{NOWHERE} --topic a --property b=c --reader-property d=e",
        "Options --property and --reader-property cannot be specified together.",
    ),
    ("console-producer", f"{NOWHERE} --topic a --line-reader b.C", "There is no line reader but"),
    ("console-consumer", NOWHERE, "Exactly one of the following arguments is required"),
    ("console-consumer", f"{NOWHERE} --topic a --offset 1", "The partition is required when"),
    ("console-consumer", f"{NOWHERE} --include a --partition 1", "The topic is required when"),
    (
        "console-consumer",
        f"{NOWHERE} --topic a --partition 0 --offset -1",
        "The provided offset value '-1' is incorrect.",
    ),
    (
        "console-consumer",
        f"{NOWHERE} --topic a --partition 0 --group b",
        "Options group and partition cannot be specified together.",
    ),
    (
        "console-consumer",
        f"{NOWHERE} --topic a --group b --command-property group.id=c",
        "do not match. Detected group ids: 'b', 'c'",
    ),
    (
        "console-consumer",
        f"{NOWHERE} --topic a --from-beginning --command-property auto.offset.reset=latest",
        "Can't simultaneously specify --from-beginning and 'auto.offset.reset=latest'",
    ),
    ("console-consumer", f"{NOWHERE} --topic a --formatter b.C", "There is no formatter b.C"),
    ("producer-perf-test", f"{NOWHERE} --topic a --throughput 1 --num-records 1", "record-size"),
    (
        "producer-perf-test",
        f"{NOWHERE} --topic a --throughput -1 --num-records 0 --record-size 1",
        "--num-records should be greater than zero.",
    ),
    (
        "producer-perf-test",
        f"{NOWHERE} --topic a --throughput 0 --num-records 1 --record-size 1",
        "--throughput 0 would never send anything",
    ),
    (
        "producer-perf-test",
        "--topic a --throughput 1 --num-records 1 --record-size 1",
        "At least one of --bootstrap-server",
    ),
    (
        "producer-perf-test",
        f"{NOWHERE} --topic a --throughput 1 --num-records 1 --payload-file /nosuch",
        "cannot read /nosuch",
    ),
    ("consumer-perf-test", f"{NOWHERE} --topic a", "Exactly one of these arguments is required"),
    ("consumer-perf-test", f"{NOWHERE} --num-records 1", "[topic], [include]"),
    ("console-share-consumer", NOWHERE, "--topic is a required argument"),
    ("console-share-consumer", "--topic a", "--bootstrap-server"),
    ("console-share-consumer", f"{NOWHERE} --topic a --reject --release", "At most one of"),
    (
        "console-share-consumer",
        f"{NOWHERE} --topic a --group b --command-property group.id=c",
        "Detected group ids: 'b', 'c'",
    ),
    ("share-consumer-perf-test", NOWHERE, "--topic"),
    ("share-consumer-perf-test", f"{NOWHERE} --topic a", "Exactly one of these arguments"),
    (
        "share-consumer-perf-test",
        f"{NOWHERE} --topic a --num-records 1 --threads 0",
        "--threads has to be at least 1",
    ),
    ("transactions", NOWHERE, "COMMAND"),
    ("transactions", f"{NOWHERE} describe", "--transactional-id"),
    ("transactions", f"{NOWHERE} find-hanging", "requires either --topic or --broker-id"),
    (
        "transactions",
        f"{NOWHERE} find-hanging --broker-id 1 --partition 1",
        "The --partition argument requires --topic",
    ),
    (
        "transactions",
        f"{NOWHERE} abort --topic a --partition 0",
        "must be identified either with --start-offset",
    ),
    (
        "transactions",
        f"{NOWHERE} abort --topic a --partition 0 --producer-id 1 --producer-epoch 1",
        "Missing required argument --coordinator-epoch",
    ),
    ("cluster", "", "COMMAND"),
    ("cluster", f"unregister {NOWHERE}", "--id"),
]


@pytest.mark.parametrize(("tool", "arguments", "message"), REFUSED)
def test_a_mistake_ends_the_tool_with_1(
    tool: str, arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main = import_module(f"broker.cli.{tool.replace('-', '_')}").main
    try:
        status = main(arguments.split())
    except SystemExit as end:
        status = end.code
    assert status == 1
    captured = capsys.readouterr()
    assert message in captured.out + captured.err


@pytest.mark.parametrize("value", ["-PT1H", "-1", "-x=y", "-"])
def test_a_value_may_begin_with_a_dash(value: str) -> None:
    parser = tool_parser("topics", "A tool.")
    parser.add_argument("--value")
    parser.add_argument("--flag", action="store_true")
    parser.add_argument("--several", nargs="*")
    parser.add_argument("-s")
    told = parser.parse_args(["--flag", "--value", value, "--several", "a", "-s", "b"])
    assert (told.value, told.flag, told.several, told.s) == (value, True, ["a"], "b")


def test_a_flag_is_no_value(capsys: pytest.CaptureFixture[str]) -> None:
    parser = tool_parser("topics", "A tool.")
    parser.add_argument("--value")
    parser.add_argument("-s", action="store_true")
    for arguments in (["--value", "-s"], ["--value", "--valeu", "x"], ["--value"]):
        with pytest.raises(SystemExit):
            parser.parse_args(arguments)
        assert "--value: expected one argument" in capsys.readouterr().err


def test_a_setting_is_not_set_and_removed_at_once() -> None:
    with pytest.raises(KafkaError, match="Error due to duplicate config keys"):
        check_once({"retention.ms": "1", "segment.ms": "1"}, ["segment.bytes", "retention.ms"])
    check_once({"retention.ms": "1"}, ["segment.bytes"])


def test_nobody_there_is_said_in_words_when_the_time_is_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("default.api.timeout.ms=300\nretry.backoff.ms=20\n")
    main = import_module("broker.cli.topics").main
    assert main([*NOWHERE.split(), "--list", "--command-config", str(file)]) == 1
    said = capsys.readouterr().out
    assert said.startswith("Error while executing topic command : Timed out waiting for Metadata")
    assert "127.0.0.1:1: Connection refused" in said


def test_addresses() -> None:
    assert parse_addresses("a:1, [::1]:2") == (("a", 1), ("::1", 2))
    for text in ("", "a", "a:", ":1", "a:b"):
        with pytest.raises(KafkaError):
            parse_addresses(text)


def test_client_settings_come_from_the_properties() -> None:
    settings = admin_settings(
        None, None, {"bootstrap.servers": "a:1", "request.timeout.ms": "7", "client.id": "me"}
    )
    assert (settings.bootstrap, settings.request_timeout_ms, settings.client_id) == (
        (("a", 1),),
        7,
        "me",
    )
    assert admin_settings(None, "c:1").is_controller_bootstrap


@pytest.mark.parametrize(
    "properties",
    [{}, {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL"}, {"bootstrap.servers": "a"}],
)
def test_client_settings_that_cannot_be_followed_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(KafkaError):
        admin_settings(None, None, properties)


def test_additions_keep_commas_inside_brackets() -> None:
    assert parse_additions("a=1,b=[x,y],c=,d=e.f") == {"a": "1", "b": "x,y", "c": "", "d": "e.f"}
    assert parse_additions("SCRAM=[iterations=5,password=p]") == {
        "SCRAM": "iterations=5,password=p"
    }
    with pytest.raises(ToolFailed):
        parse_additions("a=1,b")


def test_assignments_of_replicas() -> None:
    assert parse_assignment("") == []
    assert parse_assignment("1:2,2:3") == [[1, 2], [2, 3]]
    for text in ("1:1", "1,1:2", "x"):
        with pytest.raises(ToolFailed):
            parse_assignment(text)


def test_topic_settings() -> None:
    assert parse_topic_configs(["a=b", " c = d "]) == {"a": "b", "c": "d"}
    for text in ("a", "a=", "=b", "a=b=c"):
        with pytest.raises(ToolFailed):
            parse_topic_configs([text])


def test_topics_are_meant_by_a_pattern() -> None:
    pattern = topic_pattern("al.*,beta")
    assert [name for name in ("alpha", "beta", "beta2", "gamma") if pattern.fullmatch(name)] == [
        "alpha",
        "beta",
    ]
    with pytest.raises(ToolFailed):
        topic_pattern("(")


@pytest.mark.parametrize(
    "content",
    [
        {"partitions": []},
        {"partitions": [{"topic": "a", "partition": 0, "replicas": []}]},
        {"partitions": [{"topic": "a", "partition": 0, "replicas": [1, 1]}]},
        {"partitions": [{"topic": "a", "partition": 0, "replicas": [1]}] * 2},
        {"partitions": [{"topic": "a", "partition": 0, "replicas": [1], "log_dirs": []}]},
        {"partitions": [{"topic": "a", "partition": 0, "replicas": [1], "log_dirs": None}]},
        {"partitions": [{"topic": "a", "partition": 0, "replicas": [1], "log_dirs": 1}]},
        {"partitions": [{"topic": "a", "partition": 0, "replicas": [True]}]},
        {"partitions": [{"topic": "a", "partition": True, "replicas": [1]}]},
        {"partitions": [{"topic": "a", "partition": 2**31, "replicas": [1]}]},
        {"partitions": [{"topic": "a", "partition": 0, "replicas": [2**31]}]},
        {"partitions": [{"topic": "a", "replicas": [1]}]},
        {"version": 2, "partitions": []},
        [],
    ],
)
def test_a_reassignment_file_that_cannot_be_meant_is_refused(
    content: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "reassignment.json"
    file.write_text(json.dumps(content))
    main = import_module("broker.cli.reassign_partitions").main
    assert main([*NOWHERE.split(), "--execute", "--reassignment-json-file", str(file)]) == 1
    assert capsys.readouterr().out


def test_every_kind_of_entity_has_a_name_of_its_own() -> None:
    assert len(set(ENTITY_TYPES)) == len(ENTITY_TYPES)


NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "CLIENTS://127.0.0.1:1,INTERNAL://127.0.0.1:2,CONTROLLER://127.0.0.1:3",
    "inter.broker.listener.name": "INTERNAL",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": (
        "CLIENTS:PLAINTEXT,INTERNAL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
    ),
    "controller.quorum.bootstrap.servers": "127.0.0.1:3",
    "log.dirs": "data",
    "listener.name.internal.sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.internal.scram-sha-512.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="node" password="secret";'
    ),
    "listener.name.controller.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="node" password="secret" user_node="secret";'
    ),
}


def test_a_tool_with_the_file_of_a_node_connects_as_the_node_does() -> None:
    """`metadata-quorum add-controller` takes no other file."""
    assert admin_settings("127.0.0.1:1", None, NODE).security.mechanism == "SCRAM-SHA-512"
    assert admin_settings(None, "127.0.0.1:1", NODE).security.mechanism == "PLAIN"


def test_a_security_protocol_in_the_file_of_a_node_is_the_tool_s() -> None:
    own = {**NODE, "security.protocol": "PLAINTEXT"}
    assert admin_settings("127.0.0.1:1", None, own).security.mechanism == ""
