"""Apache Kafka's worker and ours on the same three topics: in turn, and in one group."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from millstream.testing import LocalBroker
from mirror.dedicated.whole_topic import whole_topic
from tests.lib.apache_connect import ApacheWorker, connect_libs
from tests.lib.connect_worker import ConnectWorker, eventually

pytestmark = pytest.mark.interop

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
BOTH_RUN = {"connector": "RUNNING", "0": "RUNNING"}


@pytest.fixture
def support() -> str:
    return "disabled"


@pytest.fixture
def workers(tmp_path: Path, support: str) -> Iterator[tuple[ConnectWorker, ApacheWorker]]:
    libs = connect_libs()
    with LocalBroker() as broker:
        told = {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "workers",
            "scheduled.rebalance.max.delay.ms": "1000",
            "heartbeat.interval.ms": "500",
            "exactly.once.source.support": support,
        }
        for kind in ("config", "offset", "status"):
            told[f"{kind}.storage.topic"] = f"connect-{kind}"
            told[f"{kind}.storage.replication.factor"] = "1"
        ours = ConnectWorker(tmp_path, told, name="ours")
        apaches = ApacheWorker(tmp_path, told, libs, name="apaches")
        try:
            yield ours, apaches
        finally:
            ours.kill()
            apaches.kill()


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def append(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(f"{line}\n")


def offsets(worker: ConnectWorker, name: str) -> list[dict[str, int]]:
    return [e["offset"] for e in worker.call("GET", f"/connectors/{name}/offsets").body["offsets"]]


def runs_here(worker: ConnectWorker, name: str) -> bool:
    if worker.states(name) != BOTH_RUN:
        return False
    body = worker.call("GET", f"/connectors/{name}/status").body
    return bool(body["tasks"][0]["worker_id"] == worker.worker_id)


def test_each_goes_on_where_the_other_one_stopped(
    workers: tuple[ConnectWorker, ApacheWorker], tmp_path: Path
) -> None:
    ours, apaches = workers
    source = {"connector.class": SOURCE, "file": f"{tmp_path}/in", "topic": "lines"}
    sink = {"connector.class": SINK, "file": f"{tmp_path}/out", "topics": "lines"}
    append(tmp_path / "in", "one")

    ours.start()
    eventually(lambda: ours.call("GET", "/health/ready").status == 200)
    held, off = ({**sink, "file": f"{tmp_path}/{name}"} for name in ("held", "off"))
    for name, config in {"src": source, "snk": sink, "held": held, "off": off}.items():
        assert ours.call("PUT", f"/connectors/{name}/config", config).status == 201
    for name in ("held", "off"):
        ours.wait_for(name, connector="RUNNING", t0="RUNNING")
    assert ours.call("PUT", "/connectors/held/pause").status == 202
    assert ours.call("PUT", "/connectors/off/stop").status == 204
    eventually(lambda: offsets(ours, "src") == [{"position": 4}])
    eventually(lambda: "one" in lines(tmp_path / "out"))
    ours.wait_for("off", connector="STOPPED")
    infos = {name: ours.call("GET", f"/connectors/{name}").body for name in ("src", "snk", "off")}
    assert ours.stop() == 0

    apaches.start()
    eventually(lambda: runs_here(apaches, "src") and runs_here(apaches, "snk"))
    for name, info in infos.items():
        assert apaches.call("GET", f"/connectors/{name}").body == info
    assert apaches.states("held")["connector"] == "PAUSED"
    assert apaches.states("off") == {"connector": "STOPPED"}
    assert offsets(apaches, "src") == [{"position": 4}]
    assert apaches.call("GET", "/connectors/src/topics").body == {"src": {"topics": ["lines"]}}
    append(tmp_path / "in", "two")
    eventually(lambda: "two" in lines(tmp_path / "out"))
    eventually(lambda: offsets(apaches, "src") == [{"position": 8}])
    assert apaches.call("PUT", "/connectors/held/stop").status == 204
    assert apaches.call("DELETE", "/connectors/off").status == 204

    # Both in one group: what is asked of ours goes on to Apache's, which leads.
    ours.start()
    eventually(lambda: ours.call("GET", "/health/ready").status == 200)
    more = {**source, "file": f"{tmp_path}/in2", "topic": "lines2"}

    def is_made() -> bool:
        # While the group decides anew there may be no leader to send it on to.
        return ours.call("PUT", "/connectors/more/config", more).status in (200, 201)

    eventually(is_made)
    eventually(lambda: ours.states("more") == BOTH_RUN)
    apaches.stop()

    eventually(lambda: runs_here(ours, "src") and runs_here(ours, "snk"))
    assert ours.states("held")["connector"] == "STOPPED"
    assert ours.call("GET", "/connectors/off").status == 404
    append(tmp_path / "in", "three")
    eventually(lambda: "three" in lines(tmp_path / "out"))
    assert offsets(ours, "src")[0]["position"] >= 8
    # Nothing that was read comes again, and nothing is left out.
    assert lines(tmp_path / "out") == ["one", "two", "three"]
    assert ours.stop() == 0


def committed(servers: str, topic: str) -> list[str]:
    """Read a topic's values, as far as they are committed."""
    client = {"bootstrap.servers": servers, "group.id": "x", "isolation.level": "read_committed"}
    return [each.value().decode() for each in whole_topic(client, topic)]


