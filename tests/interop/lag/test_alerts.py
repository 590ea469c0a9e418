"""A real Prometheus scrapes a real cluster: dashboards have data, alerts fire for what happens."""

import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from millstream.testing import LocalCluster
from tests.interop.lag.test_lag import EXPORTER, commit, is_ready, served
from tests.interop.programs.test_public_dashboards import ACTIVE_CONTROLLER, BROKERS, QUORUM
from tests.lib.prometheus import program
from tests.lib.replicated_load import Load
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

TRAFFIC = 'sum(irate(kafka_server_brokertopicmetrics_bytesin_total{topic!=""}[5m])) > 0'
FOLDER = Path(__file__).parent.parent.parent.parent / "deploy" / "monitoring"


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
        found = self.get("alerts")["alerts"]
        return {each["labels"]["alertname"] for each in found if each["state"] == "firing"}

    def wait_for(self, *alerts: str) -> None:
        until(lambda: set(alerts) <= self.firing(), 120, shown=lambda: f"firing: {self.firing()}")

    def has_data(self, expression: str) -> bool:
        return bool(self.get("query", query=expression)["result"])


@contextmanager
def prometheus(folder: Path, cluster: LocalCluster, lag_url: str) -> Iterator[Prometheus]:
    (folder / "alerts.yaml").write_text(
        re.sub(r"for: \d+[ms]", "for: 2s", (FOLDER / "alerts.yaml").read_text())
    )
    (folder / "slo.yaml").write_text((FOLDER / "slo.yaml").read_text())
    config = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    targets = {
        "millstream-brokers": [cluster.node(each).http_url for each in cluster.broker_ids],
        "millstream-lag": [lag_url],
    }
    config["scrape_configs"] = [
        {**job, "static_configs": [{"targets": [each.partition("//")[2] for each in of_job]}]}
        for job in config["scrape_configs"]
        if (of_job := targets.get(job["job_name"]))
    ]
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


def test_dashboards_have_data_and_alerts_fire_for_what_happens(tmp_path: Path) -> None:
    program("prometheus")
    with LocalCluster(has_links=False) as cluster:
        cluster.create_topic("orders", 3)
        with (
            served(cluster, "--probe") as lag_url,
            prometheus(tmp_path, cluster, lag_url) as server,
        ):
            until(lambda: is_ready(lag_url))
            with Load(cluster, "orders") as load:
                load.goes_on()
                commit(cluster, "late", 0)
                until(lambda: server.has_data("kminion_end_to_end_messages_received_total"))
                for name in {**BROKERS, **QUORUM, **ACTIVE_CONTROLLER, **EXPORTER}:
                    until(lambda name=name: server.has_data(name), 30)
                until(lambda: server.has_data(TRAFFIC))
                until(lambda: server.has_data("millstream:slo_errors:ratio_rate5m"))
                assert server.firing() <= {"GroupStopped"}  # It is late.
                server.wait_for("GroupStopped")
                cluster.kill(3)
                server.wait_for("BrokerDown", "PartitionsUnderReplicated")
                cluster.start(3)  # Its page has another port now, so it stays down to Prometheus.
                until(lambda: "PartitionsUnderReplicated" not in server.firing(), 120)
