"""A real Prometheus scrapes a real cluster: dashboards have data, alerts fire for what happens.

The waits of the rules are cut to two seconds, and `GroupFarBehind` counts from ten seconds on.
`BrokerBusy` alone keeps its ten minutes: where many processes share two processors, these brokers
are busy now and then. tests/deploy/test_monitoring.py keeps a broker busy, and fires it.
"""

import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiokafka
import pytest
import yaml
from confluent_kafka.admin import AdminClient, NewTopic

from millstream.testing import LocalCluster
from tests.connect.worker.test_raising_plugins import PLUGINS, config
from tests.interop.lag.test_lag import EXPORTER, is_ready, served
from tests.interop.log.test_failed_directory import ClusterOfTwoDisks
from tests.interop.programs.test_public_dashboards import ACTIVE_CONTROLLER, BROKERS, QUORUM
from tests.lib.connect_worker import ConnectWorker
from tests.lib.prometheus import program
from tests.lib.replicated_load import Load
from tests.lib.stock_clients import commit_offsets
from tests.lib.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

PATIENCE_SECONDS = 180.0
TRAFFIC = 'sum(irate(kafka_server_brokertopicmetrics_bytesin_total{topic!=""}[5m])) > 0'
FOLDER = Path(__file__).parent.parent.parent.parent / "deploy" / "monitoring"
NEEDS_LONG = "BrokerBusy"
REPLICAS = {"orders": [[1, 2, 3]] * 6, "strict": [[1, 2, 3]], "alone": [[3]], "careless": [[2, 3]]}
SETTINGS = {
    "strict": {"min.insync.replicas": "3"},
    "careless": {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"},
}
"""What the topics are for: one replica fewer is too few, the only one, a leader at any price."""


class Prometheus:
    """A server that asks every second, with the rules of deploy/monitoring and short waits."""

    def __init__(self, url: str) -> None:
        self._url = url

    def get(self, path: str, **query: str) -> Any:
        arguments = urllib.parse.urlencode(query)
        with urllib.request.urlopen(f"{self._url}/api/v1/{path}?{arguments}") as answer:
            return json.load(answer)["data"]

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready"):
                return True
        except (urllib.error.URLError, ConnectionError):
            return False

    def firing(self) -> set[str]:
        """Return the alerts that fire, but for those of a machine that is too slow."""
        return {
            each["labels"]["alertname"]
            for each in self.get("alerts")["alerts"]
            if each["state"] == "firing" and each["labels"].get("slo") != "probe-latency"
        }

    def wait_for(self, *alerts: str) -> None:
        until(
            lambda: set(alerts) <= self.firing(),
            PATIENCE_SECONDS,
            shown=lambda: f"{alerts} are awaited, {self.firing()} fire",
        )

    def has_data(self, expression: str) -> bool:
        return bool(self.get("query", query=expression)["result"])


def hasty_alerts() -> dict[str, Any]:
    """Return the alerts with waits of two seconds."""
    content: dict[str, Any] = yaml.safe_load((FOLDER / "alerts.yaml").read_text())
    for rule in (rule for group in content["groups"] for rule in group["rules"]):
        if "for" in rule and rule["alert"] != NEEDS_LONG:
            rule["for"] = "2s"
        if rule["alert"] == "GroupFarBehind":
            rule["expr"] = rule["expr"].replace("> 300", "> 10")
    return content


@contextmanager
def prometheus(folder: Path, targets: dict[str, list[str]]) -> Iterator[Prometheus]:
    """Run a server that scrapes the targets of each job."""
    (folder / "alerts.yaml").write_text(yaml.safe_dump(hasty_alerts()))
    (folder / "slo.yaml").write_text((FOLDER / "slo.yaml").read_text())
    config = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    for job in config["scrape_configs"]:
        places = [url.partition("//")[2] for url in targets[job["job_name"]]]
        job["static_configs"] = [{"targets": places}]
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    command = [
        program("prometheus"),
        "--config.file=prometheus.yaml",
        "--storage.tsdb.path=data",
        "--web.listen-address=127.0.0.1:0",
    ]
    with (
        (folder / "log").open("w+") as log,
        subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as process,
    ):
        try:
            until(lambda: re.search(r"Listening on.* address=(\S+)", (folder / "log").read_text()))
            found = re.search(r"Listening on.* address=(\S+)", (folder / "log").read_text())
            assert found is not None
            server = Prometheus(f"http://{found[1]}")
            until(server.is_ready)
            yield server
        finally:
            process.terminate()


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    program("prometheus")
    with ClusterOfTwoDisks(controllers=1, has_links=False) as started:
        admin = AdminClient({"bootstrap.servers": started.bootstrap_servers})
        topics = [
            NewTopic(name, len(at), replica_assignment=at, config=SETTINGS.get(name, {}))
            for name, at in REPLICAS.items()
        ]
        for created in admin.create_topics(topics).values():
            created.result()
        yield started


@pytest.fixture
def worker(cluster: LocalCluster, tmp_path: Path) -> Iterator[ConnectWorker]:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "raising_plugins.py").write_text(PLUGINS)
    told = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "plugin.path": str(tmp_path / "plugins"),
        "offset.storage.file.filename": str(tmp_path / "offsets"),
    }
    with ConnectWorker(tmp_path, told) as started:
        yield started


