"""Grafana's dashboards of deploy/monitoring, made from a table of panels."""

import json
from typing import Any, NamedTuple

WIDTH, HEIGHT, PER_ROW = 8, 7, 3
PROMETHEUS = {"type": "prometheus", "uid": "${datasource}"}


_TOPICS = "kafka_server_brokertopicmetrics_"


class Panel(NamedTuple):
    """One diagram: its unit in Grafana's words, its queries and the legend of their lines."""

    title: str
    unit: str
    legend: str
    queries: tuple[str, ...]


def _by_topic(name: str) -> str:
    return _rate(f'{_TOPICS}{name}_total{{topic!=""}}', "topic")


def _rate(name: str, by: str = "") -> str:
    return f"sum(rate({name}[$__rate_interval]))" + (f" by ({by})" if by else "")


_REQUESTS = "kafka_network_requestmetrics_"
_RAFT = "kafka_server_raftmetrics_"
_PROBE = "kminion_end_to_end_"
CLUSTER = [
    Panel("Brokers that answer", "none", "", ('sum(up{job="millstream-brokers"})',)),
    Panel(
        "Partitions in trouble",
        "none",
        "{{__name__}}",
        (
            "sum(kafka_controller_kafkacontroller_offlinepartitionscount)",
            "sum(kafka_server_replicamanager_underminisrpartitioncount)",
            "sum(kafka_server_replicamanager_underreplicatedpartitions)",
        ),
    ),
    Panel(
        "Active controllers",
        "none",
        "",
        ("sum(kafka_controller_kafkacontroller_activecontrollercount)",),
    ),
    Panel("Records in", "cps", "{{topic}}", (_by_topic("messagesin"),)),
    Panel("Bytes in", "Bps", "{{topic}}", (_by_topic("bytesin"),)),
    Panel("Bytes out", "Bps", "{{topic}}", (_by_topic("bytesout"),)),
    Panel("Requests", "reqps", "{{request}}", (_rate(f"{_REQUESTS}requests_total", "request"),)),
    Panel(
        "Time of requests, 99 %",
        "ms",
        "{{request}} {{instance}}",
        (f'{_REQUESTS}totaltimems{{quantile="0.99", request=~"Produce|FetchConsumer|Metadata"}}',),
    ),
    Panel(
        "Parts of Produce, 99 %",
        "ms",
        "{{__name__}} {{instance}}",
        tuple(
            f'{_REQUESTS}{part}timems{{quantile="0.99", request="Produce"}}'
            for part in ("requestqueue", "local", "remote", "responsequeue", "responsesend")
        ),
    ),
    Panel(
        "Idle share of the loop",
        "percentunit",
        "{{instance}}",
        ("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",),
    ),
    Panel(
        "Connections",
        "none",
        "{{instance}} {{listener}}",
        ("kafka_server_socket_server_metrics_connection_count",),
    ),
    Panel("Size of logs", "bytes", "{{topic}}", ("sum(kafka_log_log_size) by (topic)",)),
    Panel("Changes of in-sync sets", "cps", "{{instance}}", tuple(
        _rate(f"kafka_server_replicamanager_isr{kind}_total", "instance")
        for kind in ("shrinks", "expands")
    )),
    Panel("Epoch of the quorum", "none", "{{instance}}", (f"{_RAFT}current_epoch",)),
    Panel("Metadata not replicated", "none", "{{instance}}", (
        f"scalar(max({_RAFT}log_end_offset)) - {_RAFT}log_end_offset",
    )),
    Panel("Memory", "bytes", "{{instance}}", ("process_resident_memory_bytes",)),
]  # fmt: skip
GROUPS = [
    Panel("Records behind", "none", "{{consumergroup}}", ("kafka_consumergroup_lag_sum",)),
    Panel("Seconds behind", "s", "{{group}}", ("kafka_consumergroup_group_max_lag_seconds",)),
    Panel("State: 1 OK, 2 WARN, 3 ERR", "none", "{{group}}", ("burrow_kafka_consumer_status",)),
    Panel("Members", "none", "{{consumergroup}}", ("kafka_consumergroup_members",)),
    Panel("Commits", "cps", "{{consumergroup}} {{topic}}", (
        "rate(kafka_consumergroup_current_offset_sum[$__rate_interval])",
    )),
    Panel("Records written", "cps", "{{topic}}", (
        "sum(rate(kafka_topic_partition_current_offset[$__rate_interval])) by (topic)",
    )),
    Panel("Way of the probe, 99 %", "s", "{{__name__}}", tuple(
        f"histogram_quantile(0.99, {_rate(f'{_PROBE}{name}_latency_seconds_bucket', 'le')})"
        for name in ("produce", "roundtrip", "offset_commit")
    )),
    Panel("Messages of the probe", "cps", "{{__name__}}", tuple(
        _rate(f"{_PROBE}messages_{name}_total") for name in ("produced", "received", "lost")
    )),
    Panel("Errors of the objectives in an hour", "percentunit", "{{slo}}", (
        "millstream:slo_errors:ratio_rate1h",
    )),
]  # fmt: skip
DASHBOARDS = {
    "cluster.json": ("Millstream: cluster", CLUSTER),
    "groups.json": ("Millstream: groups and probe", GROUPS),
}


def text_of(title: str, panels: list[Panel]) -> str:
    """Return the file of a dashboard."""
    source = {"name": "datasource", "type": "datasource", "query": "prometheus"}
    content: dict[str, Any] = {
        "title": title,
        "uid": title.lower().replace(":", "").replace(" ", "-"),
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [source]},
        "panels": [_panel(number, panel) for number, panel in enumerate(panels)],
    }
    return json.dumps(content, indent=1) + "\n"


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(number, PER_ROW)
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": PROMETHEUS,
        "gridPos": {"x": WIDTH * column, "y": HEIGHT * row, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + at),
                "datasource": PROMETHEUS,
                "expr": query,
                "legendFormat": panel.legend or "__auto",
            }
            for at, query in enumerate(panel.queries)
        ],
    }