def goes_on(worker: ConnectWorker, folder: Path, line: str, settings: dict[str, str]) -> None:
    """Have two sources make their tasks anew, wherever these run, and see that a line comes."""
    servers = worker.settings["bootstrap.servers"]
    for name in ("one", "two"):
        config = {
            "connector.class": SOURCE,
            "file": f"{folder}/{name}",
            "topic": name,
            "exactly.once.support": "required",
            **settings,
        }

        def is_made(name: str = name, config: dict[str, str] = config) -> bool:
            answered = worker.call("PUT", f"/connectors/{name}/config", config)
            assert answered.status != 400, answered
            return answered.status in (200, 201)

        eventually(is_made)
    for name in ("one", "two"):
        append(folder / name, line)
        eventually(lambda name=name: line in committed(servers, name), 60)
        eventually(lambda name=name: worker.states(name) == BOTH_RUN)


@pytest.mark.parametrize("support", ["enabled"])
def test_with_transactions_each_fences_what_the_other_one_ran(
    workers: tuple[ConnectWorker, ApacheWorker], tmp_path: Path
) -> None:
    ours, apaches = workers
    ours.start()
    eventually(lambda: ours.call("GET", "/health/ready").status == 200)
    goes_on(ours, tmp_path, "ours", {})
    assert ours.stop() == 0
    apaches.start()
    eventually(lambda: runs_here(apaches, "one") and runs_here(apaches, "two"))
    goes_on(apaches, tmp_path, "apaches", {"batch.size": "100"})

    # Apache's leads, and ours asks it to fence.
    ours.start()
    eventually(lambda: ours.call("GET", "/health/ready").status == 200)
    for number in range(1, 3):
        goes_on(ours, tmp_path, f"led by apaches {number}", {"batch.size": str(number)})
    assert "leader has fenced earlier tasks" in ours.log()
    apaches.stop()
    eventually(lambda: runs_here(ours, "one") and runs_here(ours, "two"))
    assert "fenced, as is asked" not in ours.log()
    # Ours leads, and Apache's asks it.
    apaches.start()
    for number in range(1, 4):
        goes_on(apaches, tmp_path, f"led by ours {number}", {"batch.size": str(number)})
    assert "fenced, as is asked" in ours.log()
    for name in ("one", "two"):
        assert committed(ours.settings["bootstrap.servers"], name) == lines(tmp_path / name)
    assert ours.stop() == 0