def test_dashboards_have_data_and_alerts_fire_for_what_happens(
    cluster: LocalCluster, worker: ConnectWorker, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        lag = stack.enter_context(ExitStack())
        lag_url = lag.enter_context(served(cluster, "--probe"))
        targets = {
            "millstream-brokers": [cluster.node(each).http_url for each in cluster.node_ids],
            "millstream-lag": [lag_url],
            "millstream-connect": [f"http://{worker.worker_id}"],
        }
        server = stack.enter_context(prometheus(tmp_path, targets))
        until(lambda: is_ready(lag_url))
        with Load(cluster, "orders") as load:
            load.goes_on()
            nothing_fires_and_dashboards_have_data(server)
            servers = {"bootstrap.servers": cluster.bootstrap_servers}
            commit_offsets(servers, "late", {("orders", 0): 0})
            server.wait_for("GroupStopped", "GroupFarBehind")
            for name, where in (("never", "connector start"), ("breaks", "poll")):
                worker.call("PUT", f"/connectors/{name}/config", config("RaisingSource", where))
            server.wait_for("ConnectorFailed", "ConnectorTaskFailed")
            reader = f"aiokafka-{aiokafka.__version__}"
            slow = cluster.faults.delay("Fetch", ms=8_000, client_id=reader).always()
            server.wait_for("ProbeMessagesLost", "ErrorsUsedUpFast", "ErrorsUsedUp")
            slow.remove()
            fail_a_disk(cluster)
            server.wait_for("LogDirectoryOffline", "PartitionsUnderReplicated")
        cluster.kill(3)
        server.wait_for("BrokerDown", "PartitionsUnderMinIsr", "PartitionsOffline")
        cluster.kill(2)
        server.wait_for("ProbeFails")
        cluster.start(3)  # It lacks what broker 2 took alone, and leads all the same.
        server.wait_for("UncleanLeaderElection")
        cluster.kill(*cluster.controller_ids)
        server.wait_for("NoActiveController")
        lag.close()
        server.wait_for("LagUnknown")


def nothing_fires_and_dashboards_have_data(server: Prometheus) -> None:
    until(lambda: server.has_data("kminion_end_to_end_messages_received_total"))
    commits = {name for name in EXPORTER if name.startswith("kafka_consumergroup")}
    for name in {**BROKERS, **QUORUM, **ACTIVE_CONTROLLER, **EXPORTER}.keys() - commits:
        until(lambda name=name: server.has_data(name), 30)
    until(lambda: server.has_data(TRAFFIC))
    until(lambda: server.has_data("millstream:slo_errors:ratio_rate5m"))
    # Before the first numbers of every node are there, two seconds without them are an alert.
    until(lambda: server.firing() == set(), 30, shown=server.firing)


def fail_a_disk(cluster: LocalCluster) -> None:
    """Let a disk of broker 1 fail, which has partitions and not the metadata."""
    folders = cluster.node(1).data_folder.glob("orders-*")
    partition = int(next(folders).name.rpartition("-")[2])
    cluster.node(1).faults.disk("fail", topic="orders", partition=partition).always()
