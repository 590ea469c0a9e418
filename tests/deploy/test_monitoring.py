"""The alerts and objectives of deploy/monitoring: each fires for its cause, and none otherwise."""

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer

from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import encode_request
from common.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from millstream.testing import LocalBroker
from tests.lib.dashboards import DASHBOARDS, text_of
from tests.lib.prometheus import program
from tests.lib.raw_kafka import RawConnection
from tests.lib.scraped_metrics import metrics_at
from tests.lib.waiting import until

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "deploy" / "monitoring"
RULES = ("alerts.yaml", "slo.yaml")
IDLE = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"

QUIET = {
    'up{job="millstream-brokers", instance="b1"}': "1x400",
    'up{job="millstream-lag", instance="m"}': "1x400",
    "kafka_controller_kafkacontroller_activecontrollercount": "1x400",
    "kafka_controller_kafkacontroller_offlinepartitionscount": "0x400",
    "kafka_server_replicamanager_underminisrpartitioncount": "0x400",
    "kafka_server_replicamanager_underreplicatedpartitions": "0x400",
    'kafka_log_logmanager_offlinelogdirectorycount{instance="b1"}': "0x400",
    "kafka_controller_controllerstats_uncleanleaderelections_total": "0x400",
    f'{IDLE}{{instance="b1"}}': "0.9x400",
    'burrow_kafka_consumer_status{group="packers"}': "1x400",
    'kafka_consumergroup_group_max_lag_seconds{group="packers"}': "2x400",
    "millstream_lag_failed_looks_total": "0x400",
    "kminion_end_to_end_messages_lost_total": "0x400",
    "kminion_end_to_end_messages_produced_failed_total": "0x400",
    "kminion_end_to_end_messages_produced_total": "0+75x400",
    'kminion_end_to_end_roundtrip_latency_seconds_bucket{le="0.1"}': "0+75x400",
    "kminion_end_to_end_roundtrip_latency_seconds_count": "0+75x400",
    'kafka_connect_connector_status{connector="orders", state="failed"}': "0x400",
    'kafka_connect_connector_task_status{connector="orders", task="0", state="failed"}': "0x400",
}
"""The series of a cluster without trouble, a value a minute."""

CASES: dict[str, tuple[str, str, dict[str, str]]] = {
    "BrokerDown": ('up{job="millstream-brokers", instance="b1"}', "0x10", {"instance": "b1"}),
    "NoActiveController": ("kafka_controller_kafkacontroller_activecontrollercount", "0x10", {}),
    "PartitionsOffline": (
        "kafka_controller_kafkacontroller_offlinepartitionscount", "2x10", {},
    ),
    "PartitionsUnderMinIsr": (
        "kafka_server_replicamanager_underminisrpartitioncount", "1x10", {},
    ),
    "PartitionsUnderReplicated": (
        "kafka_server_replicamanager_underreplicatedpartitions", "1x10", {},
    ),
    "LogDirectoryOffline": (
        'kafka_log_logmanager_offlinelogdirectorycount{instance="b1"}', "1x10", {"instance": "b1"},
    ),
    "UncleanLeaderElection": (
        "kafka_controller_controllerstats_uncleanleaderelections_total", "0x5 1x5", {},
    ),
    "BrokerBusy": (f'{IDLE}{{instance="b1"}}', "0.05x20", {"instance": "b1"}),
    "GroupStopped": (
        'burrow_kafka_consumer_status{group="packers"}', "3x10", {"group": "packers"},
    ),
    "GroupFarBehind": (
        'kafka_consumergroup_group_max_lag_seconds{group="packers"}', "600x10",
        {"group": "packers"},
    ),
    "LagUnknown": ("millstream_lag_failed_looks_total", "0+4x10", {}),
    "ProbeMessagesLost": ("kminion_end_to_end_messages_lost_total", "0x5 1x5", {}),
    "ProbeFails": ("kminion_end_to_end_messages_produced_failed_total", "0+60x10", {}),
    "ConnectorFailed": (
        'kafka_connect_connector_status{connector="orders", state="failed"}', "1x10",
        {"connector": "orders", "state": "failed"},
    ),
    "ConnectorTaskFailed": (
        'kafka_connect_connector_task_status{connector="orders", task="0", state="failed"}', "1x10",
        {"connector": "orders", "task": "0", "state": "failed"},
    ),
    "ErrorsUsedUpFast": (
        "kminion_end_to_end_messages_lost_total", "0+2x10", {"slo": "probe-availability"},
    ),
    "ErrorsUsedUp": (
        'kminion_end_to_end_roundtrip_latency_seconds_bucket{le="0.1"}', "0+70x400",
        {"slo": "probe-latency"},
    ),
}  # fmt: skip
"""By alert, the series that differs from the quiet ones, and the labels of the alert."""


def rules(name: str) -> list[dict[str, Any]]:
    content = yaml.safe_load((FOLDER / name).read_text())
    return [rule for group in content["groups"] for rule in group["rules"]]


def alerts() -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for name in RULES for rule in rules(name) if "alert" in rule}


