"""`millstream up` as a person uses it: real processes, and none is left."""

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from common.credentials.jaas import parse_jaas
from common.credentials.translation import librdkafka_security
from common.process.properties import parse_properties
from millstream.testing import RunningBrokers
from tests.lib.process_tree import processes_below
from tests.lib.rest_calls import JSON, RestCalls, records_type
from tests.lib.stack_command import Command
from tests.lib.waiting import until

pytestmark = pytest.mark.slow

SEEDS = """
topics:
  - lines:2
  - name: fruit
    config: {retention.ms: 3600000}
    value:
      type: AVRO
      schema: {type: record, name: Fruit, fields: [{name: name, type: [string, "null"]}]}
    records:
      - {key: a, value: {name: apple}}
schemas:
  - {subject: other-value, schema: '"string"'}
"""


def all_of(stack: dict[str, Any]) -> list[int]:
    """Return the processes of a stack."""
    return [stack["pid"], *processes_below(stack["pid"])]


def is_there(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def send(servers: str, topic: str, value: str) -> None:
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, value.encode())
    assert producer.flush(60) == 0


def values_of(servers: str, topic: str, count: int) -> list[bytes]:
    settings = {"bootstrap.servers": servers, "group.id": "reader", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe([topic])
    try:
        found: list[bytes] = []
        deadline = time.monotonic() + 60
        while len(found) < count and time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                found.append(message.value() or b"")
        return found
    finally:
        consumer.close()


def test_a_whole_stack_is_ready_with_its_seeds_and_found_again(
    millstream: Command, tmp_path: Path
) -> None:
    seeds = tmp_path / "seeds.yaml"
    seeds.write_text(SEEDS)
    stack = millstream.up("--ephemeral", "--seed", str(seeds))
    assert list(stack["addresses"]) == ["broker", "registry", "rest-proxy", "connect", "console"]
    urls = stack["environment"]
    assert RestCalls(urls["SCHEMA_REGISTRY_URL"]).get("/subjects").body == [
        "fruit-value",
        "other-value",
    ]
    rest = RestCalls(urls["KAFKA_REST_URL"])
    assert len(rest.get("/topics/lines/partitions").body) == 2
    told = {"format": "avro", "auto.offset.reset": "earliest"}
    instance = rest.post("/consumers/g", told).body["base_uri"]
    rest.post(f"{instance}/subscription", {"topics": ["fruit"]})
    (record,) = rest.get(f"{instance}/records", Accept=records_type("avro")).body
    assert (record["key"], record["value"]) == ("a", {"name": {"string": "apple"}})
    assert RestCalls(urls["CONNECT_URL"]).get("/connectors").body == []
    console = RestCalls(stack["addresses"]["console"])
    assert console.get("/health/ready").body == {"status": "ready"}
    assert console.get("/api/stack").body["addresses"] == stack["addresses"]
    assert console.get("/api/connectors").body["clusters"][0]["error"] == ""
    send(urls["KAFKA_BOOTSTRAP_SERVERS"], "lines", "hello")

    again = millstream("up", "--json")
    assert f"process {stack['pid']}" in again.stderr
    assert json.loads(again.stdout)["addresses"] == stack["addresses"]
    taken = stack["addresses"]["console"].rpartition(":")[2]
    refused = millstream("up", "--name", "other", "--offset-ports", str(int(taken) - 8080))
    assert refused.returncode == 1
    pid = stack["parts"]["console"]["pid"]
    assert f"port {taken} of console is taken by process {pid}" in refused.stderr
    assert "ready" in millstream("status").stdout
    assert "millstream broker" in millstream("logs", "broker-1", "-n", "50").stdout
    assert millstream("logs", "kitchen").returncode == 1

    assert millstream("stop", "kitchen").returncode == 1
    assert millstream("stop", "broker-1", "--kill").stderr == "broker-1 is stopped\n"
    assert "stopped: broker-1" in millstream("status").stdout
    assert millstream("start", "broker-1").stderr == "broker-1 is ready\n"
    assert "stopped" not in millstream("status").stdout
    running = all_of(stack)
    assert len(running) > 5
    assert millstream("down").returncode == 0
    until(lambda: not any(map(is_there, running)), 5)
    assert millstream("status").returncode == 3
    assert millstream("down").returncode == 0


@pytest.mark.parametrize("ending", ["down", "kill"])
def test_data_is_there_at_the_next_up_and_no_process_is_left(
    millstream: Command, tmp_path: Path, ending: str
) -> None:
    has_registry = ending == "down"
    parts = "broker,registry" if has_registry else "broker"
    data = ("--data", str(tmp_path / "data"), "--only", parts)
    stack = millstream.up(*data)
    servers = stack["environment"]["KAFKA_BOOTSTRAP_SERVERS"]
    send(servers, "lines", "before")
    if has_registry:
        registry = RestCalls(stack["environment"]["SCHEMA_REGISTRY_URL"])
        assert registry.post("/subjects/s/versions", {"schema": '"string"'}, JSON).status == 200
    running = all_of(stack)
    if ending == "down":
        millstream("down")
    else:
        os.kill(stack["pid"], signal.SIGKILL)
    until(lambda: not any(map(is_there, running)), 20)
    stack = millstream.up(*data)
    servers = stack["environment"]["KAFKA_BOOTSTRAP_SERVERS"]
    send(servers, "lines", "after")
    assert sorted(values_of(servers, "lines", 2)) == [b"after", b"before"]
    if has_registry:
        registry = RestCalls(stack["environment"]["SCHEMA_REGISTRY_URL"])
        assert registry.get("/subjects").body == ["s"]


@pytest.mark.parametrize("moment", ["plan.json", "state.json", "data/broker-1"])
def test_killed_at_its_start_leaves_no_process_and_the_next_up_works(
    tmp_path: Path, millstream: Command, moment: str
) -> None:
    """The moment is when a file of the stack is there."""
    home = tmp_path / "home"
    arguments = ["up", "--any-port", "--only", "broker,rest-proxy"]
    starting = millstream.begin(*arguments)
    until(lambda: (home / "stacks" / "default" / moment).exists(), 30)
    (supervisor,) = [pid for pid in processes_of(home) if " -m stack " in command_of(pid)] or [0]
    if supervisor:
        os.kill(supervisor, signal.SIGKILL)
    else:  # It has not been started yet.
        starting.kill()
    # The command does not wait two minutes for a stack that has ended. It succeeds if everything
    # was ready just before.
    starting.wait(30)
    until(lambda: not processes_of(home), 20, shown=lambda: processes_of(home))
    stack = millstream.up("--only", "broker,rest-proxy")
    send(stack["environment"]["KAFKA_BOOTSTRAP_SERVERS"], "lines", "hello")
    millstream("down")
    until(lambda: not processes_of(home), 20, shown=lambda: processes_of(home))


def processes_of(home: Path) -> list[int]:
    """Return the processes that were started for stacks of a folder."""
    told = f"MILLSTREAM_HOME={home}".encode()
    found = []
    for each in Path("/proc").iterdir():
        with suppress(OSError):
            if each.name.isdigit() and told in (each / "environ").read_bytes().split(b"\0"):
                found.append(int(each.name))
    return [pid for pid in found if is_there(pid)]


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def test_stopped_at_its_start_it_logs_no_stack_trace(millstream: Command, tmp_path: Path) -> None:
    folder = tmp_path / "home" / "stacks" / "default"
    begun = millstream.begin("up", "--any-port", "--ephemeral", "--brokers", "3")
    until(lambda: "starting" in millstream("status").stdout)
    assert millstream("down").returncode == 0
    assert begun.wait(60) == 1
    log = (folder / "logs" / "stack.log").read_text()
    assert log.endswith("stack stopped on a signal\n")
    assert "Traceback" not in log


def test_a_secured_stack_lets_in_who_has_its_file(millstream: Command, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.yaml"
    seeds.write_text("topics: [lines]\n")
    told = ("--security", "sasl_ssl", "--only", "broker,registry", "--seed", str(seeds))
    shown = millstream.up(*told)["environment"]
    servers, file = shown["KAFKA_BOOTSTRAP_SERVERS"], shown["MILLSTREAM_COMMAND_CONFIG"]
    assert Path(file).stat().st_mode & 0o077 == 0
    home = tmp_path / "home" / "stacks" / "default"
    assert home.stat().st_mode & 0o077 == 0
    for each in home.rglob("*"):
        assert each.stat().st_mode & 0o077 == 0 or each.name == "up.lock", each
    where = ("topics", "--bootstrap-server", servers, "--list", "--command-config")
    assert "lines" in millstream(*where, file).stdout
    wrong = tmp_path / "wrong.properties"
    password = parse_jaas(parse_properties(Path(file).read_text())["sasl.jaas.config"]).options
    wrong.write_text(Path(file).read_text().replace(password["password"], "another"))
    assert millstream(*where, str(wrong)).returncode != 0
    client = librdkafka_security(parse_properties(Path(file).read_text()))
    kcat = Path(shown["KCAT_CONFIG"]).read_text()
    assert kcat == "".join(f"{name}={value}\n" for name, value in client.items())
    assert millstream("down").returncode == 0
    again = millstream.up(*told)["environment"]["KAFKA_BOOTSTRAP_SERVERS"]
    listed = millstream("topics", "--bootstrap-server", again, "--list", "--command-config", file)
    assert "lines" in listed.stdout, "the same user after a restart"


def test_two_ups_at_the_same_moment_are_one_stack(millstream: Command) -> None:
    arguments = ("--ephemeral", "--only", "broker")
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(lambda _: millstream.up(*arguments), range(2))
    assert first["pid"] == second["pid"]
    assert first["addresses"] == second["addresses"]


def test_a_program_that_dies_is_started_again(millstream: Command) -> None:
    stack = millstream.up("--ephemeral", "--only", "broker,rest-proxy")
    for part in ("broker-1", "rest-proxy"):
        os.kill(stack["parts"][part]["pid"], signal.SIGKILL)

    def are_new() -> bool:
        now = millstream.status()
        pids = [now["parts"][part]["pid"] for part in ("broker-1", "rest-proxy")]
        old = [stack["parts"][part]["pid"] for part in ("broker-1", "rest-proxy")]
        return bool(now["is_ready"]) and None not in pids and not set(pids) & set(old)

    until(are_new, 60)
    rest = RestCalls(stack["environment"]["KAFKA_REST_URL"])
    sent = rest.post("/topics/t", {"records": [{"value": 1}]}, records_type("json"))
    assert sent.body["offsets"][0]["error"] is None


def test_a_part_that_hangs_is_not_ready(millstream: Command) -> None:
    stack = millstream.up("--ephemeral", "--only", "broker,registry,console")
    pid = stack["parts"]["registry"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    until(lambda: not millstream.status()["is_ready"], 60)
    assert "does not answer" in millstream.status()["parts"]["registry"]["state"]
    console = RestCalls(stack["parts"]["console"]["address"])
    assert console.get("/health/ready").body["detail"] == "waiting for: registry"
    os.kill(pid, signal.SIGCONT)
    until(lambda: millstream.status()["is_ready"], 60)


def test_a_laptop_that_sleeps_goes_on(millstream: Command) -> None:
    """All processes are stopped for longer than any session lasts."""
    stack = millstream.up("--ephemeral")
    running = all_of(stack)
    rest = RestCalls(stack["environment"]["KAFKA_REST_URL"])
    instance = rest.post("/consumers/g", {"auto.offset.reset": "earliest"}).body["base_uri"]
    rest.post("/topics/t", {"records": [{"value": "MQ=="}]}, records_type("binary"))
    rest.post(f"{instance}/subscription", {"topics": ["t"]})
    assert len(rest.get(f"{instance}/records").body) == 1
    for pid in running:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(11)  # Not to wait for anything: so long the laptop sleeps, longer than a session.
    for pid in running:
        os.kill(pid, signal.SIGCONT)
    rest.post("/topics/t", {"records": [{"value": "Mg=="}]}, records_type("binary"))

    def is_read() -> bool:
        answer = rest.get(f"{instance}/records")
        return answer.status == 200 and "Mg==" in [each["value"] for each in answer.body]

    until(is_read)
    connect = RestCalls(stack["environment"]["CONNECT_URL"])
    until(lambda: connect.get("/connectors").status == 200, 60)
    assert millstream.status()["is_ready"]
    assert [pid for pid in running if not is_there(pid)] == []


def test_seeds_that_cannot_be_made_end_the_stack_with_their_reason(
    millstream: Command, tmp_path: Path
) -> None:
    seeds = tmp_path / "seeds.yaml"
    seeds.write_text("topics: [{name: fruit, replicas: 3}]")
    done = millstream("up", "--any-port", "--ephemeral", "--only", "broker", "--seed", str(seeds))
    assert done.returncode == 1
    assert "replication factor of 3" in done.stderr
    assert millstream("status").returncode == 3


def test_faults_are_armed_in_a_stack_that_is_started_for_tests(millstream: Command) -> None:
    arguments = ("--ephemeral", "--only", "broker")
    stack = millstream.up(*arguments, "--testing", "--brokers", "2")
    urls = stack["environment"]["KAFKA_CONTROL_URLS"].split(",")
    assert len(urls) == 2
    with RunningBrokers(urls) as brokers:
        rule = brokers.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", topic="lines").times(1)
        send(stack["addresses"]["broker"], "lines", "one")
        assert rule.hits >= 1
        assert brokers.requests.count(api="Produce", topic="lines") >= 2


def test_a_stack_without_testing_has_no_faults(millstream: Command) -> None:
    stack = millstream.up("--ephemeral", "--only", "broker")
    assert "KAFKA_CONTROL_URLS" not in stack["environment"]
    again = millstream("up", "--only", "broker", "--testing")
    assert again.returncode != 0
    assert "runs already, without this: --testing" in again.stderr