def run(promtool: str, folder: Path, test: dict[str, Any]) -> None:
    """Have promtool run a test; what is wrong is in the message of the failure.

    promtool compares annotations too, so they are taken out of a copy of the rules.
    """
    for name in RULES:
        content = yaml.safe_load((FOLDER / name).read_text())
        for group in content["groups"]:
            for rule in group["rules"]:
                rule.pop("annotations", None)
        (folder / name).write_text(yaml.safe_dump(content))
    tests = {"rule_files": [*RULES], "evaluation_interval": "1m", "tests": [test]}
    (folder / "tests.yaml").write_text(yaml.safe_dump(tests))
    ended = subprocess.run(
        [promtool, "test", "rules", "tests.yaml"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def series(changed: dict[str, str]) -> list[dict[str, str]]:
    return [{"series": name, "values": values} for name, values in {**QUIET, **changed}.items()]


def test_every_alert_has_a_case() -> None:
    assert alerts().keys() == CASES.keys()


def test_every_alert_says_what_to_do() -> None:
    for name, rule in alerts().items():
        assert rule["labels"]["severity"] in {"critical", "warning"}, name
        assert rule["annotations"].keys() == {"summary", "action"}, name


def queries() -> list[str]:
    of_rules = [rule["expr"] for name in RULES for rule in rules(name)]
    panels = [panel for _, panels in DASHBOARDS.values() for panel in panels]
    return [*of_rules, *(query for panel in panels for query in panel.queries)]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_is_that_of_the_table(name: str) -> None:
    file, text = FOLDER / "dashboards" / name, text_of(*DASHBOARDS[name])
    if os.environ.get("REWRITE"):
        file.write_text(text)
    assert file.read_text() == text


def test_every_metric_of_rules_and_dashboards_is_one_of_ours() -> None:
    known = set(
        re.findall(r"^\| `(\w+)`", (ROOT / "docs" / "metrics.md").read_text(), re.MULTILINE)
    )
    known |= {"up", *(rule["record"] for rule in rules("slo.yaml") if "record" in rule)}
    for query in queries():
        text = re.sub(r'"[^"]*"|\{[^}]*\}', "", query)
        for metric in re.findall(r"\b(?:kafka|kminion|burrow|millstream|process|up)[\w:]*", text):
            short = re.sub("_(bucket|count|sum)$", "", metric)
            assert metric in known or short in known, (query, metric)


def test_promtool_reads_every_query_of_the_dashboards(tmp_path: Path) -> None:
    promtool = program("promtool")
    asked = [query.replace("$__rate_interval", "5m") for query in queries()]
    read = [{"record": f"a:{number}", "expr": query} for number, query in enumerate(asked)]
    content = {"groups": [{"name": "dashboards", "rules": read}]}
    (tmp_path / "queries.yaml").write_text(yaml.safe_dump(content))
    ended = subprocess.run(
        [promtool, "check", "rules", "queries.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_promtool_takes_the_rules_and_the_configuration() -> None:
    promtool = program("promtool")
    for command in (["rules", *RULES], ["config", "prometheus.yaml"]):
        ended = subprocess.run(
            [promtool, "check", *command], cwd=FOLDER, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr


def test_nothing_fires_in_six_quiet_hours(tmp_path: Path) -> None:
    test = {
        "interval": "1m",
        "input_series": series({}),
        "alert_rule_test": [
            {"alertname": name, "eval_time": at, "exp_alerts": []}
            for name in alerts()
            for at in ("5m", "1h", "6h")
        ],
    }
    run(program("promtool"), tmp_path, test)


@pytest.mark.parametrize("name", CASES)
def test_an_alert_fires_for_its_cause(tmp_path: Path, name: str) -> None:
    changed, values, labels = CASES[name]
    minutes = 150 if name == "ErrorsUsedUp" else 20 if name == "BrokerBusy" else 10
    rule = alerts()[name]
    test = {
        "interval": "1m",
        "input_series": series({changed: values}),
        "alert_rule_test": [
            {
                "alertname": name,
                "eval_time": f"{minutes}m",
                "exp_alerts": [{"exp_labels": {**rule["labels"], **labels, **_job(changed)}}],
            }
        ],
    }
    run(program("promtool"), tmp_path, test)


def _job(changed: str) -> dict[str, str]:
    found = re.search(r'job="([^"]+)"', changed)
    return {} if found is None else {"job": found[1]}


@contextmanager
def kept_busy(broker: LocalBroker) -> Iterator[None]:
    """Always have questions wait in a broker that are short, and long to answer.

    To find the first record of a time, it decodes a batch of ten thousand.
    """
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 1000})
    for _ in range(10_000):
        producer.produce("many", b"", partition=0)
    producer.flush()
    topic = ListOffsetsTopic(
        name="many", partitions=[ListOffsetsPartition(partition_index=0, timestamp=0)]
    )
    request = ListOffsetsRequest(replica_id=-1, topics=[topic])
    question = encode_request(ApiKey.LIST_OFFSETS, 7, 0, "busy", request)
    connection = RawConnection(broker.bootstrap_servers, timeout_seconds=60)
    is_enough = threading.Event()

    def ask() -> None:
        connection.send(question * 100)
        while not is_enough.is_set():
            connection.receive_frame()
            connection.send(question)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        is_enough.set()
        asking.join()
        connection.socket.close()


@pytest.mark.slow
def test_a_broker_that_is_never_idle_is_busy(tmp_path: Path) -> None:
    """Its numbers, before and meanwhile, are those of ten minutes and more."""
    promtool, seen = program("promtool"), []

    def idle() -> float:
        seen.append(metrics_at(broker.http_url)[IDLE])
        return seen[-1]

    with LocalBroker() as broker:
        until(lambda: idle() > 0.1)
        before = seen[-1]
        with kept_busy(broker):
            until(lambda: idle() < 0.1, 240, shown=lambda: seen[-1])
    name, labels = "BrokerBusy", {"instance": "b1", "severity": "warning"}
    test = {
        "interval": "1m",
        "input_series": series({f'{IDLE}{{instance="b1"}}': f"{before}x15 {seen[-1]}x15"}),
        "alert_rule_test": [
            {"alertname": name, "eval_time": "15m", "exp_alerts": []},
            {"alertname": name, "eval_time": "30m", "exp_alerts": [{"exp_labels": labels}]},
        ],
    }
    run(promtool, tmp_path, test)
